#include "server/http/router.hpp"

#include <array>
#include <memory>
#include <utility>
#include <variant>

#include <boost/asio/post.hpp>

#include "server/config/units.hpp"
#include "server/http/assets.hpp"
#include "server/http/responses.hpp"
#include "server/http/server.hpp"

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
  if (log.commit_index > log.applied_index + entries_behind_max) {
    return "the log is still being applied";
  }
  if (!log.has_space) {
    return "the disk is full";
  }
  return std::nullopt;
}

}  // namespace

Router::Router(const Sources& sources, boost::asio::any_io_executor executor,
               const ServerOptions& options, ServerFacts facts)
    : sources_(sources),
      executor_(std::move(executor)),
      options_(options),
      facts_(std::move(facts)) {}

// Names no lock, so that no right on a name is needed: LockHandlers checks the owner of the lease.
template <void (LockHandlers::*action)(const Request&, Reply)>
void Router::use_lease(const Request& request, Reply reply) const {
  if (may_lock(request, {}, reply)) {
    (sources_.lock_handlers.*action)(request, std::move(reply));
  }
}

template <void (ClusterHandlers::*action)(const Request&, Reply)>
void Router::administer(const Request& request, Reply reply) const {
  if (may_administer(request, reply)) {
    (sources_.cluster_handlers.*action)(request, std::move(reply));
  }
}

std::span<const Router::Route> Router::routes() {
  using enum auth::Permission;
  using enum Method;
  using R = Router;
  using L = LockHandlers;
  using C = ClusterHandlers;
  // Longer paths first: the first match wins.
  static constexpr std::array all{
      Route{get, "/", none, &R::front},
      Route{get, "/healthz", none, &R::health},
      Route{get, "/readyz", none, &R::ready},
      Route{get, "/metrics", read_global, &R::metrics},
      Route{get, "/v1/status", authenticated, &R::status},
      Route{get, "/v1/cluster", authenticated, &R::cluster},
      Route{get, "/v1/history", read_global, &R::history},
      Route{get, "/v1/deadlocks", read_names, &R::deadlocks},
      Route{get, "/v1/graph", read_names, &R::graph},
      Route{get, "/v1/events", read_names, nullptr},
      Route{get, "/v1/watch", read_names, nullptr},
      Route{get, "/v1/openapi.json", none, &R::openapi},
      Route{get, "/v1/locks", read_names, &R::locks},
      Route{get, "/v1/leases", own_lease, &R::leases},
      Route{get, "/v1/leases/", own_lease, &R::lease},
      Route{get, "/v1/rights", none, &R::rights},
      Route{post, "/v1/login", none, &R::login},
      Route{post, "/v1/logout", none, &R::logout},
      Route{post, "/v1/leases", lock_any_name, &R::use_lease<&L::grant_lease>},
      Route{post, "/v1/leases/", own_lease, &R::use_lease<&L::renew_lease>, ":renew"},
      Route{post, "/v1/leases/", own_lease, &R::use_lease<&L::revoke_lease>, ":revoke"},
      Route{post, "/v1/locks/", lock_names, &R::acquire, ":acquire"},
      Route{post, "/v1/locks/", own_lease, &R::use_lease<&L::release>, ":release"},
      Route{post, "/v1/locks/", own_lease, &R::use_lease<&L::extend>, ":extend"},
      Route{post, "/v1/tokens:check", read_names, &R::check_token},
      Route{post, "/v1/locks/", admin_name, &R::force_release, ":force-release"},
      Route{get, "/v1/locks/", read_names, &R::lock},
      Route{post, "/v1/cluster/members", admin_global, &R::administer<&C::add_member>},
      Route{post, "/v1/cluster/members/", admin_global, &R::administer<&C::remove_member>,
            ":remove"},
      Route{post, "/v1/cluster:transfer-leadership", admin_global,
            &R::administer<&C::transfer_leadership>},
      Route{post, "/v1/cluster:reload", admin_global, &R::administer<&C::reload>},
  };
  return all;
}

