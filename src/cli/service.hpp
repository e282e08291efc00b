#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message_lite.h>

#include <tenure/client/client.hpp>

#include "backends/tenured/url.hpp"
#include "cli/arguments.hpp"

namespace tenure::cli {

/// URL of the lock service: --url, TENURE_URL, or a tenured on this machine. An address without a
/// scheme is that of a tenured.
[[nodiscard]] std::string url_of(const Arguments& arguments);
/// Request timeout: --timeout, or 5 seconds.
[[nodiscard]] Result<std::chrono::milliseconds> timeout_of(const Arguments& arguments);
/// Credentials from --token-file, TENURE_AUTH_TOKEN or TENURE_AUTH_FILE, and their source. The
/// source is for `tenure doctor`. An option takes precedence over the environment.
struct LoginSource {
  backends::tenured::Login login{};
  std::string_view where{};  ///< Name of the source; empty without credentials.
};
[[nodiscard]] LoginSource login_source(const Arguments& arguments);
/// Opens a client of the library, for any scheme. Warnings of the library are printed as errors,
/// which does not end the command. Retries until `end` while no server is reachable; by default for
/// the time of --retry.
[[nodiscard]] Result<Client> open_client(
    const Arguments& arguments,
    std::optional<std::chrono::steady_clock::time_point> end = std::nullopt);

/// Parsed tenure:// URL. Only the servers and the prefix remain: this is what an RPC client needs.
struct ServiceUrl {
  backends::Servers servers{};
  std::string key_prefix{};
};
/// Parses the URL; `unsupported` for other schemes.
[[nodiscard]] Result<ServiceUrl> service_url(const Arguments& arguments);

/// RPC client of tenured for commands that the client library does not offer. One request at a
/// time; follows redirects to the leader. Not thread safe. Blocks the calling thread, which runs
/// the event loop of the connection during a call.
class Service {
 public:
  /// Whether to follow the redirect of a follower to the leader. `none` also means one attempt: the
  /// first failed connection is reported instead of retried. For commands that ask about one
  /// server.
  enum class Follow : bool { none, leader };
  /// Whether to repeat a request after a failed attempt, which the server may have executed.
  enum class Repeat : bool { idempotent, never };
  struct AskOptions {
    std::optional<std::chrono::milliseconds> timeout{};  ///< Empty: the timeout of the service.
    /// `never` for requests whose repetition can do more than the first execution. It follows no
    /// redirect either, so the caller asks a request that only the leader answers first.
    Repeat repeat = Repeat::idempotent;
  };

  /// Parses the URL, the timeout and --retry. Connects with the first request. `unsupported` for
  /// other schemes than tenure://.
  [[nodiscard]] static Result<Service> open(const Arguments& arguments);
  Service(ServiceUrl url, std::chrono::milliseconds timeout, Follow follow = Follow::leader,
          std::chrono::milliseconds retry = {});
  Service(Service&&) noexcept;
  Service& operator=(Service&&) noexcept;
  ~Service();

  /// Calls a unary RPC, such as "Admin/List". FAILED_PRECONDITION becomes not_held, NOT_FOUND
  /// becomes lease_lost. Returns the encoded response. Retries until the timeout, or for the time
  /// of --retry if it is longer, while servers are unavailable. The outcome of a failed attempt may
  /// be unknown, so the service may execute the request twice, unless `options.repeat` forbids it.
  [[nodiscard]] Result<std::string> ask(std::string_view method,
                                        const google::protobuf::MessageLite& request,
                                        const AskOptions& options);

  /// Calls a server-streaming RPC. `take` receives each response; its error ends the call. The
  /// timeout applies to each response.
  using Take = std::function<Result<void>(std::string_view)>;
  [[nodiscard]] Result<void> ask_each(std::string_view method,
                                      const google::protobuf::MessageLite& request,
                                      const Take& take);

  /// The same, decoded.
  template <class Response>
  [[nodiscard]] Result<Response> ask(std::string_view method,
                                     const google::protobuf::MessageLite& request,
                                     const AskOptions& options) {
    auto bytes = ask(method, request, options);
    if (!bytes) {
      return std::unexpected(std::move(bytes).error());
    }
    Response response;
    if (!response.ParseFromString(*bytes)) {
      return fail(Errc::unavailable, "cannot parse the reply");
    }
    return response;
  }
  template <class Response>
  [[nodiscard]] Result<Response> ask(std::string_view method,
                                     const google::protobuf::MessageLite& request) {
    return ask<Response>(method, request, AskOptions{});
  }

  /// Calls end with `cancelled` when a stop is requested.
  void cancel_with(std::stop_token cancel);

  /// Key prefix of the URL: added to names in requests, removed from names in the output.
  [[nodiscard]] const std::string& key_prefix() const noexcept { return key_prefix_; }
  [[nodiscard]] std::string with_prefix(std::string_view name) const {
    return key_prefix_ + std::string(name);
  }
  /// Unchanged if the name does not begin with the prefix.
  [[nodiscard]] std::string without_prefix(std::string_view name) const;
  /// "host:port" of the current server.
  [[nodiscard]] std::string server() const;

 private:
  /// Defined in the source file, to keep Asio out of this header.
  class PendingCall;
  class Connection;
  std::unique_ptr<Connection> connection_;
  std::string key_prefix_;
};

}  // namespace tenure::cli
