#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/error.hpp>

namespace tenure::server::http {

/// What is asked for: the target of a request, taken apart.
struct Request {
  std::string path{};  ///< Without percent signs; starts with '/'. Holds any bytes.
  std::map<std::string, std::string, std::less<>> query{};
  std::string last_event_id{};  ///< Of the header, for event streams.

  /// The value of a parameter, or nothing.
  [[nodiscard]] std::optional<std::string_view> parameter(std::string_view name) const;
};

/// Takes a target such as `/v1/locks/a%2Fb?limit=3` apart. In the query '+' is a space.
[[nodiscard]] Result<Request> parse_target(std::string_view target);

/// May a request come with this Host header? With a number, `localhost`, none at all, or one of the
/// names in `allowed` ("a.example,b.example", or "*"). Otherwise somebody may have pointed a name
/// of his at our address, to read the answers from a page of his (DNS rebinding).
[[nodiscard]] bool is_known_host(std::string_view host, std::string_view allowed);

struct Response {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> fields{};
};

/// Called once, on any thread.
using Reply = std::move_only_function<void(Response)>;

/// An error as RFC 9457 has it.
[[nodiscard]] Response problem(unsigned status, std::string_view title, std::string_view detail);

}  // namespace tenure::server::http
