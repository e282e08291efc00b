#include "server/http/rights.hpp"

#include "server/http/secret.hpp"

namespace tenure::server::http {
namespace {

Rights rights_of_user(const RightsPolicy& policy, const auth::Access& access) {
  Rights rights{.has_users = true};
  if (access.user() == nullptr) {
    rights.why = rights.why_lock = "nobody is logged in";
    return rights;
  }
  rights.user = access.user()->name;
  rights.rules = access.user()->rights.rules();
  const bool is_forceful = policy.force != HttpForce::off;
  rights.may_force = is_forceful && access.may_any(auth::Verb::admin);
  rights.why = rights.may_force ? rights.user + " is admin of some locks"
               : is_forceful    ? rights.user + " is admin of no locks"
                                : "listen.http_force is off";
  const bool is_locking = policy.lock != HttpLock::off;
  rights.may_lock = is_locking && access.may_any(auth::Verb::lock);
  rights.why_lock = rights.may_lock ? rights.user + " may lock some names"
                    : is_locking    ? rights.user + " may lock no names"
                                    : "listen.http_lock is off";
  return rights;
}

/// Does the request come from this machine, with the secret? The address and the fields of proxies
/// keep out more requests, but prove nothing: a proxy or relay on this machine need not add any.
bool is_trusted(const Caller& caller, std::string& why) {
  if (caller.is_forwarded) {
    why = "a proxy asks for somebody else";
    return false;
  }
  if (!caller.is_local) {
    why = "only from the machine that the server runs on";
    return false;
  }
  if (!caller.has_secret) {
    why = "the secret is missing: send `Authorization: Bearer SECRET`; it is in the file " +
          std::string(secret_file) + " of the data directory";
    return false;
  }
  why = "asked from the machine that the server runs on, with its secret";
  return true;
}

}  // namespace

Rights rights_of(const Caller& caller, const RightsPolicy& policy, const auth::Access& access) {
  if (!access.is_unrestricted()) {
    return rights_of_user(policy, access);
  }
  Rights rights;
  if (policy.force == HttpForce::off) {
    rights.why = "listen.http_force is off";
  } else {
    rights.may_force = is_trusted(caller, rights.why);
    rights.needs_secret = !rights.may_force && caller.is_local && !caller.is_forwarded;
  }
  if (policy.lock == HttpLock::off) {
    rights.why_lock = "listen.http_lock is off";
  } else if (policy.lock == HttpLock::open) {
    rights.may_lock = true;
    rights.why_lock = "listen.http_lock is open";
  } else {
    rights.may_lock = is_trusted(caller, rights.why_lock);
  }
  return rights;
}

std::optional<std::string_view> why_forged(const Caller& caller) {
  // A form cannot set it, and a script of another origin has to ask first, which we refuse.
  if (!caller.has_intent) {
    return "the field Tenure-Intent is missing";
  }
  const auto& site = caller.fetch_site;
  if (!site.empty() && site != "same-origin" && site != "none") {
    return "it comes from a page of another origin";
  }
  const auto& origin = caller.origin;
  if (!origin.empty() && origin != "http://" + caller.host && origin != "https://" + caller.host) {
    return "its origin is not this server";
  }
  return std::nullopt;
}

}  // namespace tenure::server::http
