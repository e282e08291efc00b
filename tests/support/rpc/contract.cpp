#include "support/contract/contract.hpp"

#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <variant>

#include "backends/tenured/backend.hpp"
#include "backends/tenured/url.hpp"
#include "support/rpc/certificates.hpp"
#include "support/rpc/service.hpp"

namespace tenure::test {
namespace {

class TenureService : public ContractService {
 public:
  TenureService() : TenureService(server::RpcOptions{}, "") {}

  [[nodiscard]] std::unique_ptr<backends::Backend> open() override {
    constexpr std::chrono::seconds test_timeout{5};
    auto url = backends::parse_url(this->url()).value();
    return backends::tenured::TenuredBackend::open(
               backends::tenured::servers_from(url, test_timeout).value(), "contract", test_timeout)
        .value();
  }
  bool force_release(const std::string& name) override {
    std::promise<bool> done;
    service_.node().propose(core::ForceRelease{.resource = {.name = name}},
                            [&](const Result<server::Decided>& decided) {
                              const auto* forced =
                                  std::get_if<core::Forced>(&decided.value().outcome);
                              done.set_value(forced != nullptr && forced->holds > 0);
                            });
    return done.get_future().get();
  }
  [[nodiscard]] std::string url() const override { return service_.url(url_options_); }

 protected:
  TenureService(server::RpcOptions options, std::string url_options)
      : service_(std::move(options)), url_options_(std::move(url_options)) {}

 private:
  RpcService service_;
  std::string url_options_;
};

/// Mutual TLS.
struct Papers {
  Authority authority;
  Certificate server = authority.sign({.name = "server"});
  Certificate client = authority.sign({.name = "client"});
};
class TenureTlsService : private Papers, public TenureService {
 public:
  TenureTlsService()
      : TenureService({.tls = authority.mutual_files(server)},
                      "?tls_ca=" + authority.file().string() + "&tls_cert=" + client.file.string() +
                          "&tls_key=" + client.key.string()) {}
};

}  // namespace

std::unique_ptr<ContractService> start_tenure_service() {
  return std::make_unique<TenureService>();
}

std::unique_ptr<ContractService> start_tenure_tls_service() {
  return std::make_unique<TenureTlsService>();
}

}  // namespace tenure::test
