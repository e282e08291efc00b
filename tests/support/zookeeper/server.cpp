#include "support/zookeeper/server.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
// Which declares the calls that wait only then.
#define THREADED
#include <zookeeper/zookeeper.h>

#include "support/net/free_port.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

std::string content_of(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return std::move(content).str();
}

[[noreturn]] void fail_by(int code, const std::string& what) {
  throw std::runtime_error(what + ": " + zerror(code));
}

void insist(int code, const std::string& what) {
  if (code != ZOK) {
    fail_by(code, what);
  }
}

void drop_log(const char* /*message*/) {}

}  // namespace

ZookeeperServers::ZookeeperServers(Options options) : options_(std::move(options)) {
  for (std::size_t which = 0; which < options_.count; ++which) {
    ports_.push_back(free_port());
    if (options_.count > 1) {
      members_.push_back("server." + std::to_string(which + 1) + "=127.0.0.1:" +
                         std::to_string(free_port()) + ":" + std::to_string(free_port()));
    }
  }
  for (std::size_t which = 0; which < options_.count; ++which) {
    configure(which);
    const auto home = folder_ / std::to_string(which);
    // Quick to start, small, and without waiting for the disk: what is tested is not its speed.
    processes_.push_back(std::make_unique<Process>(Process::Command{
        .words = {"java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-Xshare:auto",
                  "-Dzookeeper.forceSync=no", "-Dznode.container.checkIntervalMs=200",
                  "-Dzookeeper.log.dir=" + home, "-cp", "/usr/share/java/zookeeper.jar",
                  "org.apache.zookeeper.server.quorum.QuorumPeerMain", home + "/zoo.cfg"},
        .log = home + "/errors"}));
  }
  for (std::size_t which = 0; which < options_.count; ++which) {
    const bool is_up = eventually([&] {
      ::usleep(5'000);  // Each check opens a connection, so leave time for the JVM.
      return ask("srvr", which).find("Mode: ") != std::string::npos ||
             processes_[which]->has_ended();
    });
    if (!is_up || processes_[which]->has_ended()) {
      throw std::runtime_error("zookeeper does not start (tools/setup.sh test installs it): " +
                               content_of(folder_ / std::to_string(which) + "/errors"));
    }
  }
}

ZookeeperServers::~ZookeeperServers() = default;

void ZookeeperServers::configure(std::size_t which) {
  const auto home = folder_ / std::to_string(which);
  std::filesystem::create_directory(home);
  std::ofstream config(home + "/zoo.cfg");
  config << "tickTime=" << options_.tick << "\ninitLimit=50\nsyncLimit=25\ndataDir=" << home
         << "\nclientPort=" << ports_[which]
         << "\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\nadmin.enableServer=false\n"
         << "4lw.commands.whitelist=*\n";
  for (const auto& line : options_.config) {
    config << line << '\n';
  }
  for (const auto& member : members_) {
    config << member << '\n';
  }
  if (!members_.empty()) {
    std::ofstream(home + "/myid") << which + 1;
  }
}

ZookeeperServers& ZookeeperServers::shared() {
  static ZookeeperServers servers({.config = {"maxSessionTimeout=100000000"}});
  return servers;
}

std::string ZookeeperServers::fresh_chroot() {
  static std::atomic<int> last = 0;
  return "/t" + std::to_string(++last);
}

std::string ZookeeperServers::hosts() const {
  std::string all;
  for (const auto port : ports_) {
    all += (all.empty() ? "" : ",") + ("127.0.0.1:" + std::to_string(port));
  }
  return all;
}

std::string ZookeeperServers::url(std::string_view rest) const {
  return "zookeeper://" + hosts() + std::string(rest);
}

void ZookeeperServers::kill(std::size_t which) {
  processes_[which]->signal(SIGKILL);
  processes_[which]->wait();
}

std::size_t ZookeeperServers::leader() const {
  std::size_t found = size();
  const bool is_led = eventually([&] {
    for (found = 0; found < size(); ++found) {
      if (ask("srvr", found).find("Mode: leader") != std::string::npos) {
        return true;
      }
    }
    return false;
  });
  return is_led ? found : throw std::runtime_error("no server leads");
}

std::string ZookeeperServers::ask(std::string_view letters, std::size_t which) const {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // One that is just starting may accept us and forget us.
  const timeval longest{.tv_sec = 1, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(ports_[which]);
  std::string answer;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the sockets API.
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::send(socket, letters.data(), letters.size(), MSG_NOSIGNAL) > 0) {
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(socket, buffer, sizeof buffer)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(got));
    }
  }
  ::close(socket);
  return answer;
}

