#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <tenure/client/client.hpp>

#include "cli/arguments.hpp"

namespace tenure::cli {

/// What a person asks for: locks, how, and for how long to wait.
struct Wish {
  std::vector<std::string> names{};
  bool is_shared = false;
  std::optional<SemaphoreSize> permits{};           ///< Then it is a semaphore, of one name.
  std::optional<std::chrono::milliseconds> wait{};  ///< Nothing: for ever; 0: not at all.
  std::chrono::milliseconds ttl = std::chrono::seconds(10);
  std::string note{};
};

[[nodiscard]] Result<Wish> wish_of(const Arguments& arguments);

/// Waits for its turn. On a terminal a line on stderr tells meanwhile who is before us.
[[nodiscard]] Result<LockHandle> acquire(const Client& client, const Wish& wish,
                                         const Arguments& arguments, std::stop_token cancel);

/// All names on one line.
[[nodiscard]] std::string joined(const std::vector<std::string>& names, std::string_view between);

}  // namespace tenure::cli
