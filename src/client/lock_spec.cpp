#include "client/lock_spec.hpp"

#include <algorithm>
#include <string_view>
#include <variant>

#include "client/session.hpp"
#include "client/shared_lease.hpp"
#include "sys/escape.hpp"

namespace tenure::detail {
namespace {

using backends::Item;
using backends::Promise;

Error invalid(std::string detail) {
  return {.code = Errc::invalid_argument, .detail = std::move(detail)};
}

bool is_printable(std::string_view text) {
  return std::ranges::none_of(
      text, [](char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F; });
}

std::optional<Error> check_name(const std::string& name, std::string_view prefix,
                                const backends::Bounds& bounds) {
  if (name.size() <= prefix.size()) {
    return invalid("the name is empty; a lock needs a name of 1 to " +
                   std::to_string(bounds.name_bytes_max) + " bytes");
  }
  if (name.size() > bounds.name_bytes_max) {
    return invalid("the name has " + std::to_string(name.size()) + " bytes" +
                   (prefix.empty() ? "" : ", with its prefix") + "; at most " +
                   std::to_string(bounds.name_bytes_max) + " are allowed");
  }
  if (!is_printable(name) || !sys::is_utf8(name)) {
    std::string shown;
    sys::append_plain(shown, name);
    return invalid("the name " + shown + " is not UTF-8 without control characters");
  }
  return std::nullopt;
}

/// A plain key is one holder's.
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
                 .detail = "Fairness::barging does not fence: a plain key remembers no token"};
  }
  if (items.size() == 1 && is_plain(items.front())) {
    return std::nullopt;
  }
  return Error{.code = Errc::unsupported,
               .detail = "Fairness::barging is for a mutex: a plain key has one holder"};
}

std::optional<Promise> needed_for(const Item& item) {
  if (std::holds_alternative<backends::Permits>(item.claim)) {
    return Promise::semaphore;
  }
  if (std::holds_alternative<backends::Keys>(item.claim)) {
    return Promise::ranges;
  }
  switch (std::get<LockMode>(item.claim)) {
    case LockMode::exclusive: return std::nullopt;
    case LockMode::shared: return Promise::shared;
    default: return Promise::modes;
  }
}

/// What the backend cannot do of what is asked for, if anything.
std::optional<Error> check_promises(const std::vector<Item>& items, const LockOptions& options,
                                    backends::Promises promises) {
  std::vector<Promise> needed;
  for (const auto& item : items) {
    if (const auto promise = needed_for(item)) {
      needed.push_back(*promise);
    }
  }
  if (items.size() > 1) {
    needed.push_back(Promise::several_names);
  }
  if (options.lease) {
    needed.push_back(Promise::one_lease);
  }
  if (options.reentry == Reentry::counted) {
    needed.push_back(Promise::reentry);
  }
  if (options.fairness == Fairness::barging) {
    needed.push_back(Promise::barging);
  }
  if (options.fencing == Fencing::demanded) {
    needed.push_back(Promise::fencing);
  }
  if (options.min_replicas > 0) {
    needed.push_back(Promise::replicas);
  }
  const auto missing =
      std::ranges::find_if(needed, [&](Promise promise) { return !promises.has(promise); });
  if (missing == needed.end()) {
    return std::nullopt;
  }
  return Error{.code = Errc::unsupported,
               .detail = "this backend does not promise " + std::string(to_string(*missing)) +
                         "; docs/reference/backends.md says which one does"};
}

std::optional<Error> check_permits(const Item& item) {
  const auto* permits = std::get_if<backends::Permits>(&item.claim);
  if (permits == nullptr) {
    return std::nullopt;
  }
  if (permits->capacity == 0 || permits->wanted == 0 || permits->wanted > permits->capacity) {
    return invalid("a semaphore has at least one permit, and takes from one to all at once");
  }
  return std::nullopt;
}

