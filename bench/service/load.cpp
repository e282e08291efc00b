// A load of lock + unlock cycles over unary gRPC calls, the same for Tenure and for etcd:
//
//   service_load tenure|etcd cycles HOST:PORT CLIENTS SECONDS     each client on a lock of its own
//   service_load tenure|etcd hand-over HOST:PORT WAITERS SECONDS  one contended lock
//   service_load tenure|etcd threads HOST:PORT CLIENTS SECONDS            cycles, and
//   service_load tenure|etcd hand-over-threads HOST:PORT WAITERS SECONDS  hand-over, by threads
//   service_load tenure|etcd hold HOST:PORT NAME TTL_SECONDS      acquires, never renews, stays
//   service_load tenure|etcd wait HOST:PORT NAME                  waits until the lock is granted
//   service_load fill HOST:PORT LOCKS       acquires this number of locks at Tenure and keeps them
//   service_load snapshot HOST:PORT         requests a snapshot from Tenure and waits for it
//   service_load transfer HOST:PORT         requests a leadership transfer at Tenure
//
// Each client has its own lease and begins the next cycle when the last one has completed. All
// clients share one connection and, where they are no threads that block, one thread with a
// completion queue, the cheapest way gRPC has: the load shares the machine with the server. The
// environment TENURE_BENCH_SESSIONS gives another number of connections. Prints one line of JSON.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include "grpc_clients.hpp"
#include "samples.hpp"
#include "tenure/v1/admin.grpc.pb.h"
#include "tenure/v1/lock.grpc.pb.h"

namespace tenure::bench {
namespace {

/// What all drivers of a load have in common.
struct Load {
  enum class Kind : std::uint8_t {
    cycles,     ///< A sample is one lock + unlock.
    hand_over,  ///< Time from just before a release to the next grant.
  };
  Kind kind;
  Period period;
  ::grpc::CompletionQueue queue{};
  Clock::time_point released{};
  std::vector<std::uint32_t> samples{};

  void sample(Clock::time_point began) {
    if (period.counts(began)) {
      samples.push_back(microseconds_since(began));
    }
  }
};

/// Cycle after cycle until the time is over.
template <class Client>
class Driver {
 public:
  Driver(const Channel& channel, const LockSpec& spec, Load& load)
      : client_(channel, spec), load_(load), turn_{.queue = load.queue, .tag = this} {}

  bool lock() {
    began_ = Clock::now();
    if (load_.period.is_over()) {
      return false;
    }
    turn_.context.emplace();
    client_.lock(turn_);
    return true;
  }
  /// The call that was under way is answered. False: this client is through.
  [[nodiscard]] bool answered() {
    insist(turn_.status, is_locked_ ? "Unlock" : "Lock");
    is_locked_ = !is_locked_;
    if (is_locked_) {
      unlock();
      return true;
    }
    if (load_.kind == Load::Kind::cycles) {
      load_.sample(began_);
    }
    return lock();
  }

 private:
  void unlock() {
    if (load_.kind == Load::Kind::hand_over) {
      load_.sample(load_.released);
      load_.released = Clock::now();
    }
    turn_.context.emplace();
    client_.unlock(turn_);
  }

