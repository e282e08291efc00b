#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>

#include "server/auth/authorizer.hpp"
#include "server/http/cluster_handlers.hpp"
#include "server/http/deadlock_log.hpp"
#include "server/http/history.hpp"
#include "server/http/lock_handlers.hpp"
#include "server/http/login_sessions.hpp"
#include "server/http/message.hpp"
#include "server/http/record_json.hpp"
#include "server/metrics/metrics.hpp"
#include "server/store/store.hpp"

namespace tenure::server::http {

struct ServerOptions;

/// Maps paths to handlers and enforces their permissions. Handlers copy from the store on its
/// thread and write the response on the HTTP thread.
///
/// serve() does all authentication and the checks by route; handlers check the rights on single
/// names. Constant after construction, except the login sessions. HTTP thread only.
class Router {
 public:
  /// Data sources. They outlive the router.
  struct Sources {
    Store& store;
    Metrics& metrics;
    const DeadlockLog& deadlocks;
    const History& history;
    LoginSessions& sessions;
    LockHandlers& lock_handlers;
    ClusterHandlers& cluster_handlers;
  };
  /// One route. The table contains all routes except dashboard files, with the permission each
  /// requires.
  struct Route {
    Method method = Method::get;
    std::string_view path;  ///< Full path; if it ends in '/', the prefix before a path parameter.
    auth::Permission permission;
    /// Handler; null: an event stream, served by Connection.
    void (Router::*page)(const Request&, Reply) const;
    /// Suffix after the path parameter. A parameter may contain slashes and colons: only a suffix
    /// at the end of the path selects a route.
    std::string_view suffix{};

    [[nodiscard]] constexpr bool has_parameter() const {
      return path.size() > 1 && path.ends_with('/');  // "/" is a full path
    }
  };
  [[nodiscard]] static std::span<const Route> routes();

  /// `executor`: the HTTP thread, on which responses are written.
  Router(const Sources& sources, boost::asio::any_io_executor executor,
         const ServerOptions& options, ServerFacts facts);

  /// Value of the Allow header for a path.
  [[nodiscard]] static std::string allowed(std::string_view path);

  /// Calls `reply` once, on the HTTP thread.
  void serve(Request request, Reply reply) const;

  /// Authenticates the client, stores its rights in the request and checks the permission of the
  /// route. Returns the error response if access is denied. REQUIRES: the HTTP thread.
  [[nodiscard]] std::optional<Response> admit(Request& request) const;
  /// Logs the denial of an action on a name and returns the error response.
  [[nodiscard]] Response deny(const Request& request, auth::Verb verb, std::string_view name) const;
  /// Predicate for the names the client may read, evaluated under the policy in force at each call.
  [[nodiscard]] std::function<bool(std::string_view)> read_filter_of(const Request& request) const;

 private:
  /// Route for path and method; null: none.
  static const Route* find(const Request& request);
  /// Precedence: Authorization header, login cookie, client certificate.
  [[nodiscard]] auth::Credentials credentials_of(const ClientInfo& client) const;
  /// Token digest of the login session, if the request authenticates by cookie.
  [[nodiscard]] std::optional<auth::Digest> login_of(const ClientInfo& client) const;
  /// Constant-time comparison with the secret.
  [[nodiscard]] bool is_secret(const auth::Digest& digest) const;
  /// Whether the request carries the server secret, directly or by a login.
  [[nodiscard]] bool shows_secret(const ClientInfo& client) const;
  /// Login without users: exchanges the server secret for a cookie.
  void login_with_secret(const Request& request, Reply reply) const;

  void front(const Request& request, Reply reply) const;
  void health(const Request& request, Reply reply) const;
  void ready(const Request& request, Reply reply) const;
  void metrics(const Request& request, Reply reply) const;
  void status(const Request& request, Reply reply) const;
  void cluster(const Request& request, Reply reply) const;
  void locks(const Request& request, Reply reply) const;
  void lock(const Request& request, Reply reply) const;
  void leases(const Request& request, Reply reply) const;
  void lease(const Request& request, Reply reply) const;
  void graph(const Request& request, Reply reply) const;
  void deadlocks(const Request& request, Reply reply) const;
  void history(const Request& request, Reply reply) const;
  void rights(const Request& request, Reply reply) const;
  void login(const Request& request, Reply reply) const;
  void logout(const Request& request, Reply reply) const;
  void openapi(const Request& request, Reply reply) const;
  void acquire(const Request& request, Reply reply) const;
  /// Action of the lock API on a lease, or on the locks that it holds.
  template <void (LockHandlers::*action)(const Request&, Reply)>
  void use_lease(const Request& request, Reply reply) const;
  void check_token(const Request& request, Reply reply) const;
  void force_release(const Request& request, Reply reply) const;
  /// Administration of the cluster.
  template <void (ClusterHandlers::*action)(const Request&, Reply)>
  void administer(const Request& request, Reply reply) const;
  /// Serves a dashboard file; false: no such file.
  [[nodiscard]] bool serve_asset(const Request& request, Reply& reply) const;
  /// Checks the admin right on a name; replies with the error if it is missing.
  [[nodiscard]] bool may_force(const Request& request, std::string_view name, Reply& reply) const;

  /// Checks the right to administer the cluster. Replies with the error if it is missing.
  [[nodiscard]] bool may_administer(const Request& request, Reply& reply) const;

  /// Checks the lock right on a name. Empty name: only use of a lease, whose ownership is checked
  /// elsewhere. Replies with the error if the right is missing.
  [[nodiscard]] bool may_lock(const Request& request, std::string_view name, Reply& reply) const;

  /// `member`: this member answers from its own state, without a quorum.
  enum class ReadFrom : std::uint8_t { quorum, member };
  /// Parameter `stale` of the request.
  [[nodiscard]] static ReadFrom read_from(const Request& request) {
    return request.parameter("stale") == "true" ? ReadFrom::member : ReadFrom::quorum;
  }
  /// Copies with `copy(view)` on the store's thread and responds with `page(copied)` on the HTTP
  /// thread.
  template <class Copy, class Page>
  void read_and_respond(ReadFrom from, Reply reply, Copy copy, Page page) const;

  const Sources sources_;
  boost::asio::any_io_executor executor_;
  const ServerOptions& options_;
  ServerFacts facts_;
};

template <class Copy, class Page>
void Router::read_and_respond(ReadFrom from, Reply reply, Copy copy, Page page) const {
  auto reader = [home = executor_, reply = std::move(reply), copy = std::move(copy),
                 page = std::move(page)](const Result<View>& view) mutable {
    using Copied = decltype(copy(*view));
    auto copied = view ? Result<Copied>(copy(*view)) : std::unexpected(view.error());
    boost::asio::post(home, [reply = std::move(reply), page = std::move(page),
                             copied = std::move(copied)]() mutable {
      reply(copied ? page(*copied) : error_response(copied.error()));
    });
  };
  if (from == ReadFrom::member) {
    sources_.store.peek(std::move(reader));
  } else {
    sources_.store.read(std::move(reader));
  }
}

}  // namespace tenure::server::http
