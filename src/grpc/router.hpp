#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <absl/container/flat_hash_map.h>

#include "grpc/call.hpp"

namespace tenure::grpc {

/// Maps method paths to call factories.
/// Filled before the server starts and constant afterwards: open calls refer to their route.
class Router {
 public:
  /// Creates a call. Never returns null: a rejected call is one that has already finished.
  using Open = std::function<std::shared_ptr<Call>(const CallInfo&)>;
  /// Called with the status code of each ended call.
  using Ended = std::function<void(StatusCode)>;
  /// Number of request messages. The message of a unary call must arrive within
  /// ServerContext::request_time.
  enum class Request : std::uint8_t { stream, unary };
  /// Whether a call requires authentication. Unauthenticated calls are limited per connection
  /// (ServerContext::open_calls_max).
  enum class Authentication : std::uint8_t { required, none };
  /// How the calls of one path are opened, counted and limited.
  struct Route {
    Open open;
    Ended ended;
    Request request = Request::stream;
    Authentication authentication = Authentication::required;
    std::size_t message_bytes_max =
        0;  ///< Maximum request size; 0: ServerContext::message_bytes_max.
  };

  /// `path`: "/package.Service/Method".
  void add(std::string path, Route route) {
    routes_.insert_or_assign(std::move(path), std::move(route));
  }
  /// Null: unknown path.
  [[nodiscard]] const Route* find(const std::string& path) const {
    const auto it = routes_.find(path);
    return it == routes_.end() ? nullptr : &it->second;
  }

 private:
  absl::flat_hash_map<std::string, Route> routes_;
};

}  // namespace tenure::grpc