  Client client_;
  Load& load_;
  Turn turn_;
  bool is_locked_ = false;
  Clock::time_point began_;
};

/// Calls `make(channel, spec)` for each client.
template <class Make>
void make_clients(const std::string& address, std::size_t clients, Load::Kind kind, Make make) {
  const char* wanted = std::getenv("TENURE_BENCH_SESSIONS");
  std::vector<Channel> channels(wanted != nullptr ? std::stoul(wanted) : 1);
  for (auto& channel : channels) {
    channel = connect(address);
  }
  for (std::size_t n = 0; n < clients; ++n) {
    const bool is_shared = kind == Load::Kind::hand_over;
    make(channels[n % channels.size()],
         LockSpec{.name = is_shared ? "bench/hot" : "bench/" + std::to_string(n)});
  }
}

template <class Client>
void run(const std::string& address, std::size_t clients, Load load) {
  std::vector<std::unique_ptr<Driver<Client>>> drivers;
  make_clients(address, clients, load.kind, [&](const Channel& channel, const LockSpec& spec) {
    drivers.push_back(std::make_unique<Driver<Client>>(channel, spec, load));
  });
  load.period = {.duration = load.period.duration};
  for (auto& driver : drivers) {
    driver->lock();
  }
  void* tag = nullptr;
  bool is_ok = false;
  for (auto left = clients; left > 0 && load.queue.Next(&tag, &is_ok);) {
    left -= static_cast<Driver<Client>*>(tag)->answered() ? 0U : 1U;
  }
  print(std::move(load.samples), load.period.duration);
}

/// The same by threads that block.
template <class Client>
void run_blocking(const std::string& address, std::size_t clients, Load::Kind kind,
                  std::chrono::seconds duration) {
  std::vector<std::unique_ptr<Client>> all;
  make_clients(address, clients, kind, [&](const Channel& channel, const LockSpec& spec) {
    all.push_back(std::make_unique<Client>(channel, spec));
  });
  kind == Load::Kind::cycles ? run_cycles(all, duration) : run_hand_over(all, duration);
}

/// Holds until it is killed. Prints the moment before it asked for its lease.
template <class Client>
void hold(const std::string& address, const LockSpec& spec) {
  const auto channel = connect(address);
  channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(5));
  const auto asked = Clock::now();
  Client client(channel, spec);
  client.lock();
  print_moment(asked);
  std::this_thread::sleep_for(std::chrono::minutes(1));
}

/// Prints the moment at which it had the lock.
template <class Client>
void wait(const std::string& address, const LockSpec& spec) {
  Client client(connect(address), spec);
  client.lock();
  print_moment(Clock::now());
}

/// Takes locks, one by one, and leaves them held.
class Filler {
 public:
  Filler(const std::string& address, std::size_t locks)
      : stub_(v1::LockService::NewStub(connect(address))), locks_(locks) {
    for (std::size_t n = 0; n < locks; n += locks_per_lease) {
      ::grpc::ClientContext context;
      v1::LeaseGrantRequest request;
      request.set_ttl_ms(3'600'000);
      v1::LeaseGrantResponse response;
      insist(stub_->LeaseGrant(&context, request, &response), "LeaseGrant");
      leases_.push_back(response.id());
    }
  }

  void run() {
    std::vector<Call> calls(std::min(calls_at_once, locks_));
    for (auto& call : calls) {
      ask(call);
    }
    void* tag = nullptr;
    bool is_ok = false;
    for (std::size_t answers = 0; answers < locks_ && queue_.Next(&tag, &is_ok); ++answers) {
      auto& call = *static_cast<Call*>(tag);
      insist(call.status, "Lock");
      if (next_ < locks_) {
        ask(call);
      }
    }
  }

 private:
  static constexpr std::size_t locks_per_lease = 50'000;
  static constexpr std::size_t calls_at_once = 256;

  struct Call {
    std::optional<::grpc::ClientContext> context{};
    v1::LockResponse response{};
    ::grpc::Status status{};
    std::unique_ptr<::grpc::ClientAsyncResponseReader<v1::LockResponse>> answer{};
  };

  void ask(Call& call) {
    const auto number = next_++;
    v1::LockRequest request;
    request.set_lease_id(leases_[number / locks_per_lease]);
    request.set_name("filled/" + std::to_string(number));
    call.answer = stub_->AsyncLock(&call.context.emplace(), request, &queue_);
    call.answer->Finish(&call.response, &call.status, &call);
  }

