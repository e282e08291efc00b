// The same load as service_load, on ZooKeeper with the lock recipe of its documentation
// (zookeeper.apache.org/doc/r3.8.0/recipes.html, "Locks"), over its asynchronous C interface:
//
//   zookeeper_load cycles HOST:PORT CLIENTS SECONDS     each client on a lock of its own
//   zookeeper_load hand-over HOST:PORT WAITERS SECONDS  one lock that all want
//   zookeeper_load threads HOST:PORT CLIENTS SECONDS            cycles, and
//   zookeeper_load hand-over-threads HOST:PORT WAITERS SECONDS  hand-over, by threads that block
//   zookeeper_load hold HOST:PORT NAME TTL_SECONDS      takes it, renews nothing, stays
//   zookeeper_load wait HOST:PORT NAME                  until it is ours
//
// Locking: create an ephemeral sequential node, list its siblings, watch the one before it unless
// it is the first. Unlocking: delete it. The clients share eight sessions, each a connection and
// two threads: of 1, 2, 4, 8 and 64 that was the fastest for 64 clients on two cores. The
// environment TENURE_BENCH_SESSIONS gives another number. Prints one line of JSON.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#define THREADED
#include <zookeeper/zookeeper.h>

#include "samples.hpp"

namespace tenure::bench {
namespace {

void insist(int code, const char* what) {
  if (code != ZOK) {
    std::fprintf(stderr, "%s: %s\n", what, zerror(code));
    std::exit(1);
  }
}

/// Not where the library has its locks: its folders go when they are empty.
const std::string root = "/recipe";

struct CloseSession {
  void operator()(zhandle_t* session) const { zookeeper_close(session); }
};
using Session = std::unique_ptr<zhandle_t, CloseSession>;

/// Connected when it returns.
Session open_session(const std::string& address, std::chrono::seconds timeout) {
  std::latch connected(1);
  const auto changed = [](zhandle_t*, int type, int state, const char*, void* context) {
    if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE) {
      static_cast<std::latch*>(context)->count_down();
    }
  };
  const auto milliseconds = static_cast<int>(std::chrono::milliseconds(timeout).count());
  Session session(zookeeper_init(address.c_str(), changed, milliseconds, nullptr, &connected, 0));
  if (!session) {
    std::perror("zookeeper_init");
    std::exit(1);
  }
  connected.wait();
  zoo_set_watcher(session.get(), nullptr);
  return session;
}

void make_folder(zhandle_t* session, const std::string& path) {
  const int code =
      zoo_create(session, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, nullptr, 0);
  if (code != ZNODEEXISTS) {
    insist(code, "create a folder");
  }
}

/// Of the nodes of a folder, the last one before our own; empty if that is the first. The numbers
/// have ten digits, so their order is that of the names.
std::string_view before(std::string_view own, const String_vector& names) {
  std::string_view found;
  for (int i = 0; i < names.count; ++i) {
    const std::string_view name = names.data[i];
    if (name < own && name > found) {
      found = name;
    }
  }
  return found;
}

/// One client of the recipe. Its callbacks come on the thread of its session.
class Contender {
 public:
  Contender(zhandle_t* session, std::string folder)
      : session_(session), folder_(std::move(folder)) {}
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;
  virtual ~Contender() = default;

  void lock() {
    const auto created = [](int code, const char* path, const void* self) {
      insist(code, "create");
      self_of(self).path_ = path;
      self_of(self).look();
    };
    insist(zoo_acreate(session_, (folder_ + "/lock-").c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE,
                       ZOO_EPHEMERAL_SEQUENTIAL, created, this),
           "create");
  }
  void unlock() {
    const auto deleted = [](int code, const void* self) {
      insist(code, "delete");
      self_of(self).unlocked();
    };
    insist(zoo_adelete(session_, path_.c_str(), -1, deleted, this), "delete");
  }

 private:
  virtual void locked() = 0;
  virtual void unlocked() = 0;

  static Contender& self_of(const void* self) {
    return *static_cast<Contender*>(const_cast<void*>(self));
  }

