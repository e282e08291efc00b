#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <tenure/client/client.hpp>

#include "backends/memory/scheme.hpp"
#include "backends/schemes.hpp"
#include "backends/url.hpp"
#include "backends/url_options.hpp"
#include "client/factory.hpp"
#include "client/session.hpp"

namespace tenure {
namespace detail {
namespace {

/// Passes ConnectOptions::busy_poll on to the backend.
Result<void> set_busy_poll(const ConnectOptions& options, backends::Backend& backend,
                           const std::string& scheme) {
  constexpr std::chrono::microseconds zero{0};
  if (options.busy_poll < zero || options.busy_poll > ConnectOptions::busy_poll_max) {
    return fail(Errc::invalid_argument, "busy_poll must be between 0 and 10ms");
  }
  if (options.busy_poll > zero && !backend.parker().set_busy_poll(options.busy_poll)) {
    // Rejected instead of ignored: an option without effect would mislead the user.
    return fail(Errc::unsupported,
                "busy_poll needs a backend with an event loop: tenure://, redis://, redlock:// or "
                "etcd://; " +
                    scheme + ":// has none");
  }
  return {};
}

/// Validates what depends on the limits of the backend. Control characters of an owner would reach
/// terminals and logs of other users.
Result<void> check(const ConnectOptions& options, const backends::Limits& limits) {
  if (options.request_timeout <= std::chrono::milliseconds::zero()) {
    return fail(Errc::invalid_argument, "request_timeout must be positive");
  }
  if (options.owner.size() > limits.owner_bytes_max) {
    return fail(Errc::invalid_argument,
                "the owner has " + std::to_string(options.owner.size()) + " bytes; at most " +
                    std::to_string(limits.owner_bytes_max) + " are allowed");
  }
  if (std::ranges::any_of(options.owner, [](char byte) {
        return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F;
      })) {
    return fail(Errc::invalid_argument, "the owner contains a control character");
  }
  return {};
}

/// Deleter of sessions. In a child of fork() the threads of the session do not exist and cannot be
/// joined, so the session is leaked there.
struct EndSession {
  void operator()(Session* session) const {
    std::unique_ptr<Session> owned(session);
    if (session->is_inherited()) {
      static_cast<void>(owned.release());
    }
  }
};

/// Opens the backend of a URL. Order of the steps: the common options may come from the URL, so
/// they are consumed before the backend sees them; the backend consumes its own; what is left is a
/// typing error and is rejected. The session, which starts the backend, is created last.
Result<std::shared_ptr<Session>> open_session(std::string_view text, ConnectOptions options) {
  auto url = backends::parse_url(text);
  if (!url) {
    return std::unexpected(std::move(url).error());
  }
  backends::add_memory_scheme();
  const auto open = backends::find_scheme(url->scheme);
  if (!open) {
    return std::unexpected(open.error());
  }
  if (auto consumed = backends::consume_common_options(*url, options); !consumed) {
    return std::unexpected(std::move(consumed).error());
  }
  if (url->scheme != "tenure" && !(options.auth_token.empty() && options.auth_token_file.empty())) {
    return fail(Errc::unsupported, "auth_token is for tenure:// only; " + url->scheme +
                                       ":// takes user:password@ in the URL, if it has users");
  }
  auto backend = (*open)(*url, options);
  if (!backend) {
    return std::unexpected(std::move(backend).error());
  }
  if (auto rest = backends::UrlOptions(backends::UrlOptions::common).consume(*url); !rest) {
    return std::unexpected(std::move(rest).error());
  }
  if (auto checked = check(options, (*backend)->limits()); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  if (auto set = set_busy_poll(options, **backend, url->scheme); !set) {
    return std::unexpected(std::move(set).error());
  }
  auto session = std::make_unique<Session>(*std::move(backend), std::move(options));
  return std::shared_ptr<Session>(session.release(), EndSession());
}

}  // namespace

}  // namespace detail

Result<Client> connect(std::string_view url, ConnectOptions options) {
  try {
    auto session = detail::open_session(url, std::move(options));
    if (!session) {
      return std::unexpected(std::move(session).error());
    }
    return detail::Factory::make<Client>(*std::move(session));
  } catch (const std::runtime_error& error) {
    // Asio and the standard library report exhausted descriptors and threads by exceptions.
    return fail(
        Errc::resource_exhausted,
        std::string(error.what()) + "; check the limits of open files and threads (ulimit -n, -u)");
  }
}

}  // namespace tenure
