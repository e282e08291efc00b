// A load of lock + unlock cycles over unary gRPC calls, the same for Tenure and for etcd:
//
//   service_load tenure|etcd HOST:PORT CLIENTS SECONDS
//   service_load fill HOST:PORT LOCKS
//
// Each client has its own lock and its own lease and begins the next cycle when the last one is
// through. All clients share one connection and one thread with a completion queue, the cheapest
// way gRPC has: the load shares the machine with the server. Prints one line of JSON. `fill` takes
// so many locks and leaves them held: for measuring a recovery.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include "etcd_lease.grpc.pb.h"
#include "etcd_lock.grpc.pb.h"
#include "tenure/v1/lock.grpc.pb.h"

namespace tenure::bench {
namespace {

using Clock = std::chrono::steady_clock;

void insist(const grpc::Status& status, const char* what) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s: %s\n", what, status.error_message().c_str());
    std::exit(1);
  }
}

/// One call under way.
struct Turn {
  grpc::CompletionQueue& queue;
  void* tag;
  std::optional<grpc::ClientContext> context{};
  grpc::Status status{};
};

/// One of Tenure's clients.
class TenureClient {
 public:
  TenureClient(const std::shared_ptr<grpc::Channel>& channel, std::size_t number)
      : stub_(v1::LockService::NewStub(channel)) {
    grpc::ClientContext context;
    v1::LeaseGrantRequest request;
    request.set_ttl_ms(600'000);
    v1::LeaseGrantResponse lease;
    insist(stub_->LeaseGrant(&context, request, &lease), "LeaseGrant");
    lock_.set_name("bench/" + std::to_string(number));
    lock_.set_lease_id(lease.id());
    unlock_.set_lease_id(lease.id());
  }

  void lock(Turn& turn) {
    locked_.Clear();
    locking_ = stub_->AsyncLock(&*turn.context, lock_, &turn.queue);
    locking_->Finish(&locked_, &turn.status, turn.tag);
  }
  void unlock(Turn& turn) {
    unlock_.set_fencing_token(locked_.fencing_token());
    unlocking_ = stub_->AsyncUnlock(&*turn.context, unlock_, &turn.queue);
    unlocking_->Finish(&unlocked_, &turn.status, turn.tag);
  }

 private:
  std::unique_ptr<v1::LockService::Stub> stub_;
  v1::LockRequest lock_;
  v1::LockResponse locked_;
  v1::UnlockRequest unlock_;
  v1::UnlockResponse unlocked_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::LockResponse>> locking_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::UnlockResponse>> unlocking_;
};

/// One of etcd's.
class EtcdClient {
 public:
  EtcdClient(const std::shared_ptr<grpc::Channel>& channel, std::size_t number)
      : stub_(v3lockpb::Lock::NewStub(channel)) {
    grpc::ClientContext context;
    etcdserverpb::LeaseGrantRequest request;
    request.set_ttl(600);
    etcdserverpb::LeaseGrantResponse lease;
    insist(etcdserverpb::Lease::NewStub(channel)->LeaseGrant(&context, request, &lease),
           "LeaseGrant");
    lock_.set_name("bench/" + std::to_string(number));
    lock_.set_lease(lease.id());
  }

  void lock(Turn& turn) {
    locking_ = stub_->AsyncLock(&*turn.context, lock_, &turn.queue);
    locking_->Finish(&locked_, &turn.status, turn.tag);
  }
  void unlock(Turn& turn) {
    unlock_.set_key(locked_.key());
    unlocking_ = stub_->AsyncUnlock(&*turn.context, unlock_, &turn.queue);
    unlocking_->Finish(&unlocked_, &turn.status, turn.tag);
  }

 private:
  std::unique_ptr<v3lockpb::Lock::Stub> stub_;
  v3lockpb::LockRequest lock_;
  v3lockpb::LockResponse locked_;
  v3lockpb::UnlockRequest unlock_;
  v3lockpb::UnlockResponse unlocked_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v3lockpb::LockResponse>> locking_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v3lockpb::UnlockResponse>> unlocking_;
};

/// Cycle after cycle until the time is over.
template <class Client>
class Driver {
 public:
  Driver(const std::shared_ptr<grpc::Channel>& channel, std::size_t number,
         grpc::CompletionQueue& queue)
      : client_(channel, number), turn_{.queue = queue, .tag = this} {}

