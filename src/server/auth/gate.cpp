#include "server/auth/gate.hpp"

#include "sys/log.hpp"

namespace tenure::server::auth {
namespace {

constexpr std::string_view how_to_show =
    "show a token: `authorization: Bearer TOKEN`, tenure --token-file, "
    "ConnectOptions::auth_token_file; or a client certificate that the server knows";

}  // namespace

// Guests.

Guest::Guest(Gate& gate, Proof proof, std::string address)
    : gate_(gate),
      proof_(std::move(proof)),
      address_(std::move(address)),
      version_(gate.version()),
      access_(gate.access_by(proof_)) {}

const Access& Guest::access() {
  if (const auto version = gate_.version(); version != version_) {
    version_ = version;
    access_ = gate_.access_by(proof_);
  }
  return access_;
}

std::optional<Denial> Guest::why_not(Need need) {
  const auto& access = this->access();
  if (need == Need::nothing) {
    return std::nullopt;
  }
  if (!access.is_known()) {
    return unknown();
  }
  switch (need) {
    case Need::lock_somewhere:
      return access.may_somewhere(Verb::lock) ? std::nullopt : why_not(Verb::lock, {});
    case Need::read_overall: return why_not(Verb::read, {});
    case Need::admin_overall: return why_not(Verb::admin, {});
    case Need::nothing:
    case Need::identity:
    case Need::read_names:
    case Need::lock_names:
    case Need::admin_name:
    case Need::own_lease:
    case Need::each_operation: break;
  }
  return std::nullopt;
}

std::optional<Denial> Guest::why_not(Verb verb, std::string_view name) {
  const auto& access = this->access();
  if (access.may(verb, name)) {
    return std::nullopt;
  }
  if (!access.is_known()) {
    return unknown();
  }
  note(to_string(verb), name);
  return Denial{.error = access.denial(verb, name)};
}

bool Guest::is_foreign(std::string_view client, std::uint64_t lease) {
  const auto& access = this->access();
  if (access.is_everything() || access.may_overall(Verb::admin) ||
      (access.user() != nullptr && is_of(*access.user(), client))) {
    return false;
  }
  note("lease", std::to_string(lease));
  return true;
}

Denial Guest::unknown() {
  note("identify", {});
  std::string detail = "who asks? ";
  if (std::holds_alternative<Digest>(proof_)) {
    detail = "this token is not known here, or not any more: ";
  } else if (std::holds_alternative<std::vector<std::string>>(proof_)) {
    detail = "this certificate is nobody's here: ";
  }
  return {.kind = Denial::Kind::unknown,
          .error = {.code = Errc::permission_denied, .detail = detail + std::string(how_to_show)}};
}

void Guest::note(std::string_view verb, std::string_view name) {
  const auto* user = access_.user();
  // Without a user: by the machine. Its ports are too many.
  gate_.note({.who = user == nullptr ? machine_of(address_) : std::string_view(user->name),
              .verb = verb,
              .name = name,
              .address = address_});
}

// The gate.

Result<std::unique_ptr<Gate>> Gate::open(std::filesystem::path file) {
  auto rules = read_rulebook_file(file);
  if (!rules) {
    return std::unexpected(std::move(rules).error());
  }
  return std::make_unique<Gate>(*std::move(rules), std::move(file));
}

Gate::Gate(Rulebook rules, std::filesystem::path file)
    : file_(std::move(file)), rules_(std::make_shared<const Rulebook>(std::move(rules))) {}

Result<std::size_t> Gate::reload() {
  auto rules = read_rulebook_file(file_);
  if (!rules) {
    log::error("auth_reload_failed",
               {{"file", file_.string()},
                {"why", rules.error().detail},
                {"what", "nothing was changed: the users and rights of before are in force"}});
    return std::unexpected(std::move(rules).error());
  }
  const auto users = rules->users();
  replace(*std::move(rules));
  log::info("auth_reloaded", {{"file", file_.string()}, {"users", users}});
  return users;
}

void Gate::replace(Rulebook rules) {
  auto made = std::make_shared<const Rulebook>(std::move(rules));
  {
    const sys::MutexGuard lock(mutex_);
    rules_.swap(made);
  }
  version_.fetch_add(1, std::memory_order_release);
}

Proof Gate::proof_in(std::string_view authorization) {
  if (authorization.empty()) {
    return {};
  }
  // Another scheme proves nothing here, and is not passed over in silence either.
  return digest_of(bearer_token(authorization).value_or(authorization));
}

Access Gate::access_by(const Proof& proof) const {
  std::shared_ptr<const Rulebook> rules;
  {
    const sys::MutexGuard lock(mutex_);
    rules = rules_;
  }
  const User* user = nullptr;
  if (const auto* digest = std::get_if<Digest>(&proof)) {
    user = rules->by_token(*digest);
  } else if (const auto* names = std::get_if<std::vector<std::string>>(&proof)) {
    user = rules->by_certificate(*names);
  }
  return {std::move(rules), user};
}

void Gate::note(const Refused& refused) {
  if (denied_) {
    denied_(refused.verb);
  }
  std::optional<Denials::Line> line;
  {
    const sys::MutexGuard lock(mutex_);
    line = denials_.note(refused.who, refused.verb, Denials::Clock::now());
  }
  if (line) {
    log::warning("denied", {{"who", line->who},
                            {"verb", refused.verb},
                            {"name", refused.name},
                            {"from", refused.address},
                            {"more_before", line->before}});
  }
}

}  // namespace tenure::server::auth
