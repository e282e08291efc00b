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

/// Which call serves which path.
class Router {
 public:
  using Open = std::function<std::shared_ptr<Call>(const CallInfo&)>;
  /// Is told the code of every call that ended.
  using Ended = std::function<void(StatusCode)>;
  /// How many messages a client sends in one call. The only message of a unary call has to arrive
  /// within ServerContext::request_time.
  enum class Request : std::uint8_t { stream, unary };
  /// Whether a call needs no authentication. Such calls are few per connection
  /// (ServerContext::open_calls_max).
  enum class Authentication : std::uint8_t { required, none };
  struct Route {
    Open open;
    Ended ended;
    Request request = Request::stream;
    Authentication authentication = Authentication::required;
    std::size_t message_bytes_max = 0;  ///< Of a request; 0: ServerContext::message_bytes_max.
  };

  /// `path`: "/package.Service/Method".
  void add(std::string path, Route route) {
    routes_.insert_or_assign(std::move(path), std::move(route));
  }
  [[nodiscard]] const Route* find(const std::string& path) const {
    const auto it = routes_.find(path);
    return it == routes_.end() ? nullptr : &it->second;
  }

 private:
  absl::flat_hash_map<std::string, Route> routes_;
};

}  // namespace tenure::grpc