  std::unique_ptr<v1::LockService::Stub> stub_;
  ::grpc::CompletionQueue queue_;
  std::size_t locks_;
  std::size_t next_ = 0;
  std::vector<std::uint64_t> leases_;
};

void fill(const std::string& address, std::size_t locks) {
  const auto began = Clock::now();
  Filler(address, locks).run();
  std::printf("{\"locks\": %zu, \"seconds\": %.3f}\n", locks, microseconds_since(began) / 1e6);
}

void snapshot(const std::string& address) {
  const auto stub = v1::Admin::NewStub(connect(address));
  ::grpc::ClientContext context;
  v1::SnapshotResponse response;
  const auto began = Clock::now();
  insist(stub->Snapshot(&context, {}, &response), "Snapshot");
  std::printf("{\"seconds\": %.3f}\n", microseconds_since(began) / 1e6);
}

void transfer(const std::string& address) {
  const auto stub = v1::Admin::NewStub(connect(address));
  ::grpc::ClientContext context;
  v1::TransferLeadershipResponse response;
  insist(stub->TransferLeadership(&context, {}, &response), "TransferLeadership");
}

template <class Client>
bool drive(const std::vector<std::string>& given) {
  using std::chrono::seconds;
  const auto& what = given[1];
  if (given.size() == 5 && what == "cycles") {
    run<Client>(given[2], std::stoul(given[3]),
                {Load::Kind::cycles, {.duration = seconds(std::stoi(given[4]))}});
  } else if (given.size() == 5 && what == "hand-over") {
    // The given number of clients waits, and one holds.
    run<Client>(given[2], std::stoul(given[3]) + 1,
                {Load::Kind::hand_over, {.duration = seconds(std::stoi(given[4]))}});
  } else if (given.size() == 5 && what == "threads") {
    run_blocking<Client>(given[2], std::stoul(given[3]), Load::Kind::cycles,
                         seconds(std::stoi(given[4])));
  } else if (given.size() == 5 && what == "hand-over-threads") {
    run_blocking<Client>(given[2], std::stoul(given[3]) + 1, Load::Kind::hand_over,
                         seconds(std::stoi(given[4])));
  } else if (given.size() == 5 && what == "hold") {
    hold<Client>(given[2], {.name = given[3], .ttl = seconds(std::stoi(given[4]))});
  } else if (given.size() == 4 && what == "wait") {
    wait<Client>(given[2], {.name = given[3]});
  } else {
    return false;
  }
  return true;
}

/// Runs the load that the arguments name. False: they are invalid.
bool run_command(const std::vector<std::string>& given) {
  if (given.size() == 3 && given[0] == "fill") {
    fill(given[1], std::stoul(given[2]));
  } else if (given.size() == 2 && given[0] == "snapshot") {
    snapshot(given[1]);
  } else if (given.size() == 2 && given[0] == "transfer") {
    transfer(given[1]);
  } else if (given.size() > 2 && given[0] == "tenure") {
    return drive<TenureClient>(given);
  } else if (given.size() > 2 && given[0] == "etcd") {
    return drive<EtcdClient>(given);
  } else {
    return false;
  }
  return true;
}

}  // namespace
}  // namespace tenure::bench

int main(int count, char** arguments) {
  // As tenured does: Debian's Abseil otherwise checks the order of all of gRPC's locks.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (!tenure::bench::run_command(std::vector<std::string>(arguments + 1, arguments + count))) {
    std::fputs(
        "usage: service_load tenure|etcd cycles|hand-over HOST:PORT CLIENTS SECONDS\n"
        "       service_load tenure|etcd threads|hand-over-threads HOST:PORT CLIENTS SECONDS\n"
        "       service_load tenure|etcd hold HOST:PORT NAME TTL_SECONDS\n"
        "       service_load tenure|etcd wait HOST:PORT NAME\n"
        "       service_load fill HOST:PORT LOCKS\n"
        "       service_load snapshot|transfer HOST:PORT\n",
        stderr);
    return 64;
  }
  return 0;
}
