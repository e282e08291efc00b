#include "cli/acquire.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "cli/items.hpp"
#include "cli/output.hpp"
#include "cli/service_lock.hpp"
#include "cli/wait_status.hpp"

namespace tenure::cli {
namespace {

/// Converts any guard to its base class.
/// The commands treat mutexes, shares and permits alike from then on.
template <class AnyGuard>
Result<std::unique_ptr<HeldLock>> to_handle(Result<AnyGuard> guard) {
  if (!guard) {
    return std::unexpected(std::move(guard).error());
  }
  return std::make_unique<LibraryLock>(LockHandle(*std::move(guard)));
}

/// Chooses the kind of lock. Without a wait, the try functions are used: they do not enter the wait
/// queue, so other waiters are not delayed by a request that would leave at once.
Result<std::unique_ptr<HeldLock>> lock_names_of(const Client& client, const AcquireSpec& spec,
                                                std::stop_token cancel) {
  LockOptions options{.ttl = spec.ttl,
                      .max_wait = spec.wait,
                      .hold_at_least = spec.hold_at_least,
                      .fairness = spec.fairness,
                      .metadata = spec.metadata};
  const bool may_wait = !spec.wait || spec.wait->count() > 0;
  if (spec.permits) {
    const auto semaphore = client.semaphore(spec.names.front(), *spec.permits, std::move(options));
    return to_handle(may_wait ? semaphore.acquire(std::move(cancel)) : semaphore.try_acquire());
  }
  if (spec.is_shared) {
    const auto shared = client.rw_all_of(spec.names, std::move(options));
    return to_handle(may_wait ? shared.lock_shared(std::move(cancel)) : shared.try_lock_shared());
  }
  // Several names cannot be plain keys of Redis.
  if (spec.fairness == Fairness::barging && spec.names.size() == 1) {
    const auto mutex = client.mutex(spec.names.front(), std::move(options));
    return to_handle(may_wait ? mutex.lock(std::move(cancel)) : mutex.try_lock());
  }
  // Also for one name: all_of() and mutex() make the same request then.
  const auto exclusive = client.all_of(spec.names, std::move(options));
  return to_handle(may_wait ? exclusive.lock(std::move(cancel)) : exclusive.try_lock());
}

/// std::nullopt without --capacity.
Result<std::optional<SemaphoreSize>> permits_of(const Arguments& arguments) {
  // The width of the fields of SemaphoreSize.
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  const auto capacity = arguments.number("--capacity", most);
  const auto permits = arguments.number("--permits", most);
  if (!capacity || !permits) {
    return std::unexpected(!capacity ? capacity.error() : permits.error());
  }
  if (!*capacity) {
    // The capacity has no default: all users of the name must agree on it.
    return *permits ? Result<std::optional<SemaphoreSize>>(
                          fail(Errc::invalid_argument, "--permits needs --capacity"))
                    : std::nullopt;
  }
  if (arguments.has("--shared") || arguments.has("--exclusive") || arguments.has("--mode") ||
      arguments.words.size() != 1) {
    return fail(Errc::invalid_argument, "--capacity makes a semaphore: give one name, and no mode");
  }
  return SemaphoreSize{.capacity = static_cast<std::uint32_t>(**capacity),
                       .taken_at_once = static_cast<std::uint32_t>(permits->value_or(1))};
}

/// Parses --at-least and --every into `spec`.
Result<void> parse_interval(const Arguments& arguments, AcquireSpec& spec) {
  const auto at_least = arguments.duration("--at-least");
  const auto every = arguments.duration("--every");
  if (!at_least || !every) {
    return std::unexpected(!at_least ? at_least.error() : every.error());
  }
  if (!*at_least && !*every) {
    return {};
  }
  if (*at_least && *every) {
    return fail(Errc::invalid_argument, "--at-least and --every exclude each other");
  }
  if (at_least->value_or(every->value_or(std::chrono::milliseconds::zero())) ==
      std::chrono::milliseconds::zero()) {
    return fail(Errc::invalid_argument, "--at-least and --every need a positive duration");
  }
  if (!spec.items.empty()) {
    return fail(Errc::invalid_argument, "--at-least and --every need names in mode S or X");
  }
  spec.hold_at_least = at_least->value_or(spec.hold_at_least);
  spec.every = *every;
  return {};
}

}  // namespace

std::string joined(const std::vector<std::string>& names, std::string_view between) {
  std::string text;
  // A separator before each name but the first.
  for (const auto& name : names) {
    text += text.empty() ? "" : between;
    text += name;
  }
  return text;
}

std::vector<std::string> lock_names(const AcquireSpec& spec) {
  if (spec.items.empty()) {
    return spec.names;
  }
  std::vector<std::string> names;
  for (const auto& item : spec.items) {
    names.push_back(item.name());
  }
  // The ancestors of a path come first in a request.
  std::ranges::reverse(names);
  return names;
}

void write_fields(sys::JsonWriter& json, const AcquireSpec& spec) {
  json.key("names").begin_array();
  for (const auto& name : spec.names) {
    json.value(std::string_view(name));
  }
  json.end_array();
  if (spec.permits) {
    json.field("permits", std::uint64_t{spec.permits->taken_at_once})
        .field("capacity", std::uint64_t{spec.permits->capacity});
  } else {
    json.field("mode", std::string_view(spec.mode));
  }
}

Result<AcquireSpec> parse_acquire_spec(const Arguments& arguments) {
  const auto mode = mode_of(arguments);
  if (!mode) {
    return std::unexpected(mode.error());
  }
  auto selection = select_items(arguments, *mode);
  if (!selection) {
    return std::unexpected(std::move(selection).error());
  }
  AcquireSpec spec{.names = std::move(selection->shown), .is_shared = *mode == "S", .mode = *mode};
  if (arguments.has("--no-wait") && arguments.has("--wait")) {
    return fail(Errc::invalid_argument, "--wait and --no-wait exclude each other");
  }
  const auto wait = arguments.duration("--wait");
  const auto ttl = arguments.duration("--ttl");
  const auto lease = arguments.number("--lease", std::numeric_limits<std::uint64_t>::max());
  if (!wait || !ttl || !lease) {
    return std::unexpected(!wait ? wait.error() : !ttl ? ttl.error() : lease.error());
  }
  // The parser has checked the names of the options only; the values are checked here.
  const auto permits = permits_of(arguments);
  if (!permits) {
    return std::unexpected(permits.error());
  }
  spec.permits = *permits;
  spec.lease = lease->transform([](std::uint64_t id) { return LeaseId{id}; });
  if (spec.lease && (arguments.has("--ttl") || arguments.has("--owner"))) {
    return fail(Errc::invalid_argument, "--lease excludes --ttl and --owner: the lease has both");
  }
  const bool is_plain = !arguments.has("--path") && !arguments.has("--space");
  if (spec.lease || !is_plain || (*mode != "S" && *mode != "X")) {
    spec.items = std::move(selection->items);
  }
  if (spec.permits && spec.lease) {
    auto& wanted = *spec.items.front().mutable_permits();
    wanted.set_capacity(spec.permits->capacity);
    wanted.set_wanted(spec.permits->taken_at_once);
  }
  spec.fairness = arguments.has("--barging") ? Fairness::barging : Fairness::queued;
  if (arguments.has("--barging") &&
      (spec.names.size() > 1 || *mode != "X" || spec.permits || !spec.items.empty())) {
    return fail(Errc::invalid_argument, "--barging needs one name in exclusive mode");
  }
  if (auto interval = parse_interval(arguments, spec); !interval) {
    return std::unexpected(std::move(interval).error());
  }
  // Zero milliseconds and --no-wait mean the same; no value means to wait without limit.
  spec.wait = arguments.has("--no-wait") ? std::optional(std::chrono::milliseconds::zero()) : *wait;
  spec.ttl = ttl->value_or(spec.ttl);
  // The command is the default metadata, so that an operator sees what a holder does. 200
  // characters identify it, and stay below the limits of all services.
  spec.metadata =
      arguments.text("--metadata")
          .value_or(arguments.command.empty() ? "" : joined(arguments.command, " ").substr(0, 200));
  return spec;
}

Result<std::unique_ptr<HeldLock>> acquire(const Client& client, const AcquireSpec& spec,
                                          const Arguments& arguments, std::stop_token cancel) {
  // It has a thread and a connection of its own, because this thread blocks in lock().
  auto line = WaitStatusLine::for_terminal(arguments, lock_names(spec), client.owner());
  auto held = spec.items.empty() ? lock_names_of(client, spec, std::move(cancel))
                                 : lock_items(client, spec, arguments, std::move(cancel));
  line.reset();
  return held;
}

}  // namespace tenure::cli