  void look() {
    const auto listed = [](int code, const String_vector* names, const void* self) {
      insist(code, "list the siblings");
      self_of(self).on_siblings(*names);
    };
    insist(zoo_aget_children(session_, folder_.c_str(), 0, listed, this), "list the siblings");
  }
  void on_siblings(const String_vector& names) {
    const auto last = before(std::string_view(path_).substr(folder_.size() + 1), names);
    if (last.empty()) {
      locked();
    } else {
      watch(folder_ + "/" + std::string(last));
    }
  }
  void watch(const std::string& path) {
    const auto gone = [](zhandle_t*, int type, int, const char*, void* self) {
      if (type == ZOO_DELETED_EVENT) {
        self_of(self).look();
      }
    };
    const auto looked = [](int code, const Stat*, const void* self) {
      if (code == ZNONODE) {
        self_of(self).look();
      } else {
        insist(code, "watch the one before");
      }
    };
    insist(zoo_awexists(session_, path.c_str(), gone, this, looked, this), "watch the one before");
  }

  zhandle_t* session_;
  std::string folder_;
  std::string path_;
};

/// The same by the calls that wait for their answers.
class BlockingContender {
 public:
  BlockingContender(zhandle_t* session, std::string folder)
      : session_(session), folder_(std::move(folder)) {}

  void lock() {
    char made[256];
    insist(zoo_create(session_, (folder_ + "/lock-").c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE,
                      ZOO_EPHEMERAL_SEQUENTIAL, made, sizeof made),
           "create");
    path_ = made;
    for (;;) {
      String_vector names{};
      insist(zoo_get_children(session_, folder_.c_str(), 0, &names), "list the siblings");
      const std::string last(before(std::string_view(path_).substr(folder_.size() + 1), names));
      deallocate_String_vector(&names);
      if (last.empty()) {
        return;
      }
      watch(folder_ + "/" + last);
    }
  }
  void unlock() { insist(zoo_delete(session_, path_.c_str(), -1), "delete"); }

 private:
  /// Until it is gone.
  void watch(const std::string& path) {
    const auto gone = [](zhandle_t*, int type, int, const char*, void* self) {
      if (type == ZOO_DELETED_EVENT) {
        static_cast<BlockingContender*>(self)->gone_.release();
      }
    };
    Stat stat{};
    const int code = zoo_wexists(session_, path.c_str(), gone, this, &stat);
    if (code != ZNONODE) {
      insist(code, "watch the one before");
      gone_.acquire();
    }
  }

  zhandle_t* session_;
  std::string folder_;
  std::string path_;
  std::binary_semaphore gone_{0};
};

constexpr std::size_t sessions_by_default = 8;

/// What all drivers of a load have in common.
struct Load {
  enum class Kind : std::uint8_t {
    cycles,     ///< A sample is one lock + unlock.
    hand_over,  ///< Time from just before a release to the next grant.
  };
  Kind kind;
  Period period;
  std::latch& done;
  std::atomic<Clock::time_point> released{};
};

/// Cycle after cycle until the time is over.
class Driver final : public Contender {
 public:
  Driver(zhandle_t* session, std::string folder, Load& load)
      : Contender(session, std::move(folder)), load_(load) {}

  void start() {
    began_ = Clock::now();
    lock();
  }
  [[nodiscard]] const std::vector<std::uint32_t>& samples() const { return samples_; }

 private:
  void locked() override {
    if (load_.kind == Load::Kind::hand_over) {
      sample(load_.released);
      load_.released = Clock::now();
    }
    unlock();
  }
  void unlocked() override {
    if (load_.kind == Load::Kind::cycles) {
      sample(began_);
    }
    if (load_.period.is_over()) {
      load_.done.count_down();
    } else {
      start();
    }
  }
  void sample(Clock::time_point began) {
    if (load_.period.counts(began)) {
      samples_.push_back(microseconds_since(began));
    }
  }

  Load& load_;
  Clock::time_point began_;
  std::vector<std::uint32_t> samples_;
};

/// Sessions, and a folder for each client.
class Places {
 public:
  Places(const std::string& address, std::size_t clients, Load::Kind kind) : kind_(kind) {
    const char* wanted = std::getenv("TENURE_BENCH_SESSIONS");
    sessions_.resize(
        std::min(clients, wanted != nullptr ? std::stoul(wanted) : sessions_by_default));
    for (auto& session : sessions_) {
      session = open_session(address, std::chrono::seconds(10));
    }
    make_folder(sessions_[0].get(), root);
    for (std::size_t n = 0; n < clients; ++n) {
      make_folder(sessions_[0].get(), folder(n));
    }
  }
  [[nodiscard]] zhandle_t* session(std::size_t client) const {
    return sessions_[client % sessions_.size()].get();
  }
  [[nodiscard]] std::string folder(std::size_t client) const {
    return root + "/" + (kind_ == Load::Kind::hand_over ? "hot" : std::to_string(client));
  }

