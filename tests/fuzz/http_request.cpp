// What comes with an HTTP request: its target, its body, its Host and Cookie fields. The input is a
// target and a body, with a line end between them.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>

#include "fuzz/input.hpp"
#include "server/http/body.hpp"
#include "server/http/message.hpp"

namespace tenure::fuzz {
namespace {

using namespace server::http;

void read_target(std::string_view target) {
  const auto request = parse_target(target);
  if (!request) {
    return;
  }
  require(request->path.starts_with('/'), "a path begins with a slash");
  require(request->path.size() <= target.size(), "decoding makes nothing longer");
  require(request->query.size() <= 32, "a bounded number of parameters");
  static_cast<void>(request->parameter("prefix"));
}

void read_bodies(std::string_view text) {
  static_cast<void>(read_body(text, [](Body& body) {
    static_cast<void>(body.required_text("owner"));
    static_cast<void>(body.milliseconds("ttl_ms"));
    return body.required_number("lease_id");
  }));
  static_cast<void>(read_body(text, [](Body& body) {
    static_cast<void>(body.text("token"));
    return body.number("wait_ms");
  }));
}

}  // namespace
}  // namespace tenure::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenure::fuzz;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto end = std::min(text.find('\n'), text.size());
  const auto target = text.substr(0, end);
  const auto body = text.substr(std::min(end + 1, text.size()));
  read_target(target);
  read_bodies(body);
  static_cast<void>(is_allowed_host(target, body.substr(0, 64)));
  const auto cookie = cookie_in(body, "tenure");
  require(cookie.size() <= body.size(), "a cookie is a part of its field");
  return 0;
}