  void start(Clock::time_point counts_from, Clock::time_point ends) {
    counts_from_ = counts_from;
    ends_ = ends;
    lock();
  }
  /// The call that was under way is answered. False: this client is through.
  [[nodiscard]] bool answered() {
    insist(turn_.status, is_locked_ ? "Unlock" : "Lock");
    if (!is_locked_) {
      is_locked_ = true;
      turn_.context.emplace();
      client_.unlock(turn_);
      return true;
    }
    is_locked_ = false;
    const auto now = Clock::now();
    if (began_ >= counts_from_ && now < ends_) {
      microseconds_.push_back(static_cast<std::uint32_t>(
          std::chrono::duration_cast<std::chrono::microseconds>(now - began_).count()));
    }
    return lock();
  }
  [[nodiscard]] const std::vector<std::uint32_t>& microseconds() const { return microseconds_; }

 private:
  bool lock() {
    began_ = Clock::now();
    if (began_ >= ends_) {
      return false;
    }
    turn_.context.emplace();
    client_.lock(turn_);
    return true;
  }

  Client client_;
  Turn turn_;
  bool is_locked_ = false;
  Clock::time_point began_;
  Clock::time_point counts_from_;
  Clock::time_point ends_;
  std::vector<std::uint32_t> microseconds_;
};

std::shared_ptr<grpc::Channel> connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

template <class Client>
void run(const std::string& address, std::size_t clients, std::chrono::seconds duration) {
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Driver<Client>>> drivers;
  const auto channel = connect(address);
  for (std::size_t n = 0; n < clients; ++n) {
    drivers.push_back(std::make_unique<Driver<Client>>(channel, n, queue));
  }
  const auto counts_from = Clock::now() + std::chrono::milliseconds(500);
  for (auto& driver : drivers) {
    driver->start(counts_from, counts_from + duration);
  }
  std::vector<std::uint32_t> all;
  void* tag = nullptr;
  bool is_ok = false;
  for (auto left = clients; left > 0 && queue.Next(&tag, &is_ok);) {
    left -= static_cast<Driver<Client>*>(tag)->answered() ? 0U : 1U;
  }
  for (auto& driver : drivers) {
    all.insert(all.end(), driver->microseconds().begin(), driver->microseconds().end());
  }
  std::ranges::sort(all);
  const auto at = [&](double part) {
    return all.empty() ? 0U
                       : all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))];
  };
  std::printf("{\"cycles\": %zu, \"seconds\": %lld, \"p50_us\": %u, \"p99_us\": %u}\n", all.size(),
              static_cast<long long>(duration.count()), at(0.5), at(0.99));
}

void fill(const std::string& address, std::size_t locks) {
  constexpr std::size_t locks_per_request = 64;
  constexpr std::size_t locks_per_lease = 50'000;
  const auto stub = v1::LockService::NewStub(connect(address));
  std::uint64_t lease = 0;
  for (std::size_t n = 0; n < locks; n += locks_per_request) {
    if (n % locks_per_lease < locks_per_request) {
      grpc::ClientContext context;
      v1::LeaseGrantRequest request;
      request.set_ttl_ms(3'600'000);
      v1::LeaseGrantResponse response;
      insist(stub->LeaseGrant(&context, request, &response), "LeaseGrant");
      lease = response.id();
    }
    grpc::ClientContext context;
    v1::LockRequest request;
    request.set_lease_id(lease);
    for (std::size_t k = n; k < std::min(locks, n + locks_per_request); ++k) {
      request.add_items()->set_name("filled/" + std::to_string(k));
    }
    v1::LockResponse response;
    insist(stub->Lock(&context, request, &response), "Lock");
  }
  std::printf("{\"locks\": %zu}\n", locks);
}

}  // namespace
}  // namespace tenure::bench

int main(int count, char** arguments) {
  using namespace tenure::bench;
  // As tenured does: Debian's Abseil otherwise checks the order of all of gRPC's locks.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const std::vector<std::string> given(arguments + 1, arguments + count);
  if (given.size() == 3 && given[0] == "fill") {
    fill(given[1], std::stoul(given[2]));
  } else if (given.size() == 4 && given[0] == "tenure") {
    run<TenureClient>(given[1], std::stoul(given[2]), std::chrono::seconds(std::stoi(given[3])));
  } else if (given.size() == 4 && given[0] == "etcd") {
    run<EtcdClient>(given[1], std::stoul(given[2]), std::chrono::seconds(std::stoi(given[3])));
  } else {
    std::fputs(
        "usage: service_load tenure|etcd HOST:PORT CLIENTS SECONDS\n"
        "       service_load fill HOST:PORT LOCKS\n",
        stderr);
    return 64;
  }
  return 0;
}
