#include "cli/acquire.hpp"

#include <utility>

#include "cli/output.hpp"
#include "cli/waiting_line.hpp"

namespace tenure::cli {
namespace {

/// Whichever guard it is: what all have in common.
template <class AnyGuard>
Result<Possession> possession(Result<AnyGuard> guard) {
  if (!guard) {
    return std::unexpected(std::move(guard).error());
  }
  return Possession(*std::move(guard));
}

Result<Possession> lock(const Client& client, const Wish& wish, std::stop_token cancel) {
  LockOptions options{.ttl = wish.ttl, .max_wait = wish.wait, .note = wish.note};
  const bool may_wait = !wish.wait || wish.wait->count() > 0;
  if (wish.is_shared) {
    const auto shared = client.rw_all_of(wish.names, std::move(options));
    return possession(may_wait ? shared.lock_shared(std::move(cancel)) : shared.try_lock_shared());
  }
  const auto exclusive = client.all_of(wish.names, std::move(options));
  return possession(may_wait ? exclusive.lock(std::move(cancel)) : exclusive.try_lock());
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
  wish.wait = arguments.has("--no-wait") ? std::optional(std::chrono::milliseconds::zero()) : *wait;
  wish.ttl = ttl->value_or(wish.ttl);
  wish.note = arguments.text("--note").value_or(
      arguments.command.empty() ? "" : joined(arguments.command, " ").substr(0, 200));
  return wish;
}

Result<Possession> acquire(const Client& client, const Wish& wish, const Arguments& arguments,
                           std::stop_token cancel) {
  // At once, if that is possible: nobody wants to see a line then.
  auto line = WaitingLine::for_terminal(arguments, wish.names);
  auto held = lock(client, wish, std::move(cancel));
  line.reset();
  return held;
}

}  // namespace tenure::cli
