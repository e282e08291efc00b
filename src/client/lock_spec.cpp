#include "client/lock_spec.hpp"

#include <algorithm>
#include <string_view>
#include <variant>

#include "client/factory.hpp"
#include "client/session.hpp"
#include "client/shared_lease.hpp"
#include "client/validity.hpp"
#include "sys/escape.hpp"

namespace tenure::detail {
namespace {

using backends::Capability;
using backends::Item;

Error invalid(std::string detail) {
  return {.code = Errc::invalid_argument, .detail = std::move(detail)};
}

/// Whether the text has no control characters, which could control the terminal of an operator.
bool is_printable(std::string_view text) {
  return std::ranges::none_of(
      text, [](char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F; });
}

/// Checks the full name, whose prefix counts towards the limit of the service.
std::optional<Error> check_name(const std::string& name, std::string_view prefix,
                                const backends::Limits& limits) {
  if (name.size() <= prefix.size()) {
    return invalid("the name is empty; a lock needs a name of 1 to " +
                   std::to_string(limits.name_bytes_max) + " bytes");
  }
  if (name.size() > limits.name_bytes_max) {
    return invalid("the name has " + std::to_string(name.size()) + " bytes" +
                   (prefix.empty() ? "" : ", with its prefix") + "; at most " +
                   std::to_string(limits.name_bytes_max) + " are allowed");
  }
  if (!is_printable(name) || !sys::is_utf8(name)) {
    std::string shown;
    sys::append_plain(shown, name);
    return invalid("the name " + shown + " is not UTF-8, or contains control characters");
  }
  return std::nullopt;
}

/// Barging locks are plain keys with one holder and no token, so they support mutexes only.
std::optional<Error> check_plain(const std::vector<Item>& items, const LockOptions& options) {
  const auto is_plain = [](const Item& item) {
    const auto* mode = std::get_if<LockMode>(&item.claim);
    return mode != nullptr && *mode == LockMode::exclusive;
  };
  if (options.fairness == Fairness::queued) {
    return std::nullopt;
  }
  if (options.fencing == Fencing::demanded) {
    return Error{.code = Errc::unsupported,
                 .detail = "Fairness::barging has no fencing tokens: the lock is a plain key"};
  }
  if (items.size() == 1 && is_plain(items.front())) {
    return std::nullopt;
  }
  return Error{.code = Errc::unsupported,
               .detail = "Fairness::barging supports mutexes only: the lock is a plain key"};
}

/// Capability that the claim needs; std::nullopt: exclusive, which every backend supports.
std::optional<Capability> needed_for(const Item& item) {
  if (std::holds_alternative<backends::Permits>(item.claim)) {
    return Capability::semaphore;
  }
  if (std::holds_alternative<backends::Keys>(item.claim)) {
    return Capability::ranges;
  }
  switch (std::get<LockMode>(item.claim)) {
    case LockMode::exclusive: return std::nullopt;
    case LockMode::shared: return Capability::shared;
    default: return Capability::modes;
  }
}

/// Error that names the first missing capability, or std::nullopt.
std::optional<Error> check_capabilities(const std::vector<Item>& items, const LockOptions& options,
                                        backends::Capabilities capabilities) {
  std::vector<Capability> needed;
  for (const auto& item : items) {
    if (const auto capability = needed_for(item)) {
      needed.push_back(*capability);
    }
  }
  if (items.size() > 1) {
    needed.push_back(Capability::several_names);
  }
  if (options.lease) {
    needed.push_back(Capability::one_lease);
  }
  if (options.reentry == Reentry::counted) {
    needed.push_back(Capability::reentry);
  }
  if (options.fairness == Fairness::barging) {
    needed.push_back(Capability::barging);
  }
  if (options.fencing == Fencing::demanded) {
    needed.push_back(Capability::fencing);
  }
  if (options.min_replicas > 0) {
    needed.push_back(Capability::replicas);
  }
  if (options.hold_at_least > std::chrono::milliseconds::zero()) {
    needed.push_back(Capability::new_ttl);
  }
  const auto missing = std::ranges::find_if(
      needed, [&](Capability capability) { return !capabilities.has(capability); });
  if (missing == needed.end()) {
    return std::nullopt;
  }
  return Error{.code = Errc::unsupported,
               .detail = "this backend does not support " + std::string(to_string(*missing)) +
                         "; see docs/reference/backends.md"};
}

std::optional<Error> check_permits(const Item& item) {
  const auto* permits = std::get_if<backends::Permits>(&item.claim);
  if (permits == nullptr) {
    return std::nullopt;
  }
  if (permits->capacity == 0 || permits->wanted == 0 || permits->wanted > permits->capacity) {
    return invalid(
        "a semaphore needs a capacity of at least 1, and taken_at_once from 1 to the capacity");
  }
  return std::nullopt;
}

std::optional<Error> check_items(const std::vector<Item>& items, const Session& session) {
  const auto& limits = session.limits();
  if (items.empty() || items.size() > limits.items_max) {
    return invalid("a lock has 1 to " + std::to_string(limits.items_max) + " names, not " +
                   std::to_string(items.size()));
  }
  for (const auto& item : items) {
    auto error = check_name(item.name, session.key_prefix(), limits);
    if (!error) {
      error = check_permits(item);
    }
    if (error) {
      return error;
    }
  }
  std::vector<std::string_view> names;
  std::ranges::transform(items, std::back_inserter(names), &Item::name);
  // A name that occurs twice would conflict with itself.
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    return invalid("\"" + std::string(*twice) + "\" is named twice");
  }
  return std::nullopt;
}

std::optional<Error> check_hold_at_least(const LockOptions& options,
                                         const backends::Limits& limits) {
  const auto at_least = options.hold_at_least;
  const auto longest =
      limits.ttl_max - std::chrono::ceil<std::chrono::milliseconds>(drift_margin(limits.ttl_max));
  if (at_least < std::chrono::milliseconds::zero() || at_least > longest) {
    return invalid("hold_at_least must be from 0 to " + std::to_string(longest.count()) +
                   " ms, the longest TTL of this service less a margin for clock drift; got " +
                   std::to_string(at_least.count()) + " ms");
  }
  if (at_least > std::chrono::milliseconds::zero() && options.lease) {
    return invalid("hold_at_least needs a lease of its own; remove LockOptions::lease");
  }
  return std::nullopt;
}

std::optional<Error> check_options(const LockOptions& options, const backends::Limits& limits) {
  if (options.metadata.size() > limits.metadata_bytes_max) {
    return invalid("metadata has " + std::to_string(options.metadata.size()) + " bytes; at most " +
                   std::to_string(limits.metadata_bytes_max) + " are allowed");
  }
  if (options.max_wait && *options.max_wait < std::chrono::milliseconds::zero()) {
    return invalid("max_wait is negative");
  }
  constexpr std::uint32_t replicas_max = 100;
  if (options.min_replicas > replicas_max) {
    return invalid("min_replicas must be from 0 to 100, got " +
                   std::to_string(options.min_replicas));
  }
  if (options.reentry == Reentry::counted && !options.lease) {
    return invalid(
        "Reentry::counted needs LockOptions::lease, which identifies the owner that "
        "acquires again");
  }
  if (options.fairness == Fairness::barging && options.reentry == Reentry::counted) {
    return invalid("Fairness::barging does not support Reentry::counted: the lock is a plain key");
  }
  if (auto error = check_hold_at_least(options, limits)) {
    return error;
  }
  return options.lease ? std::nullopt : check_ttl(options.ttl, options.renewals_per_ttl, limits);
}

std::string describe(const std::vector<Item>& items) {
  std::string text;
  for (const auto& item : items) {
    text += (text.empty() ? "" : ", ") + item.name;
  }
  return text;
}

}  // namespace

