#include "cli/holding.hpp"

#include <atomic>
#include <cstdlib>
#include <stop_token>
#include <utility>

#include "cli/exit_code.hpp"
#include "cli/output.hpp"
#include "cli/service.hpp"

namespace tenure::cli {
namespace {

Holding not_held(const Error& error, const Wish& wish, const Arguments& arguments) {
  const bool is_busy = exit_code_of(error.code) == ExitCode::busy;
  if (!is_busy) {
    return {.exit_code = failed(error)};
  }
  // Like flock(1), which says nothing: the exit code does.
  if (format_of(arguments) != Format::quiet) {
    complain("not acquired: " + plain(joined(wish.names, ", ")) + ": " +
             std::string(to_string(error.code)));
  }
  return {.is_busy = true, .exit_code = code(ExitCode::busy)};
}

}  // namespace

Holding hold(const Arguments& arguments, const Wish& wish, const Signals& signals) {
  if (url_of(arguments).starts_with("memory:")) {
    return {.exit_code = failed({Errc::unsupported,
                                 "memory:// is in this process alone: nobody else would be kept "
                                 "out. Name a server: --url or TENURE_URL"})};
  }
  std::stop_source cancel;
  std::atomic<int> signal = 0;
  std::atomic<bool> is_connected = false;
  const FarewellWatch watch(signals, [&](int number) {
    if (!is_connected) {
      // Nothing is held, and nobody wants to wait for a server that does not answer.
      std::_Exit(code(ExitCode::signalled) + number);
    }
    signal = number;
    cancel.request_stop();
  });
  auto client = open_client(arguments);
  if (!client) {
    return {.exit_code = failed(client.error())};
  }
  is_connected = true;
  auto held = acquire(*client, wish, arguments, cancel.get_token());
  if (signal != 0) {
    return {.exit_code = code(ExitCode::signalled) + signal};
  }
  if (!held) {
    return not_held(held.error(), wish, arguments);
  }
  Holding made{.client = *std::move(client)};
  made.possession.emplace(*std::move(held));
  return made;
}

}  // namespace tenure::cli
