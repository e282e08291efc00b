#include "server/http/request_rights.hpp"

#include "server/http/secret.hpp"

namespace tenure::server::http {
namespace {

/// Rights under a policy with users. The dashboard shows the reasons, so each names the setting or
/// the right that is missing.
RequestRights rights_of_user(const ChangePolicy& policy, const auth::Access& access) {
  RequestRights rights{.has_users = true};
  if (access.user() == nullptr) {
    rights.force_reason = rights.lock_reason = rights.administer_reason = "not logged in";
    return rights;
  }
  rights.user = access.user()->name;
  rights.rules = access.user()->rights.rules();
  const bool is_forceful = policy.force != HttpForce::off;
  rights.may_force = is_forceful && access.may_any(auth::Verb::admin);
  rights.force_reason = rights.may_force ? rights.user + " has the admin right on some names"
                        : is_forceful    ? rights.user + " has the admin right on no names"
                                         : "listen.http_force is off";
  rights.may_administer = is_forceful && access.may_globally(auth::Verb::admin);
  rights.administer_reason =
      rights.may_administer ? rights.user + " has the admin right on the empty prefix"
      : is_forceful         ? rights.user + " lacks the admin right on the empty prefix"
                            : "listen.http_force is off";
  const bool is_locking = policy.lock != HttpLock::off;
  rights.may_lock = is_locking && access.may_any(auth::Verb::lock);
  rights.lock_reason = rights.may_lock ? rights.user + " has the lock right on some names"
                       : is_locking    ? rights.user + " has the lock right on no names"
                                       : "listen.http_lock is off";
  return rights;
}

/// Whether the request comes from this machine and carries the secret. The address and the proxy
/// headers reject more requests but prove nothing: a local proxy or relay need not add headers.
bool is_trusted_client(const ClientInfo& client, std::string& why) {
  if (client.is_forwarded) {
    why = "the request was forwarded by a proxy";
    return false;
  }
  if (!client.is_local) {
    why = "allowed only from the machine of the server";
    return false;
  }
  if (!client.has_secret) {
    why = "the secret is missing: send `Authorization: Bearer SECRET`; it is in the file " +
          std::string(secret_file) + " of the data directory";
    return false;
  }
  why = "request from the machine of the server, with its secret";
  return true;
}

}  // namespace

RequestRights rights_of(const ClientInfo& client, const ChangePolicy& policy,
                        const auth::Access& access) {
  if (!access.is_unrestricted()) {
    return rights_of_user(policy, access);
  }
  RequestRights rights;
  const bool is_near = client.is_local && !client.is_forwarded;
  if (policy.force == HttpForce::off) {
    rights.force_reason = "listen.http_force is off";
  } else {
    rights.may_force = is_trusted_client(client, rights.force_reason);
    rights.needs_secret = !rights.may_force && is_near;
  }
  // Without users there is one operator: the owner of the secret.
  rights.may_administer = rights.may_force;
  rights.administer_reason = rights.force_reason;
  if (policy.lock == HttpLock::off) {
    rights.lock_reason = "listen.http_lock is off";
  } else if (policy.lock == HttpLock::open) {
    rights.may_lock = true;
    rights.lock_reason = "listen.http_lock is open";
  } else {
    rights.may_lock = is_trusted_client(client, rights.lock_reason);
    rights.lock_needs_secret = !rights.may_lock && is_near;
  }
  return rights;
}

std::optional<std::string_view> csrf_error(const ClientInfo& client) {
  // A form cannot set this header, and a cross-origin script needs a CORS preflight, which the
  // server rejects.
  if (!client.has_intent_header) {
    return "the header Tenure-Intent is missing";
  }
  const auto& site = client.fetch_site;
  // "none": the user entered the address. An empty header comes from a program or an old browser.
  if (!site.empty() && site != "same-origin" && site != "none") {
    return "cross-origin request";
  }
  const auto& origin = client.origin;
  // Both schemes are accepted: TLS may terminate at a proxy, which this server cannot see.
  if (!origin.empty() && origin != "http://" + client.host && origin != "https://" + client.host) {
    return "the Origin header does not match the Host header";
  }
  return std::nullopt;
}

}  // namespace tenure::server::http
