#include "server/http/router.hpp"

#include <array>
#include <memory>
#include <utility>
#include <variant>

#include <boost/asio/post.hpp>

#include "server/config/units.hpp"
#include "server/http/assets.hpp"
#include "server/http/responses.hpp"

namespace tenure::server::http {
namespace {

// Page sizes of listings; a byte budget in records.cpp ends a page of large locks earlier.
constexpr std::size_t page_limit_default = 100;
constexpr std::size_t page_limit_max = 1000;
/// Depth for a single lock: more than a page shows, less than would delay the store.
constexpr Depth in_full{.holders = 1000, .waiters = 1000};
/// A member this many entries behind is still reading its log.
constexpr std::uint64_t entries_behind_max = 1000;

/// Value of `limit` in the query, from 1 to page_limit_max; page_limit_default if it is missing.
Result<std::size_t> page_limit(const Request& request) {
  const auto given = request.parameter("limit");
  if (!given) {
    return page_limit_default;
  }
  const auto limit = parse_count(*given);
  if (!limit || *limit == 0 || *limit > page_limit_max) {
    return fail(Errc::invalid_argument, "limit: expected a number from 1 to 1000");
  }
  return *limit;
}

/// Content security policy of the dashboard: only resources of this server.
constexpr std::string_view dashboard_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

/// Replaces the strict content security policy of API responses: the page needs its own scripts.
Response file(const Asset& asset) {
  Response response{.content_type = std::string(asset.content_type),
                    .body = std::string(asset.body)};
  response.fields.emplace_back("Content-Security-Policy", dashboard_policy);
  if (asset.path.starts_with("/assets/")) {
    // File names contain a content hash, so they can be cached forever.
    response.fields.emplace_back("Cache-Control", "public, max-age=31536000, immutable");
  }
  return response;
}

/// nullopt: ready. A load balancer must not send clients to this member for the returned reason.
std::optional<std::string_view> why_not_ready(const View& view) {
  const auto& log = view.log;
  // A follower is ready too: it redirects clients to the leader.
  if (!log.is_leader && log.leader == 0) {
    return "the cluster has no leader";
  }
  if (log.commit > log.applied + entries_behind_max) {
    return "the log is still being applied";
  }
  if (!log.has_space) {
    return "the disk is full";
  }
  return std::nullopt;
}

}  // namespace

Router::Router(const Sources& sources, boost::asio::any_io_executor executor, ServerFacts facts,
               Options options)
    : store_(sources.store),
      metrics_(sources.metrics),
      deadlocks_(sources.deadlocks),
      history_(sources.history),
      sessions_(sources.sessions),
      authorizer_(sources.authorizer),
      lock_handlers_(sources.lock_handlers),
      cluster_handlers_(sources.cluster_handlers),
      executor_(std::move(executor)),
      facts_(std::move(facts)),
      options_(options) {}

std::span<const Router::Route> Router::routes() {
  using enum auth::Permission;
  using R = Router;
  constexpr auto post = Method::post;
  // Longer paths first: the first match wins.
  static constexpr std::array all{
      Route{.path = "/", .permission = none, .page = &R::front},
      Route{.path = "/healthz", .permission = none, .page = &R::health},
      Route{.path = "/readyz", .permission = none, .page = &R::ready},
      Route{.path = "/metrics", .permission = read_global, .page = &R::metrics},
      Route{.path = "/v1/status", .permission = authenticated, .page = &R::status},
      Route{.path = "/v1/cluster", .permission = authenticated, .page = &R::cluster},
      Route{.path = "/v1/history", .permission = read_global, .page = &R::history},
      Route{.path = "/v1/deadlocks", .permission = read_names, .page = &R::deadlocks},
      Route{.path = "/v1/graph", .permission = read_names, .page = &R::graph},
      Route{.path = "/v1/events", .permission = read_names, .page = nullptr},
      Route{.path = "/v1/watch", .permission = read_names, .page = nullptr},
      Route{.path = "/v1/openapi.json", .permission = none, .page = &R::openapi},
      Route{.path = "/v1/locks", .permission = read_names, .page = &R::locks},
      Route{.path = "/v1/leases", .permission = own_lease, .page = &R::leases},
      Route{.path = "/v1/leases/", .permission = own_lease, .page = &R::lease},
      Route{.path = "/v1/rights", .permission = none, .page = &R::rights},
      Route{.path = "/v1/login", .method = post, .permission = none, .page = &R::login},
      Route{.path = "/v1/logout", .method = post, .permission = none, .page = &R::logout},
      Route{.path = "/v1/leases",
            .method = post,
            .permission = lock_any_name,
            .page = &R::grant_lease},
      Route{.path = lease_prefix,
            .suffix = renew_suffix,
            .method = post,
            .permission = own_lease,
            .page = &R::renew_lease},
      Route{.path = lease_prefix,
            .suffix = revoke_suffix,
            .method = post,
            .permission = own_lease,
            .page = &R::revoke_lease},
      Route{.path = lock_prefix,
            .suffix = acquire_suffix,
            .method = post,
            .permission = lock_names,
            .page = &R::acquire},
      Route{.path = lock_prefix,
            .suffix = release_suffix,
            .method = post,
            .permission = own_lease,
            .page = &R::release},
      Route{.path = lock_prefix,
            .suffix = extend_suffix,
            .method = post,
            .permission = own_lease,
            .page = &R::extend},
      Route{.path = "/v1/tokens:check",
            .method = post,
            .permission = read_names,
            .page = &R::check_token},
      Route{.path = lock_prefix,
            .suffix = force_suffix,
            .method = post,
            .permission = admin_name,
            .page = &R::force_release},
      Route{.path = "/v1/cluster/members",
            .method = post,
            .permission = admin_global,
            .page = &R::add_member},
      Route{.path = member_prefix,
            .suffix = remove_suffix,
            .method = post,
            .permission = admin_global,
            .page = &R::remove_member},
      Route{.path = "/v1/cluster:transfer-leadership",
            .method = post,
            .permission = admin_global,
            .page = &R::transfer_leadership},
      Route{.path = "/v1/cluster:reload",
            .method = post,
            .permission = admin_global,
            .page = &R::reload},
      // Lock names may contain slashes, so the rest of the path is the name.
      Route{.path = lock_prefix, .permission = read_names, .page = &R::lock},
  };
  return all;
}

const Router::Route* Router::find(const Request& request) {
  const std::string_view path = request.path;
  for (const auto& route : routes()) {
    // The path "/" is a full path although it ends in a slash.
    const bool is_beginning = route.path.size() > 1 && route.path.ends_with('/');
    const bool fits = is_beginning ? path.starts_with(route.path) && path.ends_with(route.suffix) &&
                                         path.size() > route.path.size() + route.suffix.size()
                                   : path == route.path;
    if (fits && route.method == request.method) {
      return &route;
    }
  }
  return nullptr;
}

std::string Router::allowed(std::string_view path) {
  // Probes the table, so the Allow header cannot differ from the routes.
  const auto takes = [&](Method method) {
    return find({.path = std::string(path), .method = method}) != nullptr;
  };
  // Unknown paths also report GET, whose handler then returns 404.
  if (!takes(Method::post)) {
    return "GET, HEAD";
  }
  return takes(Method::get) ? "GET, HEAD, POST" : "POST";
}

auth::Credentials Router::credentials_of(const ClientInfo& client) const {
  // An invalid token is not replaced by a valid cookie: the client must notice its mistake.
  if (!client.authorization.empty()) {
    return auth::Authorizer::credentials_from(client.authorization);
  }
  if (const auto token = login_of(client)) {
    return *token;
  }
  return client.certificate.empty() ? auth::Credentials() : auth::Credentials(client.certificate);
}

std::optional<auth::Digest> Router::login_of(const ClientInfo& client) const {
  return client.authorization.empty() && !client.session.empty()
             ? sessions_.find(client.session, LoginSessions::Clock::now())
             : std::nullopt;
}

bool Router::is_secret(const auth::Digest& digest) const {
  return options_.secret && auth::DigestEqual{}(digest, *options_.secret);
}

bool Router::shows_secret(const ClientInfo& client) const {
  if (const auto token = auth::bearer_token(client.authorization)) {
    return is_secret(auth::digest_of(*token));
  }
  const auto login = login_of(client);
  return login && is_secret(*login);
}

std::optional<Response> Router::admit(Request& request) const {
  if (authorizer_ == nullptr) {
    // Without users every request is admitted; the secret matters for changes only.
    request.client.has_secret = shows_secret(request.client);
    return std::nullopt;
  }
  const auto* route = find(request);
  // An unknown path needs no permission: its 404 reveals nothing.
  const bool is_open =
      route == nullptr || (route->page == &Router::metrics && options_.open_metrics);
  const auto principal =
      authorizer_->authenticate(credentials_of(request.client), request.client.address);
  const auto denial = principal->authorize(is_open ? auth::Permission::none : route->permission);
  // Rights for the handler, which checks single names.
  request.access = principal->access();
  return denial ? std::optional(error_response(*denial)) : std::nullopt;
}

Response Router::deny(const Request& request, auth::Verb verb, std::string_view name) const {
  const auto& client = request.client;
  const auto denial = authorizer_ == nullptr
                          ? std::nullopt
                          : authorizer_->authenticate(credentials_of(client), client.address)
                                ->authorize(verb, name);
  // The policy may have changed since the request was denied.
  return denial ? error_response(*denial) : forbidden(request.access.denial(verb, name));
}

std::function<bool(std::string_view)> Router::read_filter_of(const Request& request) const {
  if (authorizer_ == nullptr) {
    return [](std::string_view) { return true; };
  }
  // An event stream can outlive a logout, so a login is checked for each event.
  const bool is_login = login_of(request.client).has_value();
  const std::shared_ptr<auth::Principal> principal =
      authorizer_->authenticate(credentials_of(request.client), request.client.address);
  return [this, principal,
          session = is_login ? request.client.session : std::string()](std::string_view name) {
    return principal->access().may(auth::Verb::read, name) &&
           (session.empty() || sessions_.find(session, LoginSessions::Clock::now()));
  };
}

void Router::serve(Request request, Reply reply) const {
  if (auto refused = admit(request)) {
    reply(*std::move(refused));
    return;
  }
  // Before the routes: a browser that requests `/` gets the dashboard, other clients the overview.
  if (request.method == Method::get && serve_asset(request, reply)) {
    return;  // Served a dashboard file.
  }
  const auto* route = find(request);
  // A path that exists for POST only gets 405 instead of a misleading 404.
  if (route == nullptr && allowed(request.path) == "POST") {
    reply(not_allowed("POST"));
    return;
  }
  if (route == nullptr || route->page == nullptr) {
    reply(not_found("unknown path; GET / lists the paths"));
    return;
  }
  (this->*route->page)(request, std::move(reply));
}

bool Router::serve_asset(const Request& request, Reply& reply) const {
  const bool is_front = request.path == "/" && request.client.wants_html;
  const auto* asset = find_asset(is_front ? "/index.html" : std::string_view(request.path));
  if (asset == nullptr) {
    return false;
  }
  reply(file(*asset));
  return true;
}

void Router::front(const Request& /*request*/, Reply reply) const {
  reply(text(200, std::string(front_page())));
}

// Liveness: the process answers. It does not ask the store, because a restart does not help a
// member that waits for a leader.
void Router::health(const Request& /*request*/, Reply reply) const {
  reply(text(200, "ok\n"));
}

void Router::openapi(const Request& /*request*/, Reply reply) const {
  reply(json(std::string(openapi_document())));
}

// Readiness is a property of this member, so it reads the local state without a quorum.
void Router::ready(const Request& /*request*/, Reply reply) const {
  const Request stale_request{.query = {{"stale", "true"}}};
  read_and_respond(stale_request, std::move(reply), why_not_ready,
                   [](std::optional<std::string_view> why) {
                     return why ? problem(503, "Not Ready", *why) : text(200, "ready\n");
                   });
}

// The gauges are updated on the store's thread; the text is built on the HTTP thread, because it
// takes longer. A stopped store yields the last values.
void Router::metrics(const Request& /*request*/, Reply reply) const {
  store_.peek([this, reply = std::move(reply)](const Result<View>& view) mutable {
    if (view) {
      metrics_.observe(*view);
    }
    boost::asio::post(executor_, [this, reply = std::move(reply)]() mutable {
      reply({.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_.text()});
    });
  });
}

// Answers without a leader: that is when an operator asks.
void Router::status(const Request& /*request*/, Reply reply) const {
  const Request stale_request{.query = {{"stale", "true"}}};
  read_and_respond(
      stale_request, std::move(reply), copy_status,
      [facts = facts_](const StatusRecord& record) { return json(write(record, facts)); });
}

void Router::cluster(const Request& /*request*/, Reply reply) const {
  const Request stale_request{.query = {{"stale", "true"}}};
  read_and_respond(
      stale_request, std::move(reply), copy_cluster,
      [facts = facts_](const ClusterRecord& record) { return json(write(record, facts)); });
}

void Router::locks(const Request& request, Reply reply) const {
  const auto limit = page_limit(request);
  if (!limit) {
    reply(error_response(limit.error()));
    return;
  }
  LockQuery query{.prefix = std::string(request.parameter("prefix").value_or("")),
                  .limit = *limit,
                  .access = request.access};
  // Denied only if no name under the prefix is readable; otherwise the page omits unreadable names.
  if (!query.access.may_any(auth::Verb::read, query.prefix)) {
    reply(deny(request, auth::Verb::read, query.prefix));
    return;
  }
  if (const auto after = request.parameter("after")) {
    auto resource = parse_position(*after);
    if (!resource) {
      reply(error_response(resource.error()));
      return;
    }
    query.after = *std::move(resource);
  }
  read_and_respond(
      request, std::move(reply),
      [query = std::move(query)](const View& view) { return copy_locks(view, query); },
      [](const LockPage& page) { return json(write(page)); });
}

void Router::lock(const Request& request, Reply reply) const {
  // The rest of the path is the name, which may contain slashes.
  const auto name = request.path.substr(lock_prefix.size());
  if (!request.access.may(auth::Verb::read, name)) {
    // Denied whether or not the lock exists.
    reply(deny(request, auth::Verb::read, name));
    return;
  }
  const auto kind = resource_kind(request);
  if (!kind) {
    reply(error_response(kind.error()));
    return;
  }
  const core::Resource resource{.name = name, .kind = *kind};
  read_and_respond(
      request, std::move(reply),
      [resource](const View& view) { return copy_lock(view, resource, in_full); },
      [](const std::optional<LockRecord>& found) {
        return found ? json(write(*found)) : not_found("the lock has no holder and no waiter");
      });
}

void Router::leases(const Request& request, Reply reply) const {
  const auto limit = page_limit(request);
  const auto after = parse_count(request.parameter("after").value_or("0"));
  if (!limit || !after) {
    reply(error_response(limit ? after.error() : limit.error()));
    return;
  }
  read_and_respond(
      request, std::move(reply),
      [range = auth::LeaseRange{core::LeaseId{*after}, *limit},
       access = request.access](const View& view) { return copy_leases(view, range, access); },
      [](const LeasePage& page) { return json(write(page)); });
}

void Router::lease(const Request& request, Reply reply) const {
  const auto number = parse_count(std::string_view(request.path).substr(lease_prefix.size()));
  if (!number) {
    reply(error_response(number.error()));
    return;
  }
  read_and_respond(
      request, std::move(reply),
      [wanted = core::LeaseId{*number}, access = request.access](const View& view) {
        return copy_lease(view, wanted, access);
      },
      [](const std::optional<LeaseRecord>& found) {
        return found ? json(write(*found)) : not_found("unknown or expired lease");
      });
}

void Router::graph(const Request& request, Reply reply) const {
  read_and_respond(
      request, std::move(reply),
      [access = request.access](const View& view) { return copy_graph(view, access); },
      [](const GraphRecord& record) { return json(write(record)); });
}

void Router::deadlocks(const Request& request, Reply reply) const {
  const Request stale_request{.query = {{"stale", "true"}}};
  read_and_respond(
      stale_request, std::move(reply),
      // The log of deadlocks belongs to the store's thread, so it is copied there.
      [this, access = request.access](const View& view) {
        return DeadlockPage{.now = view.now, .records = deadlocks_.latest(access)};
      },
      [](const DeadlockPage& page) { return json(write(page)); });
}

// Belongs to the HTTP thread, so no copy on the store's thread is needed.
void Router::history(const Request& request, Reply reply) const {
  const auto after = parse_count(request.parameter("after").value_or("0"));
  reply(after ? json(history_.write(*after)) : error_response(after.error()));
}

// Open to unauthenticated clients: the dashboard uses it to show a login form or the reason why a
// button is disabled.
void Router::rights(const Request& request, Reply reply) const {
  reply(json(write(rights_of(request.client, options_.rights, request.access))));
}

}  // namespace tenure::server::http