std::int64_t ZookeeperServers::count_of(std::string_view field, std::size_t which) const {
  const auto all = ask("srvr", which);
  const auto at = all.find(std::string(field) + ": ");
  std::int64_t count = -1;
  if (at != std::string::npos) {
    std::from_chars(all.data() + at + field.size() + 2, all.data() + all.size(), count);
  }
  return count;
}

// Actions of another client.

ZookeeperShell::ZookeeperShell(const std::string& hosts, const Options& options) {
  handle_ = zookeeper_init2(hosts.c_str(), nullptr, options.timeout_ms, nullptr, nullptr,
                            ZOO_NO_LOG_CLIENTENV, drop_log);
  if (!options.identity.empty()) {
    zoo_add_auth(handle_, "digest", options.identity.data(),
                 static_cast<int>(options.identity.size()), nullptr, nullptr);
  }
  if (!eventually([&] { return zoo_state(handle_) == ZOO_CONNECTED_STATE; })) {
    throw std::runtime_error("no connection to ZooKeeper");
  }
}

ZookeeperShell::~ZookeeperShell() {
  zookeeper_close(handle_);
}

void ZookeeperShell::close_session(const std::string& hosts, std::int64_t session,
                                   const std::string& password) {
  clientid_t id{};
  id.client_id = session;
  std::ranges::copy(password, id.passwd);
  // Its owner takes it back at once; so this goes on until there is nothing to take over.
  for (bool is_over = false; !is_over;) {
    auto* const thief = zookeeper_init2(hosts.c_str(), nullptr, 30'000, &id, nullptr,
                                        ZOO_NO_LOG_CLIENTENV, drop_log);
    const bool is_there = eventually([&] {
      is_over = zoo_state(thief) == ZOO_EXPIRED_SESSION_STATE;
      return is_over || zoo_state(thief) == ZOO_CONNECTED_STATE;
    });
    zookeeper_close(thief);
    if (!is_there) {
      throw std::runtime_error("no connection to ZooKeeper");
    }
  }
}

void ZookeeperShell::make(const std::string& path) {
  for (auto slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const auto part = path.substr(0, slash);
    const int code =
        zoo_create(handle_, part.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, nullptr, 0);
    if (code != ZNODEEXISTS) {
      insist(code, part);
    }
    if (slash == std::string::npos) {
      return;
    }
  }
}

std::string ZookeeperShell::make_ticket(const std::string& path, std::string_view value) {
  char name[1500];
  insist(zoo_create(handle_, path.c_str(), value.data(), static_cast<int>(value.size()),
                    &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL, name, sizeof name),
         path);
  return name;
}

void ZookeeperShell::make_ephemeral(const std::string& path) {
  insist(zoo_create(handle_, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, nullptr, 0),
         path);
}

void ZookeeperShell::set(const std::string& path, std::string_view value) {
  insist(zoo_set(handle_, path.c_str(), value.data(), static_cast<int>(value.size()), -1), path);
}

void ZookeeperShell::close_to_others(const std::string& path) {
  insist(zoo_set_acl(handle_, path.c_str(), -1, &ZOO_CREATOR_ALL_ACL), path);
}

bool ZookeeperShell::remove(const std::string& path) {
  const int code = zoo_delete(handle_, path.c_str(), -1);
  if (code != ZNONODE) {
    insist(code, path);
  }
  return code == ZOK;
}

bool ZookeeperShell::has(const std::string& path) {
  const int code = zoo_exists(handle_, path.c_str(), 0, nullptr);
  if (code != ZNONODE) {
    insist(code, path);
  }
  return code == ZOK;
}

std::string ZookeeperShell::get(const std::string& path) {
  std::string value(10'000, '\0');
  int bytes = static_cast<int>(value.size());
  insist(zoo_get(handle_, path.c_str(), 0, value.data(), &bytes, nullptr), path);
  value.resize(static_cast<std::size_t>(std::max(0, bytes)));
  return value;
}

std::int64_t ZookeeperShell::owner_of(const std::string& path) {
  Stat stat{};
  insist(zoo_exists(handle_, path.c_str(), 0, &stat), path);
  return stat.ephemeralOwner;
}

std::int64_t ZookeeperShell::czxid_of(const std::string& path) {
  Stat stat{};
  insist(zoo_exists(handle_, path.c_str(), 0, &stat), path);
  return stat.czxid;
}

std::vector<std::string> ZookeeperShell::list(const std::string& path) {
  String_vector names{};
  const int code = zoo_get_children(handle_, path.c_str(), 0, &names);
  if (code == ZNONODE) {
    return {};
  }
  insist(code, path);
  std::vector<std::string> found(names.data, names.data + names.count);
  deallocate_String_vector(&names);
  std::ranges::sort(found);
  return found;
}

}  // namespace tenure::test
