#include "support/contract.hpp"

#include <atomic>
#include <string>

#include "backends/memory/memory_backend.hpp"
#include "backends/memory/memory_store.hpp"

namespace tenure::test {
namespace {

/// The store of a name that nobody else uses; as the library opens it, or without thin holds.
class MemoryService : public ContractService {
 public:
  explicit MemoryService(backends::ThinHolds thin)
      : thin_(thin),
        store_(thin == backends::ThinHolds::on
                   ? backends::MemoryStore::named(name_)
                   : std::make_shared<backends::MemoryStore>(sys::real_clock(), thin)) {}

  [[nodiscard]] std::unique_ptr<backends::Backend> open() override {
    return std::make_unique<backends::MemoryBackend>(store_);
  }
  bool force_release(const std::string& name) override { return store_->force_release(name); }
  [[nodiscard]] std::string url_here() const override {
    return thin_ == backends::ThinHolds::on ? "memory://" + name_ : std::string();
  }

 private:
  static std::string fresh_name() {
    static std::atomic<int> count = 0;
    return "contract" + std::to_string(++count);
  }

  std::string name_ = fresh_name();
  backends::ThinHolds thin_;
  std::shared_ptr<backends::MemoryStore> store_;
};

ContractBackend memory(std::string name, backends::ThinHolds thin) {
  return {.name = std::move(name),
          .start = [thin] { return std::make_unique<MemoryService>(thin); }};
}

}  // namespace

void PrintTo(const ContractBackend& backend, std::ostream* out) {
  *out << backend.name;
}

const std::vector<ContractBackend>& contract_backends() {
  static const std::vector<ContractBackend> all{
      memory("memory", backends::ThinHolds::on),
      memory("memory_without_thin_holds", backends::ThinHolds::off),
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
