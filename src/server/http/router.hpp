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
#include "server/http/deadlock_log.hpp"
#include "server/http/history.hpp"
#include "server/http/lock_handlers.hpp"
#include "server/http/login_sessions.hpp"
#include "server/http/message.hpp"
#include "server/http/record_json.hpp"
#include "server/metrics/metrics.hpp"
#include "server/store/store.hpp"

namespace tenure::server::http {

/// Which page answers which path, and who may see it.
class Router {
 public:
  /// Whom it asks. All of it outlives the router.
  struct Sources {
    Store& store;
    Metrics& metrics;
    const DeadlockLog& deadlocks;
    const History& history;
    LoginSessions& sessions;
    LockHandlers& lock_handlers;
    auth::Authorizer* authorizer = nullptr;  ///< Null: there are no users, and everybody may look.
  };
  struct Options {
    ChangePolicy rights{};
    bool open_metrics = false;  ///< /metrics is for everybody.
    /// Digest of the secret for changes without users; nothing: they are all refused.
    std::optional<auth::Digest> secret{};
  };

  /// One kind of page. All record_json but the files of the dashboard are in the list of them, each with
  /// what it asks of whoever wants to see it.
  struct Route {
    std::string_view path;      ///< All of it; or if it ends in '/', its beginning,
    std::string_view suffix{};  ///< and its end.
    Method method = Method::get;
    auth::Permission permission;
    /// Null: it is no page but a stream, see Connection.
    void (Router::*page)(const Request&, Reply) const;
  };
  [[nodiscard]] static std::span<const Route> routes();

  /// `home` is where record_json are written: the thread of HTTP, not that of the store.
  Router(const Sources& sources, boost::asio::any_io_executor home, ServerFacts facts,
         Options options);

  /// What can be done with a path, as the field Allow has it.
  [[nodiscard]] static std::string allowed(std::string_view path);

  /// Calls `reply` once, at home.
  void serve(Request request, Reply reply) const;

  /// Finds out who asks and what it may do; the answer if that is not this. REQUIRES: at home.
  [[nodiscard]] std::optional<Response> admit(Request& request) const;
  /// The answer to who may not do this with a name, or with any under it; the log has it, too.
  [[nodiscard]] Response deny(const Request& request, auth::Verb verb, std::string_view name) const;
  /// Whether the client of a request that was admitted may read a name, at the time it is asked.
  [[nodiscard]] std::function<bool(std::string_view)> read_filter_of(const Request& request) const;

 private:
  static const Route* find(const Request& request);
  [[nodiscard]] auth::Credentials credentials_of(const ClientInfo& client) const;
  /// The token of whoever is logged in, if that is by what it asks.
  [[nodiscard]] std::optional<auth::Digest> login_of(const ClientInfo& client) const;
  /// Is this the digest of the secret? Takes the same time for every digest.
  [[nodiscard]] bool is_secret(const auth::Digest& digest) const;
  [[nodiscard]] bool shows_secret(const ClientInfo& client) const;
  /// Where there are no users: the secret for a cookie.
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
  void release(const Request& request, Reply reply) const;
  void extend(const Request& request, Reply reply) const;
  void grant_lease(const Request& request, Reply reply) const;
  void renew_lease(const Request& request, Reply reply) const;
  void revoke_lease(const Request& request, Reply reply) const;
  void check_token(const Request& request, Reply reply) const;
  void force_release(const Request& request, Reply reply) const;
  /// False: there is no such file.
  [[nodiscard]] bool serve_asset(const Request& request, Reply& reply) const;
  /// May it be admin of this name? Answers if not.
  [[nodiscard]] bool may_force(const Request& request, std::string_view name, Reply& reply) const;

  /// May it lock this name; empty: use a lease, which is checked elsewhere? Answers if not.
  [[nodiscard]] bool may_lock(const Request& request, std::string_view name, Reply& reply) const;

  /// Copies with `copy(view)` on the store's thread and answers with `page(copied)` at home. With
  /// ?stale=true any member answers, from what it has.
  template <class Copy, class Page>
  void read_and_respond(const Request& request, Reply reply, Copy copy, Page page) const;

  Store& store_;
  Metrics& metrics_;
  const DeadlockLog& deadlocks_;
  const History& history_;
  LoginSessions& sessions_;
  auth::Authorizer* authorizer_;
  LockHandlers& lock_handlers_;
  boost::asio::any_io_executor executor_;
  ServerFacts facts_;
  const Options options_;
};

template <class Copy, class Page>
void Router::read_and_respond(const Request& request, Reply reply, Copy copy, Page page) const {
  auto reader = [home = executor_, reply = std::move(reply), copy = std::move(copy),
                 page = std::move(page)](const Result<View>& view) mutable {
    using Copied = decltype(copy(*view));
    auto copied = view ? Result<Copied>(copy(*view)) : std::unexpected(view.error());
    boost::asio::post(home, [reply = std::move(reply), page = std::move(page),
                             copied = std::move(copied)]() mutable {
      reply(copied ? page(*copied) : error_response(copied.error()));
    });
  };
  if (request.parameter("stale") == "true") {
    store_.peek(std::move(reader));
  } else {
    store_.read(std::move(reader));
  }
}

}  // namespace tenure::server::http
