#include "support/contract/contract.hpp"

#include <atomic>
#include <string>

#include "backends/memory/backend.hpp"
#include "backends/memory/store.hpp"

namespace tenure::test {
namespace {

/// A named store that no other test uses, as the library opens it.
class MemoryService : public ContractService {
 public:
  [[nodiscard]] std::unique_ptr<backends::Backend> open() override {
    return std::make_unique<backends::MemoryBackend>(store_);
  }
  bool force_release(const std::string& name) override { return store_->force_release(name); }
  [[nodiscard]] std::string url_here() const override { return "memory://" + name_; }

 private:
  static std::string fresh_name() {
    static std::atomic<int> count = 0;
    return "contract" + std::to_string(++count);
  }

  std::string name_ = fresh_name();
  std::shared_ptr<backends::MemoryStore> store_ = backends::MemoryStore::named(name_);
};

}  // namespace

void PrintTo(const ContractBackend& backend, std::ostream* out) {
  *out << backend.name;
}

const std::vector<ContractBackend>& contract_backends() {
  static const std::vector<ContractBackend> all{
      {.name = "memory", .start = [] { return std::make_unique<MemoryService>(); }},
#ifdef TENURE_WITH_SERVER
      {.name = "tenure", .start = start_tenure_service},
      {.name = "tenure_tls", .start = start_tenure_tls_service},
#endif
      {.name = "redis", .start = start_redis_service},
      {.name = "redis_sentinel", .start = start_redis_group_service},
      {.name = "redis_cluster", .start = start_redis_cluster_service},
      {.name = "redlock", .start = start_redlock_service},
      {.name = "etcd", .start = start_etcd_service},
#ifdef TENURE_WITH_ZOOKEEPER
      {.name = "zookeeper", .start = start_zookeeper_service},
#endif
  };
  return all;
}

}  // namespace tenure::test
