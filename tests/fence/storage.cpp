#include "fence/storage.hpp"

#include <stdexcept>

#include <tenure/fence_postgresql.hpp>
#include <tenure/fence_redis.hpp>
#include <tenure/fence_sqlite.hpp>

#include "fence/connections.hpp"

namespace tenure::test {
namespace {

/// SQL databases, which differ in their dialect.
template <class Connection, class DatabaseFence>
class SqlStorage : public Storage {
 public:
  struct Dialect {
    std::string create_texts;
    std::string begin;
    std::string insert;
    std::string select;
  };

  SqlStorage(Connection connection, Dialect dialect)
      : connection_(std::move(connection)), dialect_(std::move(dialect)) {}

  void create() override {
    DatabaseFence::create_table(*connection_).value();
    run(*connection_, dialect_.create_texts);
  }

  FenceResult add(const Entry& entry) override {
    auto fence = DatabaseFence::on(*connection_).value();
    run(*connection_, dialect_.begin);
    auto admitted = entry.repeat == Repeat::allowed ? fence.admit(entry.resource, entry.token)
                                                    : fence.admit_once(entry.resource, entry.token);
    if (!admitted) {
      run(*connection_, "ROLLBACK");
      return admitted;
    }
    run(*connection_, dialect_.insert, {entry.resource, entry.text});
    run(*connection_, "COMMIT");
    return admitted;
  }

  void add_unfenced(const Entry& entry) override {
    run(*connection_, dialect_.insert, {entry.resource, entry.text});
  }

  Rows texts(const std::string& resource) override {
    return run(*connection_, dialect_.select, {resource});
  }

  Result<FencingToken> highest(std::string_view resource) override {
    return DatabaseFence::on(*connection_).value().highest(resource);
  }

 private:
  Connection connection_;
  Dialect dialect_;
};

class RedisStorage : public Storage {
 public:
  explicit RedisStorage(Redis connection) : connection_(std::move(connection)) {}

  void create() override {}

  FenceResult add(const Entry& entry) override {
    auto fence = RedisFence::on(*connection_).value();
    const std::vector<RedisWrite> writes{
        {.command = "RPUSH", .key = key_of(entry.resource), .arguments = {entry.text}}};
    return entry.repeat == Repeat::allowed ? fence.admit(entry.resource, entry.token, writes)
                                           : fence.admit_once(entry.resource, entry.token, writes);
  }

  void add_unfenced(const Entry& entry) override {
    run(*connection_, {"RPUSH", key_of(entry.resource), entry.text});
  }

  Rows texts(const std::string& resource) override {
    const auto answer = run(*connection_, {"LRANGE", key_of(resource), "0", "-1"});
    Rows rows;
    for (std::size_t i = 0; i < answer->elements; ++i) {
      rows.emplace_back(answer->element[i]->str);
    }
    return rows;
  }

  Result<FencingToken> highest(std::string_view resource) override {
    return RedisFence::on(*connection_).value().highest(resource);
  }

 private:
  static std::string key_of(const std::string& resource) { return "texts:{" + resource + "}"; }

  Redis connection_;
};

std::unique_ptr<Storage> sqlite_storage(const std::string& file) {
  auto connection = connect_sqlite(file);
  sqlite3_busy_timeout(connection.get(), 30'000);  // writers wait for each other
  using Kind = SqlStorage<Sqlite, SqliteFence>;
  return std::make_unique<Kind>(
      std::move(connection),
      Kind::Dialect{.create_texts = "CREATE TABLE IF NOT EXISTS texts "
                                    "(place INTEGER PRIMARY KEY AUTOINCREMENT, resource, text)",
                    .begin = "BEGIN IMMEDIATE",
                    .insert = "INSERT INTO texts (resource, text) VALUES (?1, ?2)",
                    .select = "SELECT text FROM texts WHERE resource = ?1 ORDER BY place"});
}

std::unique_ptr<Storage> postgres_storage(const std::string& settings) {
  using Kind = SqlStorage<Postgres, PostgresFence>;
  return std::make_unique<Kind>(
      connect_postgres(settings),
      Kind::Dialect{.create_texts = "CREATE TABLE IF NOT EXISTS texts "
                                    "(place bigserial PRIMARY KEY, resource bytea, text text)",
                    .begin = "BEGIN",
                    .insert = "INSERT INTO texts (resource, text) VALUES ($1::bytea, $2::text)",
                    .select = "SELECT text FROM texts WHERE resource = $1::bytea ORDER BY place"});
}

}  // namespace

std::unique_ptr<Storage> connect_storage(const std::string& kind, const std::string& address) {
  if (kind == "sqlite") {
    return sqlite_storage(address);
  }
  if (kind == "postgresql") {
    return postgres_storage(address);
  }
  if (kind == "redis") {
    return std::make_unique<RedisStorage>(connect_redis(address));
  }
  throw std::runtime_error("no such storage: " + kind);
}

}  // namespace tenure::test
