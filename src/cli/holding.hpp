#pragma once

#include <optional>

#include <tenure/client/client.hpp>

#include "cli/acquire.hpp"
#include "cli/signals.hpp"

namespace tenure::cli {

/// What came of asking for a lock: it is held, or this is how to leave.
struct Holding {
  std::optional<Client> client{};  ///< Outlives what is held.
  std::optional<LockHandle> possession{};
  bool is_busy = false;  ///< Somebody else has it.
  int exit_code = 0;
};

/// Connects and waits for its turn, until a signal says stop. Says what went wrong.
[[nodiscard]] Holding hold(const Arguments& arguments, const Wish& wish, const Signals& signals);

}  // namespace tenure::cli
