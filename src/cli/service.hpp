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

/// Where the locks are: --url, TENURE_URL, or a tenured on this machine.
[[nodiscard]] std::string url_of(const Arguments& arguments);
/// How long one answer may take: --timeout, or 5 seconds.
[[nodiscard]] Result<std::chrono::milliseconds> timeout_of(const Arguments& arguments);
/// Who we are: --token-file, TENURE_AUTH_TOKEN or TENURE_AUTH_FILE, and which of them said it.
struct LoginSource {
  backends::tenured::Login login{};
  std::string_view where{};  ///< Empty: none.
};
[[nodiscard]] LoginSource login_source(const Arguments& arguments);
/// Through the client library, of any scheme.
[[nodiscard]] Result<Client> open_client(const Arguments& arguments);

/// What a URL of tenured says.
struct ServiceUrl {
  backends::Servers servers{};
  std::string key_prefix{};
};
/// `unsupported` for any other scheme.
[[nodiscard]] Result<ServiceUrl> service_url(const Arguments& arguments);

/// Questions to tenured over a connection of our own, one at a time; they go to the leader, whoever
/// that is. One thread.
class Service {
 public:
  /// Whether a server that does not lead may send us to the one that does.
  enum class Follow : bool { nobody, leader };

  [[nodiscard]] static Result<Service> open(const Arguments& arguments);
  Service(ServiceUrl url, std::chrono::milliseconds timeout, Follow follow = Follow::leader);
  Service(Service&&) noexcept;
  Service& operator=(Service&&) noexcept;
  ~Service();

  /// The answer to a question of this name, "Admin/List". `not_held`: FAILED_PRECONDITION;
  /// `lease_lost`: NOT_FOUND; the others are those of Errc.
  [[nodiscard]] Result<std::string> ask(
      std::string_view method, const google::protobuf::MessageLite& request,
      std::optional<std::chrono::milliseconds> timeout = std::nullopt);

  /// A question with many answers: `take` gets each, and its error ends it. As ask() otherwise,
  /// with a wait of `timeout` for each of them.
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
      return fail(Errc::unavailable, "the answer cannot be read");
    }
    return response;
  }

  /// Put before all names, and taken off those that are shown.
  [[nodiscard]] const std::string& key_prefix() const noexcept { return key_prefix_; }
  [[nodiscard]] std::string full(std::string_view name) const {
    return key_prefix_ + std::string(name);
  }
  [[nodiscard]] std::string shown(std::string_view name) const;
  /// "host:port" of whoever answered last.
  [[nodiscard]] std::string server() const;

 private:
  class Asked;
  class Wire;
  std::unique_ptr<Wire> wire_;
  std::string key_prefix_;
};

}  // namespace tenure::cli
