#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rapidcheck.h>

#include <tenure/lock_manager/lock_manager.hpp>

#include "support/model/reference.hpp"

namespace tenure::model {

enum class Verb : std::uint8_t {
  try_acquire,
  request,
  cancel_wait,
  release,
  release_all,
  downgrade,
  find_deadlock,
};

/// One call of a transaction; fields that the verb does not need are ignored.
struct Command {
  Verb verb;
  TxnId txn;
  Thing thing;
  LockMode mode;
};

std::ostream& operator<<(std::ostream& out, const Command& command);

/// What the commands of a property are drawn from. Few of everything, so that conflicts are common.
struct World {
  std::vector<Thing> things;
  std::vector<std::pair<std::size_t, Verb>> verbs;  ///< With their weights.
  std::vector<LockMode> modes{all_lock_modes.begin(), all_lock_modes.end()};
  std::size_t txns = 4;
  Detection detection = Detection::on_demand;
};

[[nodiscard]] std::vector<Thing> two_numbers();
[[nodiscard]] std::vector<Thing> three_names();
/// Ranges of 64-bit keys in two spaces: nested, adjacent, at both ends of the key space.
[[nodiscard]] std::vector<Thing> some_keys();
/// Ranges of byte strings in a space with the number of one of some_keys().
[[nodiscard]] std::vector<Thing> some_bytes();
[[nodiscard]] std::vector<Thing> one_of_each_kind();

/// Everything that does not resolve deadlocks.
[[nodiscard]] std::vector<std::pair<std::size_t, Verb>> all_verbs();

/// A sequence of commands; shrinks to fewer commands, lower transactions, earlier things.
[[nodiscard]] rc::Gen<std::vector<Command>> commands_in(const World& world);

/// Runs commands on a LockManager and on the reference, and compares every answer and, after each
/// command, everything that can be asked about the state.
class Comparison {
 public:
  explicit Comparison(const World& world);

  void run(const std::vector<Command>& commands);
  void step(const Command& command);

  [[nodiscard]] const Reference& reference() const { return reference_; }
  [[nodiscard]] const LockManager& manager() const { return manager_; }

 private:
  /// What may be left once the manager has resolved what it found.
  enum class Left : std::uint8_t { anything, no_cycle };
  using Waiters = std::set<std::pair<std::string, TxnId>>;

  [[nodiscard]] bool is_documented(const Command& command) const;
  void step_try_acquire(const Command& command);
  void step_request(const Command& command);
  void step_find_deadlock();
  void follow(Left left, std::size_t reports_before);
  [[nodiscard]] std::optional<Reference> explain(const Reference& state,
                                                 std::span<const DeadlockReport> reports, Left left,
                                                 const Waiters& waiters) const;
  [[nodiscard]] bool holds_as(const Reference& state) const;
  [[nodiscard]] Waiters waiters_of(const Reference& state) const;
  [[nodiscard]] Waiters waiters_of(const LockSnapshot& snapshot) const;

  void compare_counts() const;
  void compare_snapshot() const;
  void compare_holds(const std::vector<Hold>& holds) const;

  World world_;
  LockManager manager_;
  Reference reference_;
};

}  // namespace tenure::model
