#pragma once

#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <vector>

#include <rapidcheck.h>

#include "core/state_machine.hpp"
#include "support/core/reference.hpp"

namespace tenure::core::model {

enum class Verb : std::uint8_t {
  acquire,
  try_acquire,
  release_token,
  release_target,
  abandon,
  grant_lease,
  renew,
  revoke,
  force,
  compact,
  tick,
  downgrade,
  set_ttl,
  confirm,
  set_limits,
  set_version,
  restore,  ///< No command: what a restore from a backup does to the state.
};

/// A command before it is known what there is to command. Shrinks to fewer and to smaller numbers.
struct Draw {
  Verb verb{};
  std::size_t lease = 0;
  std::size_t request = 0;
  std::size_t pick = 0;   ///< Which hold, which mode, which permits.
  std::size_t thing = 0;  ///< Which of the things of the world, or several of them.
  std::size_t pause = 0;  ///< How much time passes before.
  SelfConflict self_conflict = SelfConflict::refuse;
};

std::ostream& operator<<(std::ostream& out, const Draw& draw);

/// What the commands of a property are drawn from. Few of everything, so that conflicts are common.
struct World {
  std::vector<std::vector<Item>> things;  ///< Modes and permits are drawn.
  std::vector<std::pair<std::size_t, Verb>> verbs;
  std::vector<LockMode> modes{all_lock_modes.begin(), all_lock_modes.end()};
  std::vector<SelfConflict> self_conflicts{SelfConflict::refuse, SelfConflict::wait,
                                           SelfConflict::reenter};
  std::size_t leases = 4;
  std::size_t requests = 60;  ///< Few of them make retries.
  std::size_t pauses = 6;     ///< 1: time stands still.
  bool has_retries = true;
  ClusterVersion version = newest_version;  ///< At first.
};

[[nodiscard]] std::vector<std::vector<Item>> names();
[[nodiscard]] std::vector<std::vector<Item>> ranges();
[[nodiscard]] std::vector<std::vector<Item>> semaphores();
[[nodiscard]] std::vector<std::vector<Item>> several_at_once();
[[nodiscard]] std::vector<std::vector<Item>> everything();
[[nodiscard]] std::vector<std::pair<std::size_t, Verb>> all_verbs();
[[nodiscard]] std::vector<std::pair<std::size_t, Verb>> mostly_waiting();
/// All of them, and often these.
[[nodiscard]] std::vector<std::pair<std::size_t, Verb>> all_verbs_and(
    std::initializer_list<Verb> more);

[[nodiscard]] rc::Gen<std::vector<Draw>> draws_in(const World& world);

/// What a draw means in this state.
struct Move {
  Command command;
  Stamp stamp;
};
[[nodiscard]] Move move_of(const Draw& draw, const World& world, const State& state);

/// All leases of the world, granted to this machine and this reference.
void grant_leases(const World& world, StateMachine& machine, Reference* reference);

/// Fails the property unless all invariants hold.
void assert_sound(const State& state);

/// Takes the state through a snapshot, and begins a restoration.
[[nodiscard]] StateMachine restored(const State& state, ClusterTime longest_ttl);

/// Runs draws on a state machine and on the reference, and compares every answer and every state.
void compare(const World& world, const std::vector<Draw>& draws);

}  // namespace tenure::core::model
