#include "cli/acquire.hpp"

#include <cstdint>
#include <limits>
#include <utility>

#include "cli/output.hpp"
#include "cli/wait_status.hpp"

namespace tenure::cli {
namespace {

/// Converts any guard to its base class.
/// The commands treat mutexes, shares and permits alike from then on.
template <class AnyGuard>
Result<LockHandle> to_handle(Result<AnyGuard> guard) {
  if (!guard) {
    return std::unexpected(std::move(guard).error());
  }
  return LockHandle(*std::move(guard));
}

/// Chooses the kind of lock. Without a wait, the try functions are used: they do not enter the wait
/// queue, so other waiters are not delayed by a request that would leave at once.
Result<LockHandle> lock(const Client& client, const AcquireSpec& spec, std::stop_token cancel) {
  LockOptions options{.ttl = spec.ttl, .max_wait = spec.wait, .metadata = spec.metadata};
  const bool may_wait = !spec.wait || spec.wait->count() > 0;
  if (spec.permits) {
    const auto semaphore = client.semaphore(spec.names.front(), *spec.permits, std::move(options));
    return to_handle(may_wait ? semaphore.acquire(std::move(cancel)) : semaphore.try_acquire());
  }
  if (spec.is_shared) {
    const auto shared = client.rw_all_of(spec.names, std::move(options));
    return to_handle(may_wait ? shared.lock_shared(std::move(cancel)) : shared.try_lock_shared());
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
  if (arguments.has("--shared") || arguments.has("--exclusive") || arguments.words.size() != 1) {
    return fail(
        Errc::invalid_argument,
        "--capacity makes a semaphore: give one name, and neither --shared nor --exclusive");
  }
  return SemaphoreSize{.capacity = static_cast<std::uint32_t>(**capacity),
                       .taken_at_once = static_cast<std::uint32_t>(permits->value_or(1))};
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

Result<AcquireSpec> parse_acquire_spec(const Arguments& arguments) {
  AcquireSpec spec{.names = arguments.words, .is_shared = arguments.has("--shared")};
  if (spec.is_shared && arguments.has("--exclusive")) {
    return fail(Errc::invalid_argument, "--shared and --exclusive exclude each other");
  }
  if (arguments.has("--no-wait") && arguments.has("--wait")) {
    return fail(Errc::invalid_argument, "--wait and --no-wait exclude each other");
  }
  const auto wait = arguments.duration("--wait");
  const auto ttl = arguments.duration("--ttl");
  if (!wait || !ttl) {
    return std::unexpected(!wait ? wait.error() : ttl.error());
  }
  // The parser has checked the names of the options only; the values are checked here.
  const auto permits = permits_of(arguments);
  if (!permits) {
    return std::unexpected(permits.error());
  }
  spec.permits = *permits;
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

Result<LockHandle> acquire(const Client& client, const AcquireSpec& spec,
                           const Arguments& arguments, std::stop_token cancel) {
  // It has a thread and a connection of its own, because this thread blocks in lock().
  auto line = WaitStatusLine::for_terminal(arguments, spec.names, client.owner());
  auto held = lock(client, spec, std::move(cancel));
  line.reset();
  return held;
}

}  // namespace tenure::cli
