#include "fence/databases.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>

#include "fence/connections.hpp"
#include "support/process.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class SqliteDatabase : public Database {
 public:
  std::string address() const override { return folder_ / "database"; }
  void crash() override {}  // there is no server; the file is all there is
  void wipe() override {
    for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
      std::filesystem::remove(file);
    }
  }

 private:
  ServerFolder folder_;
};

class PostgresDatabase : public Database {
 public:
  PostgresDatabase() {
    Process init(
        {.words = {program("initdb"), "--pgdata", folder_ / "files", "--no-sync", "--auth=trust",
                   "--username=tenure", "--encoding=UTF8", "--locale=C", "--no-instructions"},
         .user = user,
         .log = folder_ / "log"});
    if (init.wait() != 0) {
      throw std::runtime_error("initdb failed: " + content_of(folder_ / "log"));
    }
    start();
  }
  ~PostgresDatabase() override {
    server_->signal(SIGQUIT);  // at once, all of its processes
    server_->wait();
  }

  std::string address() const override {
    return "host=" + folder_.path().string() + " dbname=postgres user=tenure";
  }
  void crash() override {
    server_->signal(SIGQUIT);  // no shutdown: the next start recovers from the log
    server_->wait();
    start();
  }
  void wipe() override {
    run(*connect_postgres(address()), "DROP TABLE IF EXISTS tenure_fence, texts, others");
  }

 private:
  static constexpr const char* user = "postgres";  // PostgreSQL refuses to run as root

  /// Debian keeps the programs of the server out of PATH.
  static std::string program(const std::string& name) {
    for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql")) {
      const auto path = version.path() / "bin" / name;
      if (std::filesystem::exists(path)) {
        return path;
      }
    }
    throw std::runtime_error("no PostgreSQL server: tools/setup.sh test installs it");
  }

  void start() {
    // Without fsync: it matters when the machine dies, which no test can do.
    server_.emplace(Process::Command{
        .words = {program("postgres"), "-D", folder_ / "files", "-k", folder_.path(), "-c",
                  "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=30"},
        .user = user,
        .log = folder_ / "log"});
    if (!eventually([this] { return PQping(address().c_str()) == PQPING_OK; })) {
      throw std::runtime_error("postgres does not start: " + content_of(folder_ / "log"));
    }
  }

  ServerFolder folder_{user};
  std::optional<Process> server_;
};

class RedisDatabase : public Database {
 public:
  RedisDatabase() { start(); }

  std::string address() const override { return folder_ / "socket"; }
  void crash() override {
    server_->signal(SIGKILL);
    server_->wait();
    start();
  }
  void wipe() override {
    const auto connection = connect_redis(address());
    run(*connection, {"FLUSHALL"});
    run(*connection, {"SCRIPT", "FLUSH"});
    run(*connection, {"CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction"});
  }

 private:
  void start() {
    std::filesystem::remove(address());
    server_.emplace(
        Process::Command{.words = {"redis-server", "--port", "0", "--unixsocket", address(),
                                   "--dir", folder_.path(), "--save", "", "--appendonly", "yes",
                                   "--appendfsync", "always", "--logfile", folder_ / "log"},
                         .log = folder_ / "log"});
    if (!eventually([this] { return answers(); })) {
      throw std::runtime_error("redis-server does not start (tools/setup.sh test installs it): " +
                               content_of(folder_ / "log"));
    }
  }
  bool answers() const {
    const Redis connection(redisConnectUnix(address().c_str()));
    if (connection == nullptr || connection->err != 0) {
      return false;
    }
    const RedisAnswer answer(static_cast<redisReply*>(redisCommand(connection.get(), "PING")));
    return answer != nullptr && answer->type == REDIS_REPLY_STATUS;  // not while it loads
  }

  ServerFolder folder_;
  std::optional<Process> server_;
};

std::unique_ptr<Database> start_database(const std::string& kind) {
  if (kind == "sqlite") {
    return std::make_unique<SqliteDatabase>();
  }
  if (kind == "postgresql") {
    return std::make_unique<PostgresDatabase>();
  }
  return std::make_unique<RedisDatabase>();
}

}  // namespace

Database& database(const std::string& kind) {
  static std::map<std::string, std::unique_ptr<Database>> started;
  auto& found = started[kind];
  if (found == nullptr) {
    found = start_database(kind);
  }
  return *found;
}

}  // namespace tenure::test
