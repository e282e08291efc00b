// The configuration file and the file of users. A configuration that is accepted and printed is
// read back as the same one.

#include <cstddef>
#include <string>
#include <string_view>

#include "fuzz/input.hpp"
#include "server/auth/policy.hpp"
#include "server/config/config.hpp"
#include "server/config/config_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenure;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  server::Config config;
  if (server::read_config(text, "fuzz.toml", config)) {
    static_cast<void>(server::check(config));
    const auto printed = server::print_config(config);
    server::Config again;
    fuzz::require(server::read_config(printed, "printed.toml", again).has_value(),
                  "a printed configuration is read");
    fuzz::require(server::print_config(again) == printed, "and is the same");
  }
  if (const auto users = server::auth::parse_policy(text, "users.toml")) {
    fuzz::require(users->users() > 0, "a file of users has one");
  }
  return 0;
}
