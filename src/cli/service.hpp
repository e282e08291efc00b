#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message_lite.h>

#include <tenure/client/client.hpp>

#include "backends/tenured/url.hpp"
#include "cli/arguments.hpp"

namespace tenure::cli {

/// URL of the lock service: --url, TENURE_URL, or a tenured on this machine.
[[nodiscard]] std::string url_of(const Arguments& arguments);
/// Request timeout: --timeout, or 5 seconds.
[[nodiscard]] Result<std::chrono::milliseconds> timeout_of(const Arguments& arguments);
/// Credentials from --token-file, TENURE_AUTH_TOKEN or TENURE_AUTH_FILE, and their source.
struct LoginSource {
  backends::tenured::Login login{};
  std::string_view where{};  ///< Name of the source; empty without credentials.
};
[[nodiscard]] LoginSource login_source(const Arguments& arguments);
/// Opens a client of the library, for any scheme.
[[nodiscard]] Result<Client> open_client(const Arguments& arguments);

/// Parsed tenure:// URL.
struct ServiceUrl {
  backends::Servers servers{};
  std::string key_prefix{};
};
/// Parses the URL; `unsupported` for other schemes.
[[nodiscard]] Result<ServiceUrl> service_url(const Arguments& arguments);

/// RPC client of tenured for commands that the client library does not offer. One request at a
/// time; follows redirects to the leader. Not thread safe.
class Service {
 public:
  /// Whether to follow the redirect of a follower to the leader.
  enum class Follow : bool { none, leader };

  [[nodiscard]] static Result<Service> open(const Arguments& arguments);
  Service(ServiceUrl url, std::chrono::milliseconds timeout, Follow follow = Follow::leader);
  Service(Service&&) noexcept;
  Service& operator=(Service&&) noexcept;
  ~Service();

  /// Calls a unary RPC, such as "Admin/List". FAILED_PRECONDITION becomes not_held, NOT_FOUND
  /// becomes lease_lost.
  [[nodiscard]] Result<std::string> ask(
      std::string_view method, const google::protobuf::MessageLite& request,
      std::optional<std::chrono::milliseconds> timeout = std::nullopt);

  /// Calls a server-streaming RPC. `take` receives each response; its error ends the call. The
  /// timeout applies to each response.
  using Take = std::function<Result<void>(std::string_view)>;
  [[nodiscard]] Result<void> ask_each(std::string_view method,
                                      const google::protobuf::MessageLite& request,
                                      const Take& take);

  template <class Response>
  [[nodiscard]] Result<Response> ask(
      std::string_view method, const google::protobuf::MessageLite& request,
      std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
    auto bytes = ask(method, request, timeout);
    if (!bytes) {
      return std::unexpected(std::move(bytes).error());
    }
    Response response;
    if (!response.ParseFromString(*bytes)) {
      return fail(Errc::unavailable, "cannot parse the reply");
    }
    return response;
  }

  /// Key prefix of the URL: added to names in requests, removed from names in the output.
  [[nodiscard]] const std::string& key_prefix() const noexcept { return key_prefix_; }
  [[nodiscard]] std::string with_prefix(std::string_view name) const {
    return key_prefix_ + std::string(name);
  }
  [[nodiscard]] std::string without_prefix(std::string_view name) const;
  /// "host:port" of the current server.
  [[nodiscard]] std::string server() const;

 private:
  class PendingCall;
  class Connection;
  std::unique_ptr<Connection> connection_;
  std::string key_prefix_;
};

}  // namespace tenure::cli