std::optional<Error> check_items(const std::vector<Item>& items, const Session& session) {
  const auto& bounds = session.bounds();
  if (items.empty() || items.size() > bounds.items_max) {
    return invalid("from 1 to " + std::to_string(bounds.items_max) + " names at once, not " +
                   std::to_string(items.size()));
  }
  for (const auto& item : items) {
    auto error = check_name(item.name, session.key_prefix(), bounds);
    if (!error) {
      error = check_permits(item);
    }
    if (error) {
      return error;
    }
  }
  std::vector<std::string_view> names;
  std::ranges::transform(items, std::back_inserter(names), &Item::name);
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    return invalid("\"" + std::string(*twice) + "\" is named twice");
  }
  return std::nullopt;
}

std::optional<Error> check_options(const LockOptions& options, const backends::Bounds& bounds) {
  if (options.note.size() > bounds.metadata_bytes_max) {
    return invalid("the note has " + std::to_string(options.note.size()) + " bytes; at most " +
                   std::to_string(bounds.metadata_bytes_max) + " are allowed");
  }
  if (options.max_wait && *options.max_wait < std::chrono::milliseconds::zero()) {
    return invalid("max_wait is negative");
  }
  constexpr std::uint32_t replicas_max = 100;
  if (options.min_replicas > replicas_max) {
    return invalid("min_replicas is from 0 to 100, not " + std::to_string(options.min_replicas));
  }
  if (options.reentry == Reentry::counted && !options.lease) {
    return invalid(
        "Reentry::counted needs LockOptions::lease: without a lease of one's own nobody "
        "can tell that it is the same owner");
  }
  if (options.fairness == Fairness::barging && options.reentry == Reentry::counted) {
    return invalid("Fairness::barging has no counts: a plain key is held or not");
  }
  return options.lease ? std::nullopt : check_ttl(options.ttl, options.renewals_per_ttl, bounds);
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
                               const backends::Bounds& bounds) {
  if (ttl <= std::chrono::milliseconds::zero()) {
    return invalid("ttl must be positive, got " + std::to_string(ttl.count()) + " ms");
  }
  if (ttl < bounds.ttl_min || ttl > bounds.ttl_max) {
    return invalid("ttl is " + std::to_string(ttl.count()) + " ms; this service takes from " +
                   std::to_string(bounds.ttl_min.count()) + " ms to " +
                   std::to_string(bounds.ttl_max.count()) + " ms");
  }
  constexpr int renewals_max = 100;
  if (renewals_per_ttl < 0 || renewals_per_ttl > renewals_max) {
    return invalid("renewals_per_ttl is from 0 (never) to 100, not " +
                   std::to_string(renewals_per_ttl));
  }
  return std::nullopt;
}

std::shared_ptr<const LockSpec> make_spec(std::shared_ptr<Session> session, std::vector<Item> items,
                                          LockOptions options, backends::Form form) {
  for (auto& item : items) {
    item.name.insert(0, session->key_prefix());
  }
  LockSpec spec{.session = std::move(session), .ask = {}};
  spec.error = check_items(items, *spec.session);
  if (!spec.error) {
    spec.error = check_options(options, spec.session->bounds());
  }
  if (!spec.error) {
    spec.error = check_promises(items, options, spec.session->backend().promises());
  }
  if (!spec.error) {
    spec.error = check_plain(items, options);
  }
  spec.ttl = options.ttl;
  spec.renewals_per_ttl = options.renewals_per_ttl;
  spec.max_wait = options.max_wait;
  spec.name = describe(items);
  if (options.lease) {
    spec.lease = shared_part(*options.lease);
  }
  if (options.on_at_risk) {
    spec.on_at_risk =
        std::make_shared<const std::function<void(const AtRisk&)>>(std::move(options.on_at_risk));
  }
  spec.ask = std::make_shared<const backends::Ask>(
      backends::Ask{.items = std::move(items),
                    .again = options.reentry == Reentry::counted ? backends::Again::reenter
                                                                 : backends::Again::refuse,
                    .fairness = options.fairness,
                    .form = form,
                    .owner = spec.session->owner(),
                    .metadata = std::move(options.note),
                    .min_replicas = options.min_replicas});
  return std::make_shared<const LockSpec>(std::move(spec));
}

}  // namespace tenure::detail
