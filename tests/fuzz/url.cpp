// URLs of connect(): their parts, their servers, their logins, and the address of ZooKeeper.

#include "backends/url.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "backends/zookeeper/address.hpp"
#include "fuzz/input.hpp"

namespace tenure::fuzz {
namespace {

using namespace backends;

void check_positions(const Url& url, std::size_t size) {
  require(url.authority.position <= size && url.path.position <= size, "positions in the URL");
  for (const auto& parameter : url.parameters) {
    require(parameter.key.position <= size && parameter.value.position <= size,
            "positions of parameters in the URL");
  }
}

void use(const Url& url, std::string_view text) {
  check_positions(url, text.size());
  auto plain = url;
  const auto login = take_login(plain);
  require(login.has_value() == (url.login_bytes > 0), "a login is there or not");
  if (const auto endpoints = endpoints_of(plain, 1)) {
    require(!endpoints->empty(), "at least one server");
    for (const auto& endpoint : *endpoints) {
      require(endpoint.port != 0 && !endpoint.host.empty(), "a server has a host and a port");
      static_cast<void>(name_of(endpoint));
    }
  }
  auto for_zookeeper = url;
  if (const auto address =
          zookeeper::address_from(for_zookeeper, std::chrono::milliseconds(1000))) {
    static_cast<void>(zookeeper::hosts_of(*address));
  }
}

}  // namespace
}  // namespace tenure::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenure;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto url = backends::parse_url(text)) {
    fuzz::use(*url, text);
  }
  const auto shown = backends::without_secrets(text);
  fuzz::require(shown.size() <= text.size() + 3, "what is shown is not longer");
  return 0;
}