const Router::Route* Router::find(const Request& request) {
  const std::string_view path = request.path;
  for (const auto& route : routes()) {
    const bool fits = route.has_parameter()
                          ? path.starts_with(route.path) && path.ends_with(route.suffix) &&
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
             ? sources_.sessions.find(client.session, LoginSessions::Clock::now())
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
  if (options_.authorizer == nullptr) {
    // Without users every request is admitted; the secret matters for changes only.
    request.client.has_secret = shows_secret(request.client);
    return std::nullopt;
  }
  const auto* route = find(request);
  // An unknown path needs no permission: its 404 reveals nothing.
  const bool is_open =
      route == nullptr || (route->page == &Router::metrics && options_.open_metrics);
  const auto principal =
      options_.authorizer->authenticate(credentials_of(request.client), request.client.address);
  const auto denial = principal->authorize(is_open ? auth::Permission::none : route->permission);
  // Rights for the handler, which checks single names.
  request.access = principal->access();
  return denial ? std::optional(error_response(*denial)) : std::nullopt;
}

Response Router::deny(const Request& request, auth::Verb verb, std::string_view name) const {
  const auto& client = request.client;
  const auto denial =
      options_.authorizer == nullptr
          ? std::nullopt
          : options_.authorizer->authenticate(credentials_of(client), client.address)
                ->authorize(verb, name);
  // The policy may have changed since the request was denied.
  return denial ? error_response(*denial) : forbidden(request.access.denial(verb, name));
}

std::function<bool(std::string_view)> Router::read_filter_of(const Request& request) const {
  if (options_.authorizer == nullptr) {
    return [](std::string_view) { return true; };
  }
  // An event stream can outlive a logout, so a login is checked for each event.
  const bool is_login = login_of(request.client).has_value();
  const std::shared_ptr<auth::Principal> principal =
      options_.authorizer->authenticate(credentials_of(request.client), request.client.address);
  return [this, principal,
          session = is_login ? request.client.session : std::string()](std::string_view name) {
    return principal->access().may(auth::Verb::read, name) &&
           (session.empty() || sources_.sessions.find(session, LoginSessions::Clock::now()));
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
  if (route->has_parameter()) {
    const auto length = request.path.size() - route->path.size() - route->suffix.size();
    request.path_parameter = request.path.substr(route->path.size(), length);
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
  read_and_respond(ReadFrom::member, std::move(reply), why_not_ready,
                   [](std::optional<std::string_view> why) {
                     return why ? problem(503, "Not Ready", *why) : text(200, "ready\n");
                   });
}

// The gauges are updated on the store's thread; the text is built on the HTTP thread, because it
// takes longer. A stopped store yields the last values.
void Router::metrics(const Request& /*request*/, Reply reply) const {
  sources_.store.peek([this, reply = std::move(reply)](const Result<View>& view) mutable {
    if (view) {
      sources_.metrics.observe(*view);
    }
    boost::asio::post(executor_, [this, reply = std::move(reply)]() mutable {
      reply({.content_type = "text/plain; version=0.0.4; charset=utf-8",
             .body = sources_.metrics.text()});
    });
  });
}

// Answers without a leader: that is when an operator asks.
void Router::status(const Request& /*request*/, Reply reply) const {
  read_and_respond(
      ReadFrom::member, std::move(reply), copy_status,
      [facts = facts_](const StatusRecord& record) { return json(write(record, facts)); });
}

void Router::cluster(const Request& /*request*/, Reply reply) const {
  read_and_respond(
      ReadFrom::member, std::move(reply), copy_cluster,
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
      read_from(request), std::move(reply),
      [query = std::move(query)](const View& view) { return copy_locks(view, query); },
      [](const LockPage& page) { return json(write(page)); });
}

void Router::lock(const Request& request, Reply reply) const {
  // The rest of the path is the name, which may contain slashes.
  const auto& name = request.path_parameter;
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
      read_from(request), std::move(reply),
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
      read_from(request), std::move(reply),
      [range = auth::LeaseRange{core::LeaseId{*after}, *limit},
       access = request.access](const View& view) { return copy_leases(view, range, access); },
      [](const LeasePage& page) { return json(write(page)); });
}

void Router::lease(const Request& request, Reply reply) const {
  const auto number = parse_count(request.path_parameter);
  if (!number) {
    reply(error_response(number.error()));
    return;
  }
  read_and_respond(
      read_from(request), std::move(reply),
      [wanted = core::LeaseId{*number}, access = request.access](const View& view) {
        return copy_lease(view, wanted, access);
      },
      [](const std::optional<LeaseRecord>& found) {
        return found ? json(write(*found)) : not_found("unknown or expired lease");
      });
}

void Router::graph(const Request& request, Reply reply) const {
  read_and_respond(
      read_from(request), std::move(reply),
      [access = request.access](const View& view) { return copy_graph(view, access); },
      [](const GraphRecord& record) { return json(write(record)); });
}

void Router::deadlocks(const Request& request, Reply reply) const {
  read_and_respond(
      ReadFrom::member, std::move(reply),
      // The log of deadlocks belongs to the store's thread, so it is copied there.
      [this, access = request.access](const View& view) {
        return DeadlockPage{.now = view.now, .records = sources_.deadlocks.latest(access)};
      },
      [](const DeadlockPage& page) { return json(write(page)); });
}

// Belongs to the HTTP thread, so no copy on the store's thread is needed.
void Router::history(const Request& request, Reply reply) const {
  const auto after = parse_count(request.parameter("after").value_or("0"));
  reply(after ? json(sources_.history.write(*after)) : error_response(after.error()));
}

// Open to unauthenticated clients: the dashboard uses it to show a login form or the reason why a
// button is disabled.
void Router::rights(const Request& request, Reply reply) const {
  reply(json(write(rights_of(request.client, options_.rights, request.access))));
}

}  // namespace tenure::server::http
