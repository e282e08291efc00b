#include "support/contract/contract.hpp"

#include <atomic>
#include <chrono>
#include <string>

#include "backends/etcd/backend.hpp"
#include "backends/etcd/queue.hpp"
#include "support/etcd/server.hpp"

namespace tenure::test {
namespace {

namespace etcd = backends::etcd;

/// A key prefix of the shared server that no other test uses.
class EtcdService : public ContractService {
 public:
  [[nodiscard]] std::unique_ptr<backends::Backend> open() override {
    constexpr std::chrono::seconds test_timeout{5};
    auto url = backends::parse_url(this->url()).value();
    return etcd::EtcdBackend::open(etcd::address_from(url, test_timeout).value(), test_timeout)
        .value();
  }
  bool force_release(const std::string& name) override {
    const auto all = shared_etcd().keys(folder_of(name));
    const auto count = etcd::holders_in(folder_of(name), all).size();
    for (std::size_t n = 0; n < count; ++n) {
      shared_etcd().remove(all.kvs(static_cast<int>(n)).key());
    }
    return count > 0;
  }
  [[nodiscard]] std::optional<std::size_t> waiters(const std::string& name) override {
    const auto all = shared_etcd().keys(folder_of(name));
    return static_cast<std::size_t>(all.kvs_size()) - etcd::holders_in(folder_of(name), all).size();
  }
  [[nodiscard]] std::string url() const override { return shared_etcd().url("/" + root_); }

 private:
  [[nodiscard]] std::string folder_of(const std::string& name) const {
    return etcd::folder_of(root_ + "/", name);
  }
  static std::string fresh_root() {
    static std::atomic<int> count = 0;
    return "test" + std::to_string(++count);
  }

  std::string root_ = fresh_root();
};

}  // namespace

std::unique_ptr<ContractService> start_etcd_service() {
  return std::make_unique<EtcdService>();
}

}  // namespace tenure::test