 private:
  Load::Kind kind_;
  std::vector<Session> sessions_;
};

void run(const std::string& address, std::size_t clients, Load::Kind kind,
         std::chrono::seconds duration) {
  const Places places(address, clients, kind);
  std::latch done(static_cast<std::ptrdiff_t>(clients));
  Load load{.kind = kind, .period = {.duration = duration}, .done = done};
  std::vector<std::unique_ptr<Driver>> drivers;
  for (std::size_t n = 0; n < clients; ++n) {
    drivers.push_back(std::make_unique<Driver>(places.session(n), places.folder(n), load));
  }
  load.period = {.duration = duration};
  for (auto& driver : drivers) {
    driver->start();
  }
  done.wait();
  std::vector<std::vector<std::uint32_t>> all;
  for (const auto& driver : drivers) {
    all.push_back(driver->samples());
  }
  print_all(all, duration);
}

void run_blocking(const std::string& address, std::size_t clients, Load::Kind kind,
                  std::chrono::seconds duration) {
  const Places places(address, clients, kind);
  std::vector<std::unique_ptr<BlockingContender>> all;
  for (std::size_t n = 0; n < clients; ++n) {
    all.push_back(std::make_unique<BlockingContender>(places.session(n), places.folder(n)));
  }
  kind == Load::Kind::cycles ? run_cycles(all, duration) : run_hand_over(all, duration);
}

/// Takes a lock and keeps it.
class Holder final : public Contender {
 public:
  Holder(zhandle_t* session, const std::string& name) : Contender(session, root + "/" + name) {
    make_folder(session, root);
    make_folder(session, root + "/" + name);
    lock();
    has_it_.wait();
  }

 private:
  void locked() override { has_it_.count_down(); }
  void unlocked() override {}

  std::latch has_it_{1};
};

/// Holds until it is killed. A session lives from the last thing that the server heard of it, so
/// the moment it prints is that of the answer to the last one.
void hold(const std::string& address, const std::string& name, std::chrono::seconds ttl) {
  const auto session = open_session(address, ttl);
  const Holder holder(session.get(), name);
  print_moment(Clock::now());
  std::this_thread::sleep_for(std::chrono::minutes(1));
}

/// Prints the moment at which it had the lock.
void wait(const std::string& address, const std::string& name) {
  const auto session = open_session(address, std::chrono::seconds(10));
  const Holder holder(session.get(), name);
  print_moment(Clock::now());
}

/// Runs the load that the arguments name. False: they are invalid.
bool run_command(const std::vector<std::string>& given) {
  using std::chrono::seconds;
  if (given.size() == 4 && given[0] == "cycles") {
    run(given[1], std::stoul(given[2]), Load::Kind::cycles, seconds(std::stoi(given[3])));
  } else if (given.size() == 4 && given[0] == "hand-over") {
    // The given number of clients waits, and one holds.
    run(given[1], std::stoul(given[2]) + 1, Load::Kind::hand_over, seconds(std::stoi(given[3])));
  } else if (given.size() == 4 && given[0] == "threads") {
    run_blocking(given[1], std::stoul(given[2]), Load::Kind::cycles, seconds(std::stoi(given[3])));
  } else if (given.size() == 4 && given[0] == "hand-over-threads") {
    run_blocking(given[1], std::stoul(given[2]) + 1, Load::Kind::hand_over,
                 seconds(std::stoi(given[3])));
  } else if (given.size() == 4 && given[0] == "hold") {
    hold(given[1], given[2], seconds(std::stoi(given[3])));
  } else if (given.size() == 3 && given[0] == "wait") {
    wait(given[1], given[2]);
  } else {
    return false;
  }
  return true;
}

}  // namespace
}  // namespace tenure::bench

int main(int count, char** arguments) {
  zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
  if (!tenure::bench::run_command(std::vector<std::string>(arguments + 1, arguments + count))) {
    std::fputs(
        "usage: zookeeper_load cycles|hand-over HOST:PORT CLIENTS SECONDS\n"
        "       zookeeper_load threads|hand-over-threads HOST:PORT CLIENTS SECONDS\n"
        "       zookeeper_load hold HOST:PORT NAME TTL_SECONDS\n"
        "       zookeeper_load wait HOST:PORT NAME\n",
        stderr);
    return 64;
  }
  return 0;
}
