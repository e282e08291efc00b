#include <chrono>
#include <string>
#include <utility>
#include <variant>

#include "server/config/units.hpp"
#include "server/http/body.hpp"
#include "server/http/responses.hpp"
#include "server/http/router.hpp"
#include "server/http/server.hpp"
#include "sys/log.hpp"

// Handlers of POST requests: login and logout, locks and leases, force-release, cluster
// administration.

namespace tenure::server::http {
namespace {

/// Login cookie, inaccessible to scripts and not sent from pages of another origin.
std::string cookie_of(const ClientInfo& client, std::string_view secret,
                      std::chrono::seconds life) {
  // If TLS terminates at a proxy, the Origin header shows it.
  const bool is_secure = client.is_encrypted || client.origin.starts_with("https://");
  return std::string(LoginSessions::cookie) + '=' + std::string(secret) +
         "; Path=/; HttpOnly; SameSite=Strict; Max-Age=" + std::to_string(life.count()) +
         (is_secure ? "; Secure" : "");
}

/// Number of released holds, or the error. A free lock is a conflict: the operator expected a
/// holder.
Response force_release_response(const Result<Decided>& decided) {
  if (!decided) {
    return error_response(decided.error());
  }
  if (const auto* refused = std::get_if<core::Refused>(&decided->outcome)) {
    const bool is_free = refused->error == Errc::not_held;
    return error_response(is_free ? Error{.code = Errc::not_held, .detail = "not held"}
                                  : refused->error);
  }
  const auto* forced = std::get_if<core::Forced>(&decided->outcome);
  return json_object([&](sys::JsonWriter& out) {
    out.field("holds", forced == nullptr ? 0 : forced->holds);
    out.field("revision", decided->revision);
  });
}

}  // namespace

void Router::login(const Request& request, Reply reply) const {
  const auto& client = request.client;
  // Login too: a foreign page could otherwise log the browser in with credentials of an attacker.
  if (const auto forged = csrf_error(client)) {
    reply(problem(403, "Forbidden", *forged));
    return;
  }
  if (options_.authorizer == nullptr) {
    login_with_secret(request, std::move(reply));
    return;
  }
  const auto credentials = auth::Authorizer::credentials_from(client.authorization);
  // Only tokens: a browser presents a client certificate with every request anyway.
  const auto* token = std::get_if<auth::Digest>(&credentials);
  if (token == nullptr) {
    reply(problem(400, "Bad Request", "token required: Authorization: Bearer TOKEN"));
    return;
  }
  // Rejects unknown tokens and records the denial, as for any request.
  const auto principal = options_.authorizer->authenticate(credentials, client.address);
  const auto denial = principal->authorize(auth::Permission::authenticated);
  // A reload can happen at any time. Everything below uses one consistent snapshot of the policy.
  const auto access = principal->access();
  if (denial || access.user() == nullptr) {
    reply(denial ? error_response(*denial)
                 : problem(401, "Unauthorized", "the users file has just changed; retry"));
    return;
  }
  log::info("login", {{"principal", access.user()->name}, {"address", client.address}});
  auto response = json(write(rights_of(client, options_.rights, access)));
  response.fields.emplace_back(
      "Set-Cookie", cookie_of(client, sources_.sessions.begin(*token, LoginSessions::Clock::now()),
                              LoginSessions::life));
  reply(std::move(response));
}

void Router::login_with_secret(const Request& request, Reply reply) const {
  const auto& client = request.client;
  const auto token = auth::bearer_token(client.authorization);
  if (!options_.secret || !token) {
    reply(problem(400, "Bad Request",
                  options_.secret ? "secret required: Authorization: Bearer SECRET"
                                  : "no users are configured; start tenured with --auth-file"));
    return;
  }
  const auto digest = auth::digest_of(*token);
  // The secret has 256 random bits by default, so failed attempts need no further rate limit.
  if (!is_secret(digest)) {
    log::warning("login_denied", {{"address", client.address}});
    reply(problem(403, "Forbidden", "wrong secret"));
    return;
  }
  log::info("login", {{"principal", "secret"}, {"address", client.address}});
  auto response = json(write(rights_of(client, options_.rights, request.access)));
  response.fields.emplace_back(
      "Set-Cookie", cookie_of(client, sources_.sessions.begin(digest, LoginSessions::Clock::now()),
                              LoginSessions::life));
  reply(std::move(response));
}

void Router::logout(const Request& request, Reply reply) const {
  const auto& client = request.client;
  if (const auto forged = csrf_error(client)) {
    reply(problem(403, "Forbidden", *forged));
    return;
  }
  // Ends the session on the server; the empty cookie with Max-Age 0 removes it from the browser.
  sources_.sessions.end(client.session);
  auto response = json("{}\n");
  response.fields.emplace_back("Set-Cookie", cookie_of(client, "", {}));
  reply(std::move(response));
}

// With users, the right on the name decides first. rights_of() then applies listen.http_force and,
// without users, requires the secret.
bool Router::may_force(const Request& request, std::string_view name, Reply& reply) const {
  const auto& client = request.client;
  const auto forged = csrf_error(client);
  if (!forged && !request.access.may(auth::Verb::admin, name)) {
    reply(deny(request, auth::Verb::admin, name));
    return false;
  }
  const auto rights = rights_of(client, options_.rights, request.access);
  if (forged || !rights.may_force) {
    const std::string why(forged.value_or(rights.force_reason));
    log::warning("force_release_denied", {{"address", client.address}, {"reason", why}});
    reply(problem(403, "Forbidden", why));
    return false;
  }
  return true;
}

// With users, serve() has checked the admin right on the empty prefix. rights_of() applies
// listen.http_force and, without users, requires the secret.
bool Router::may_administer(const Request& request, Reply& reply) const {
  const auto forged = csrf_error(request.client);
  const auto rights = rights_of(request.client, options_.rights, request.access);
  if (!forged && rights.may_administer) {
    return true;
  }
  const std::string why(forged.value_or(rights.administer_reason));
  log::warning("cluster_change_denied", {{"address", request.client.address}, {"reason", why}});
  reply(problem(403, "Forbidden", why));
  return false;
}

// Denials are logged as warnings, except those of the policy, which deny() has logged.
bool Router::may_lock(const Request& request, std::string_view name, Reply& reply) const {
  const auto& client = request.client;
  const auto forged = csrf_error(client);
  const auto& access = request.access;
  if (!forged && !name.empty() && !access.may(auth::Verb::lock, name)) {
    reply(deny(request, auth::Verb::lock, name));
    return false;
  }
  const auto rights = rights_of(client, options_.rights, access);
  // A user without the lock right can still release.
  const bool is_closed =
      access.is_unrestricted() ? !rights.may_lock : options_.rights.lock == HttpLock::off;
  if (forged || is_closed) {
    const std::string why(forged.value_or(rights.lock_reason));
    log::warning("http_lock_denied", {{"address", client.address}, {"reason", why}});
    reply(problem(403, "Forbidden", why));
    return false;
  }
  return true;
}

void Router::acquire(const Request& request, Reply reply) const {
  if (may_lock(request, request.path_parameter, reply)) {
    sources_.lock_handlers.acquire(request, std::move(reply));
  }
}

void Router::check_token(const Request& request, Reply reply) const {
  if (const auto forged = csrf_error(request.client)) {
    reply(problem(403, "Forbidden", *forged));
    return;
  }
  const auto asked = read_body(request.body, [](Body& body) {
    auto name = body.required_text("name");
    return std::pair(std::move(name), body.required_number("token"));
  });
  if (!asked) {
    reply(error_response(asked.error()));
    return;
  }
  const auto& [name, token] = *asked;
  if (!request.access.may(auth::Verb::read, name)) {
    reply(deny(request, auth::Verb::read, name));
    return;
  }
  read_and_respond(
      read_from(request), std::move(reply),
      [resource = core::Resource{.name = name}, wanted = core::FencingToken(token)](
          const View& view) { return copy_token_check(view, resource, wanted); },
      [this](const TokenRecord& record) {
        // Counted for alerts: a storage that rejects tokens indicates clients that lost their
        // locks.
        if (record.verdict != TokenVerdict::held) {
          sources_.metrics.fencing_rejected();
        }
        return json(write(record));
      });
}

void Router::force_release(const Request& request, Reply reply) const {
  const auto& name = request.path_parameter;
  if (!may_force(request, name, reply)) {
    return;
  }
  const auto kind = resource_kind(request);
  const auto token = parse_count(request.parameter("token").value_or("0"));
  if (!kind || !token) {
    reply(error_response(kind ? token.error() : kind.error()));
    return;
  }
  // The reason appears in the event and in the log.
  const auto reason = read_body(
      request.body, [](Body& body) { return body.text("reason").value_or(std::string()); });
  if (!reason) {
    reply(error_response(reason.error()));
    return;
  }
  const auto* user = request.access.user();
  core::ForceRelease force{.resource = {.name = name, .kind = *kind},
                           .operator_name = user == nullptr ? request.client.address : user->name,
                           .reason = *reason};
  // Without a token, the lock is released for all its holders.
  if (*token != 0) {
    force.token = core::FencingToken(*token);
  }
  sources_.store.propose(std::move(force), [reply = reply_on(executor_, std::move(reply))](
                                               const Result<Decided>& decided) mutable {
    reply(force_release_response(decided));
  });
}

}  // namespace tenure::server::http
