#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "grpc/router.hpp"
#include "server/auth/authorizer.hpp"
#include "server/metrics/metrics.hpp"
#include "server/rpc/authorization.hpp"
#include "server/rpc/unary.hpp"

namespace tenure::server {

/// Registers the calls of a service with a router, with the permission of each, and counts their
/// results.
///
/// A call cannot be registered without a permission: it is a parameter of add().
class Routes {
 public:
  /// Maximum request size of unauthenticated calls, which contain only the name of a service or
  /// symbol.
  static constexpr std::size_t open_message_bytes_max = 4096;

  /// `metrics`: null disables counting. `authorizer`: null allows every call.
  Routes(grpc::Router& router, Metrics* metrics, auth::Authorizer* authorizer)
      : router_(router), metrics_(metrics), authorizer_(authorizer) {}

  /// `path`: "/package.Service/Method".
  void add(const std::string& path, auth::Permission permission, OpenCall open,
           grpc::Router::Request request = grpc::Router::Request::stream) {
    grpc::Router::Ended ended;
    if (metrics_ != nullptr) {
      ended = [method = metrics_->method(path)](grpc::StatusCode code) {
        method.done(static_cast<int>(code));
      };
    }
    // Unauthenticated calls get a small message limit: every host on the network can make them.
    const bool is_open = permission == auth::Permission::none;
    router_.add(path, {.open = with_authorization(authorizer_, permission, std::move(open)),
                       .ended = std::move(ended),
                       .request = request,
                       .authentication = is_open ? grpc::Router::Authentication::none
                                                 : grpc::Router::Authentication::required,
                       .message_bytes_max = is_open ? open_message_bytes_max : 0});
  }

  /// Adds a unary call handled by `(object.*answer)(request, reply)`.
  template <class Service, class Request, class Response>
  void add(const std::string& path, auth::Permission permission, Service& service,
           void (Service::*answer)(const Request&, const ReplyPtr<Response>&)) {
    add(path, permission,
        unary_handler<Request, Response>(
            [&service, answer](const Request& request, const ReplyPtr<Response>& reply) {
              (service.*answer)(request, reply);
            }),
        grpc::Router::Request::unary);
  }

 private:
  grpc::Router& router_;
  /// Null: calls are not counted.
  Metrics* metrics_;
  auth::Authorizer* authorizer_;
};

}  // namespace tenure::server
