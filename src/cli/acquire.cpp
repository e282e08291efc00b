#include "cli/acquire.hpp"

#include <cstdint>
#include <limits>
#include <utility>

#include "cli/output.hpp"
#include "cli/waiting_line.hpp"

namespace tenure::cli {
namespace {

/// Whichever guard it is: what all have in common.
template <class AnyGuard>
Result<LockHandle> possession(Result<AnyGuard> guard) {
  if (!guard) {
    return std::unexpected(std::move(guard).error());
  }
  return LockHandle(*std::move(guard));
}

Result<LockHandle> lock(const Client& client, const Wish& wish, std::stop_token cancel) {
  LockOptions options{.ttl = wish.ttl, .max_wait = wish.wait, .metadata = wish.note};
  const bool may_wait = !wish.wait || wish.wait->count() > 0;
  if (wish.permits) {
    const auto semaphore = client.semaphore(wish.names.front(), *wish.permits, std::move(options));
    return possession(may_wait ? semaphore.acquire(std::move(cancel)) : semaphore.try_acquire());
  }
  if (wish.is_shared) {
    const auto shared = client.rw_all_of(wish.names, std::move(options));
    return possession(may_wait ? shared.lock_shared(std::move(cancel)) : shared.try_lock_shared());
  }
  const auto exclusive = client.all_of(wish.names, std::move(options));
  return possession(may_wait ? exclusive.lock(std::move(cancel)) : exclusive.try_lock());
}

/// Nothing: no semaphore is asked for.
Result<std::optional<SemaphoreSize>> permits_of(const Arguments& arguments) {
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  const auto capacity = arguments.number("--capacity", most);
  const auto permits = arguments.number("--permits", most);
  if (!capacity || !permits) {
    return std::unexpected(!capacity ? capacity.error() : permits.error());
  }
  if (!*capacity) {
    return *permits ? Result<std::optional<SemaphoreSize>>(
                          fail(Errc::invalid_argument, "--permits of how many? Say --capacity"))
                    : std::nullopt;
  }
  if (arguments.has("--shared") || arguments.has("--exclusive") || arguments.words.size() != 1) {
    return fail(Errc::invalid_argument,
                "with --capacity it is a semaphore: of one name, neither shared nor exclusive");
  }
  return SemaphoreSize{.capacity = static_cast<std::uint32_t>(**capacity),
                       .taken_at_once = static_cast<std::uint32_t>(permits->value_or(1))};
}

}  // namespace

std::string joined(const std::vector<std::string>& names, std::string_view between) {
  std::string text;
  for (const auto& name : names) {
    text += text.empty() ? "" : between;
    text += name;
  }
  return text;
}

Result<Wish> wish_of(const Arguments& arguments) {
  Wish wish{.names = arguments.words, .is_shared = arguments.has("--shared")};
  if (wish.is_shared && arguments.has("--exclusive")) {
    return fail(Errc::invalid_argument, "either --shared or --exclusive");
  }
  if (arguments.has("--no-wait") && arguments.has("--wait")) {
    return fail(Errc::invalid_argument, "either --wait or --no-wait");
  }
  const auto wait = arguments.duration("--wait");
  const auto ttl = arguments.duration("--ttl");
  if (!wait || !ttl) {
    return std::unexpected(!wait ? wait.error() : ttl.error());
  }
  const auto permits = permits_of(arguments);
  if (!permits) {
    return std::unexpected(permits.error());
  }
  wish.permits = *permits;
  wish.wait = arguments.has("--no-wait") ? std::optional(std::chrono::milliseconds::zero()) : *wait;
  wish.ttl = ttl->value_or(wish.ttl);
  wish.note = arguments.text("--note").value_or(
      arguments.command.empty() ? "" : joined(arguments.command, " ").substr(0, 200));
  return wish;
}

Result<LockHandle> acquire(const Client& client, const Wish& wish, const Arguments& arguments,
                           std::stop_token cancel) {
  // At once, if that is possible: nobody wants to see a line then.
  auto line = WaitingLine::for_terminal(arguments, wish.names, client.owner());
  auto held = lock(client, wish, std::move(cancel));
  line.reset();
  return held;
}

}  // namespace tenure::cli
