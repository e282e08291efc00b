#include "backends/zookeeper/backend.hpp"

#include <utility>

#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/connect_check.hpp"
#include "backends/zookeeper/errors.hpp"

namespace tenure::backends::zookeeper {

ZookeeperBackend::ZookeeperBackend(Address address) : address_(std::move(address)) {
  locks_ = std::make_unique<Locks>(
      Locks::Environment{.strand = *this,
                         .timers = timers_,
                         .deferred = deferred_,
                         .address = address_,
                         .opened = [this](Result<void> opened) TENURE_NO_THREAD_SAFETY_ANALYSIS {
                           if (!opened_ && opened) {
                             check_chroot();
                           } else if (!opened_) {
                             opened_ = std::move(opened);
                             changed_.notify_all();
                           }
                         }});
}

Result<std::unique_ptr<ZookeeperBackend>> ZookeeperBackend::open(
    Address address, std::chrono::milliseconds timeout) {
  const auto began = std::chrono::steady_clock::now();
  // The C client would retry for ever without a reason, so a wrong address is detected here.
  if (auto reached = check_connectivity(address, timeout); !reached) {
    return std::unexpected(std::move(reached).error());
  }
  auto backend = std::make_unique<ZookeeperBackend>(std::move(address));
  backend->dispatch([&] { backend->locks_->open(); });
  const auto spent = std::chrono::steady_clock::now() - began;
  if (auto opened = backend->wait_until_open(
          timeout - std::chrono::duration_cast<std::chrono::milliseconds>(spent));
      !opened) {
    return std::unexpected(std::move(opened).error());
  }
  return backend;
}

ZookeeperBackend::~ZookeeperBackend() {
  // In this order: end() completes all callbacks, stop() ends the timers that use the locks, and
  // the sessions are closed off the strand.
  dispatch([this] { locks_->end(); });
  timers_.stop();
  locks_.reset();
}

// User callbacks run after the mutex is released, in the order in which they were deferred.
void ZookeeperBackend::dispatch(Job job) {
  std::vector<Job> calls;
  {
    const sys::MutexGuard lock(mutex_);
    job();
    calls = deferred_.take();
  }
  for (auto& call : calls) {
    call();
  }
}

Result<void> ZookeeperBackend::wait_until_open(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const sys::MutexGuard lock(mutex_);
  while (!opened_) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= std::chrono::steady_clock::duration::zero()) {
      return fail(Errc::unavailable, hosts_of(address_) +
                                         ": it does not respond; is it ZooKeeper, and does it have "
                                         "a quorum?");
    }
    changed_.wait_for(mutex_, left);
  }
  return *opened_;
}

/// Verifies before connect() returns that the chroot is readable and can have children.
void ZookeeperBackend::check_chroot() {
  const auto path = address_.chroot.empty() ? std::string("/") : address_.chroot;
  locks_->sessions().front()->get(
      path, [this, path](const Reply& reply) TENURE_NO_THREAD_SAFETY_ANALYSIS {
        if (opened_) {
          return;
        }
        opened_ = Result<void>();
        if (reply.code != ZOK && reply.code != ZNONODE) {
          opened_ = std::unexpected(error_from(reply.code, path));
        } else if (reply.ephemeral_owner != 0) {
          opened_ = std::unexpected(error_from(ZNOCHILDRENFOREPHEMERALS, path));
        }
        changed_.notify_all();
      });
}

Capabilities ZookeeperBackend::capabilities() const noexcept {
  return {Capability::fencing,          Capability::fifo,      Capability::shared,
          Capability::semaphore,        Capability::one_lease, Capability::reentry,
          Capability::outlives_process, Capability::failover};
}

void ZookeeperBackend::start(Listener& listener) {
  dispatch([&] { locks_->set_listener(&listener); });
}

std::vector<ZookeeperBackend::Identity> ZookeeperBackend::identities() {
  std::vector<Identity> all;
  dispatch([&] {
    for (auto* const session : locks_->sessions()) {
      if (session->is_connected()) {
        const auto& connection = session->connection();
        all.push_back({.session = connection.session(),
                       .password = connection.password(),
                       .requests = connection.requests(),
                       .events = connection.events()});
      }
    }
  });
  return all;
}

}  // namespace tenure::backends::zookeeper
