#include "server/auth/authorizer.hpp"

#include "sys/log.hpp"

namespace tenure::server::auth {
namespace {

constexpr std::string_view authentication_hint =
    "send a token (`authorization: Bearer TOKEN`, tenure --token-file, "
    "ConnectOptions::auth_token_file) or a client certificate listed in the users file";

}  // namespace

// Principal

Principal::Principal(Authorizer& authorizer, Credentials credentials, std::string address)
    : authorizer_(authorizer),
      credentials_(std::move(credentials)),
      address_(std::move(address)),
      // The version is read before the policy: a change in between is then noticed by the next
      // access(). The other order could keep an old policy under a new version.
      version_(authorizer.version()),
      access_(authorizer.access_for(credentials_)) {}

const Access& Principal::access() {
  if (const auto version = authorizer_.version(); version != version_) {
    version_ = version;
    access_ = authorizer_.access_for(credentials_);
  }
  return access_;
}

std::optional<AccessDenied> Principal::authorize(Permission permission) {
  const auto& access = this->access();
  if (permission == Permission::none) {
    return std::nullopt;
  }
  if (!access.is_authenticated()) {
    return unauthenticated();
  }
  switch (permission) {
    case Permission::lock_any_name:
      // The second call always denies; it records the denial and describes it.
      return access.may_any(Verb::lock) ? std::nullopt : authorize(Verb::lock, {});
    case Permission::read_global: return authorize(Verb::read, {});
    case Permission::admin_global: return authorize(Verb::admin, {});
    case Permission::none:
    case Permission::authenticated:
    case Permission::read_names:
    case Permission::lock_names:
    case Permission::admin_name:
    case Permission::own_lease:
    case Permission::per_operation: break;
  }
  return std::nullopt;
}

std::optional<AccessDenied> Principal::authorize(Verb verb, std::string_view name) {
  const auto& access = this->access();
  if (access.may(verb, name)) {
    return std::nullopt;
  }
  if (!access.is_authenticated()) {
    return unauthenticated();
  }
  record_denial(to_string(verb), name);
  return AccessDenied{.error = access.denial(verb, name)};
}

bool Principal::is_foreign(std::string_view client, std::uint64_t lease) {
  const auto& access = this->access();
  if (access.is_unrestricted() || access.may_globally(Verb::admin) ||
      (access.user() != nullptr && is_owned_by(*access.user(), client))) {
    return false;
  }
  record_denial("lease", std::to_string(lease));
  return true;
}

AccessDenied Principal::unauthenticated() {
  record_denial("identify", {});
  std::string detail = "authentication required: ";
  if (std::holds_alternative<Digest>(credentials_)) {
    detail = "unknown or revoked token: ";
  } else if (std::holds_alternative<std::vector<std::string>>(credentials_)) {
    detail = "the client certificate matches no user: ";
  }
  return {.kind = AccessDenied::Kind::unauthenticated,
          .error = {.code = Errc::permission_denied,
                    .detail = detail + std::string(authentication_hint)}};
}

void Principal::record_denial(std::string_view verb, std::string_view name) {
  const auto* user = access_.user();
  // Unauthenticated clients are counted by host: counting by port would fill the limiter.
  authorizer_.record_denial(
      {.principal = user == nullptr ? host_of(address_) : std::string_view(user->name),
       .verb = verb,
       .name = name,
       .address = address_});
}

// Authorizer

Result<std::unique_ptr<Authorizer>> Authorizer::open(std::filesystem::path file) {
  auto rules = load_policy_file(file);
  if (!rules) {
    return std::unexpected(std::move(rules).error());
  }
  return std::make_unique<Authorizer>(*std::move(rules), std::move(file));
}

Authorizer::Authorizer(Policy rules, std::filesystem::path file)
    : file_(std::move(file)), rules_(std::make_shared<const Policy>(std::move(rules))) {}

Result<std::size_t> Authorizer::reload() {
  auto rules = load_policy_file(file_);
  if (!rules) {
    log::error(
        "auth_reload_failed",
        {{"file", file_.string()}, {"error", rules.error().detail}, {"policy", "unchanged"}});
    return std::unexpected(std::move(rules).error());
  }
  const auto users = rules->users();
  replace(*std::move(rules));
  log::info("auth_reloaded", {{"file", file_.string()}, {"users", users}});
  return users;
}

void Authorizer::replace(Policy rules) {
  auto made = std::make_shared<const Policy>(std::move(rules));
  {
    const sys::MutexGuard lock(mutex_);
    // The old policy may be destroyed after the guard, outside of the mutex.
    rules_.swap(made);
  }
  // After the swap; see the constructor of Principal.
  version_.fetch_add(1, std::memory_order_release);
}

Credentials Authorizer::credentials_from(std::string_view authorization) {
  if (authorization.empty()) {
    return {};
  }
  // An unsupported scheme becomes a digest that matches no token, so the client gets an error
  // instead of anonymous access.
  return digest_of(bearer_token(authorization).value_or(authorization));
}

Access Authorizer::access_for(const Credentials& credentials) const {
  std::shared_ptr<const Policy> rules;
  {
    const sys::MutexGuard lock(mutex_);
    rules = rules_;
  }
  const User* user = nullptr;
  if (const auto* digest = std::get_if<Digest>(&credentials)) {
    // A client with an invalid token stays unauthenticated even if it also has a certificate.
    user = rules->find_by_token(*digest);
  } else if (const auto* names = std::get_if<std::vector<std::string>>(&credentials)) {
    user = rules->find_by_certificate(*names);
  }
  return {std::move(rules), user};
}

void Authorizer::record_denial(const DeniedRequest& request) {
  // Without the mutex: a callback must not run under it.
  if (denied_) {
    denied_(request.verb);
  }
  std::optional<DenialLogLimiter::Entry> entry;
  {
    const sys::MutexGuard lock(mutex_);
    entry = log_limiter_.admit(request.principal, request.verb, DenialLogLimiter::Clock::now());
  }
  if (entry) {
    log::warning("denied", {{"principal", entry->principal},
                            {"verb", request.verb},
                            {"name", request.name},
                            {"address", request.address},
                            {"suppressed", entry->suppressed}});
  }
}

}  // namespace tenure::server::auth
