#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "backends/backend.hpp"
#include "client/factory.hpp"
#include "client/session.hpp"
#include "support/silent_backend.hpp"

namespace tenure::test {

/// A lock service that a contract test runs against, started for it alone.
class ContractService {
 public:
  ContractService() = default;
  ContractService(const ContractService&) = delete;
  ContractService& operator=(const ContractService&) = delete;
  virtual ~ContractService() = default;

  /// Opens another client of the service.
  [[nodiscard]] virtual std::unique_ptr<backends::Backend> open() = 0;
  /// Force-releases a lock as an operator. Returns false if it was free.
  virtual bool force_release(const std::string& name) = 0;
  /// Number of waiters of a name; for backends without the capability `watches`.
  [[nodiscard]] virtual std::optional<std::size_t> waiters(const std::string& /*name*/) {
    return std::nullopt;
  }
  /// URL for other processes; for backends with the capability `outlives_process`.
  [[nodiscard]] virtual std::string url() const { return {}; }
  /// URL for this process. Empty if the test must access the backend.
  [[nodiscard]] virtual std::string url_here() const { return url(); }
};

/// A real lock service with its log on disk, in this process; rpc_contract.cpp.
[[nodiscard]] std::unique_ptr<ContractService> start_tenure_service();
/// The same behind TLS, with certificates at both ends.
[[nodiscard]] std::unique_ptr<ContractService> start_tenure_tls_service();

/// A real redis-server of its own; redis_contract.cpp.
[[nodiscard]] std::unique_ptr<ContractService> start_redis_service();
/// A primary, its replica and Sentinels, shared by the tests of one process.
[[nodiscard]] std::unique_ptr<ContractService> start_redis_group_service();
/// The same for a cluster of six.
[[nodiscard]] std::unique_ptr<ContractService> start_redis_cluster_service();

/// Three Redis servers that vote; redlock_contract.cpp.
[[nodiscard]] std::unique_ptr<ContractService> start_redlock_service();

/// A key prefix on one real etcd that all tests of the process share; etcd_contract.cpp.
[[nodiscard]] std::unique_ptr<ContractService> start_etcd_service();

/// A chroot of its own on a ZooKeeper that the tests of a process share; zookeeper_contract.cpp.
[[nodiscard]] std::unique_ptr<ContractService> start_zookeeper_service();

/// One line of the table of backends.
struct ContractBackend {
  std::string name;
  std::function<std::unique_ptr<ContractService>()> start;
};
/// Printer for gtest, which would print bytes.
void PrintTo(const ContractBackend& backend, std::ostream* out);

/// Every backend. A new backend is added only here.
[[nodiscard]] const std::vector<ContractBackend>& contract_backends();

/// Contract suite for all backends, written against the public classes. A backend without a
/// capability must answer `unsupported`; the test then verifies that instead of being skipped.
class Contract : public ::testing::TestWithParam<ContractBackend> {
 protected:
  using Network = SilentBackend::Network;

  /// A client of its own, as if in another process.
  [[nodiscard]] Client connect(ConnectOptions options = {}) {
    const auto url = service->url_here();
    return url.empty() ? connect(std::move(options), std::make_shared<Network>())
                       : tenure::connect(url, std::move(options)).value();
  }
  /// One whose network falls silent when the test wants it.
  [[nodiscard]] Client connect(ConnectOptions options, std::shared_ptr<Network> network) {
    return detail::Factory::make<Client>(std::make_shared<detail::Session>(
        std::make_unique<SilentBackend>(service->open(), std::move(network)), std::move(options)));
  }
  [[nodiscard]] bool supports(backends::Capability promise) {
    return service->open()->capabilities().has(promise);
  }

  std::unique_ptr<ContractService> service = GetParam().start();
  Client ann = connect({.owner = "ann"});
  Client bob = connect({.owner = "bob"});
};

#define TENURE_CONTRACT(suite)                                                        \
  using suite = Contract;                                                             \
  INSTANTIATE_TEST_SUITE_P(Backends, suite, ::testing::ValuesIn(contract_backends()), \
                           [](const auto& backend) { return backend.param.name; })

}  // namespace tenure::test