std::optional<Error> check_ttl(std::chrono::milliseconds ttl, int renewals_per_ttl,
                               const backends::Limits& limits) {
  if (ttl <= std::chrono::milliseconds::zero()) {
    return invalid("ttl must be positive, got " + std::to_string(ttl.count()) + " ms");
  }
  if (ttl < limits.ttl_min || ttl > limits.ttl_max) {
    return invalid("ttl is " + std::to_string(ttl.count()) + " ms; this service accepts " +
                   std::to_string(limits.ttl_min.count()) + " ms to " +
                   std::to_string(limits.ttl_max.count()) + " ms");
  }
  // Renewals that are more frequent than every 1 % of the TTL only load the service.
  constexpr int renewals_max = 100;
  if (renewals_per_ttl < 0 || renewals_per_ttl > renewals_max) {
    return invalid("renewals_per_ttl must be from 0 (never) to 100, got " +
                   std::to_string(renewals_per_ttl));
  }
  return std::nullopt;
}

std::shared_ptr<const LockSpec> make_spec(std::shared_ptr<Session> session, std::vector<Item> items,
                                          LockOptions options, backends::LockKind kind) {
  for (auto& item : items) {
    // Before the checks, because the service limits the full name.
    item.name.insert(0, session->key_prefix());
  }
  LockSpec spec{.session = std::move(session), .acquire_spec = {}};
  spec.error = check_items(items, *spec.session);
  // The first error counts. Invalid arguments come before missing capabilities: a user who fixes
  // the argument should not have to look for another backend first.
  if (!spec.error) {
    spec.error = check_options(options, spec.session->limits());
  }
  if (!spec.error) {
    spec.error = check_capabilities(items, options, spec.session->backend().capabilities());
  }
  if (!spec.error) {
    spec.error = check_plain(items, options);
  }
  spec.ttl = options.ttl;
  spec.renewals_per_ttl = options.renewals_per_ttl;
  spec.max_wait = options.max_wait;
  spec.hold_at_least = options.hold_at_least;
  spec.name = describe(items);
  if (options.lease) {
    spec.lease = Factory::shared_lease(*options.lease);
  }
  if (options.on_at_risk) {
    spec.on_at_risk =
        std::make_shared<const std::function<void(const AtRisk&)>>(std::move(options.on_at_risk));
  }
  spec.acquire_spec = std::make_shared<const backends::AcquireSpec>(backends::AcquireSpec{
      .items = std::move(items),
      .self_conflict = options.reentry == Reentry::counted ? backends::SelfConflict::reenter
                                                           : backends::SelfConflict::refuse,
      .fairness = options.fairness,
      .kind = kind,
      .owner = spec.session->owner(),
      .metadata = std::move(options.metadata),
      .min_replicas = options.min_replicas});
  return std::make_shared<const LockSpec>(std::move(spec));
}

}  // namespace tenure::detail
