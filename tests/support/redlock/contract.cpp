#include "support/contract/contract.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/redlock/backend.hpp"
#include "backends/redlock/command_encoder.hpp"
#include "backends/redlock/scripts.hpp"
#include "backends/schemes.hpp"
#include "support/redlock/servers.hpp"
#include "sys/mutex.hpp"

namespace tenure::test {
namespace {

namespace redlock = backends::redlock;

/// Number of waiters by lock. The servers do not know it, because waiters queue in their client.
struct WaiterCounts {
  sys::Mutex mutex;
  std::map<std::string, std::size_t> counts TENURE_GUARDED_BY(mutex);

  void add(const std::string& name, std::size_t count) {
    const sys::MutexGuard lock(mutex);
    counts[name] += count;
  }
  [[nodiscard]] std::size_t of(const std::string& name) {
    const sys::MutexGuard lock(mutex);
    return counts[name];
  }
};

/// Decorator that counts pending acquires.
class CountingBackend : public backends::Backend {
 public:
  CountingBackend(std::unique_ptr<backends::Backend> inner, std::shared_ptr<WaiterCounts> waiters)
      : waiters_(std::move(waiters)), inner_(std::move(inner)) {}

  [[nodiscard]] backends::Capabilities capabilities() const noexcept override {
    return inner_->capabilities();
  }
  [[nodiscard]] backends::Limits limits() const noexcept override { return inner_->limits(); }
  void start(backends::Listener& listener) override { inner_->start(listener); }
  void grant_lease(backends::LeaseRequest request, Done<void> done) override {
    inner_->grant_lease(std::move(request), std::move(done));
  }
  void renew_leases(std::vector<LeaseId> leases, Done<backends::Renewed> done) override {
    inner_->renew_leases(std::move(leases), std::move(done));
  }
  void set_ttl(backends::TtlRequest request, Done<void> done) override {
    inner_->set_ttl(request, std::move(done));
  }
  void revoke_lease(LeaseId lease, Done<void> done) override {
    inner_->revoke_lease(lease, std::move(done));
  }
  void acquire(backends::AcquireRequest request, Done<backends::Granted> done) override {
    const auto name = request.spec->items.front().name;
    waiters_->add(name, 1);
    inner_->acquire(std::move(request),
                    [waiters = waiters_, name, done = std::move(done)](auto answer) mutable {
                      waiters->add(name, static_cast<std::size_t>(-1));
                      done(std::move(answer));
                    });
  }
  void abandon(LeaseId lease, backends::RequestId request) override {
    inner_->abandon(lease, request);
  }
  void release(backends::ReleaseRequest request, Done<void> done) override {
    inner_->release(std::move(request), std::move(done));
  }
  backends::WatchId watch(backends::WatchRequest request, Sink sink) override {
    return inner_->watch(std::move(request), std::move(sink));
  }
  void unwatch(backends::WatchId watch) override { inner_->unwatch(watch); }
  [[nodiscard]] sys::Parker& parker() noexcept override { return inner_->parker(); }
  void holders(std::string name, Done<std::vector<Holder>> done) override {
    inner_->holders(std::move(name), std::move(done));
  }

 private:
  std::shared_ptr<WaiterCounts> waiters_;
  std::unique_ptr<backends::Backend> inner_;
};

/// Makes connect() wrap the backends of redlock:// in a CountingBackend.
void count_waiters_in(std::shared_ptr<WaiterCounts> waiters) {
  static const auto library = std::make_shared<backends::OpenBackend>();
  const auto open = [waiters = std::move(waiters)](backends::Url& url,
                                                   const ConnectOptions& options) {
    auto opened = (*library)(url, options);
    if (opened) {
      opened = std::make_unique<CountingBackend>(*std::move(opened), waiters);
    }
    return opened;
  };
  auto before = backends::add_scheme("redlock", open);
  if (!*library) {
    *library = std::move(before);
  }
}

class RedlockService : public ContractService {
 public:
  RedlockService() { count_waiters_in(waiters_); }
  [[nodiscard]] std::unique_ptr<backends::Backend> open() override {
    constexpr std::chrono::seconds test_timeout{5};
    auto url = backends::parse_url(this->url()).value();
    return std::make_unique<CountingBackend>(
        redlock::RedlockBackend::open(redlock::deployment_from(url, test_timeout).value(),
                                      test_timeout)
            .value(),
        waiters_);
  }
  bool force_release(const std::string& name) override {
    std::size_t taken = 0;
    for (std::size_t n = 0; n < servers_.size(); ++n) {
      const auto answer = servers_[n].command(
          {"EVAL", std::string(redlock::text_of(redlock::Script::force_release).text), "1",
           "{tenure:" + name + "}", "tenure:wake:", name});
      taken += answer == "1" ? 1 : 0;
    }
    return taken > servers_.size() / 2;
  }
  [[nodiscard]] std::optional<std::size_t> waiters(const std::string& name) override {
    return waiters_->of(name);
  }
  [[nodiscard]] std::string url() const override { return servers_.url(); }

 private:
  RedlockServers servers_{3};
  std::shared_ptr<WaiterCounts> waiters_ = std::make_shared<WaiterCounts>();
};

}  // namespace

std::unique_ptr<ContractService> start_redlock_service() {
  return std::make_unique<RedlockService>();
}

}  // namespace tenure::test
