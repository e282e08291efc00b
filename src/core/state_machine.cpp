#include "core/state_machine.hpp"

#include <exception>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "core/batch.hpp"
#include "core/invariants.hpp"
#include "core/step.hpp"

namespace tenure::core {
namespace {

Applied apply_to(State& state, const Command& command, const Stamp& stamp,
                 std::uint64_t& visits_left) {
  Step step(state, visits_left);
  step.begin(stamp);
  return step.finish(std::visit(step, command));
}

std::size_t records(const State& state) {
  return state.leases.all().size() + state.locks.holds().size() + state.locks.waits().size();
}

[[noreturn]] void terminate_with(const std::vector<std::string>& broken) {
  std::string text = "the state machine is broken:";
  for (const auto& sentence : broken) {
    text += "\n  " + sentence;
  }
  throw std::logic_error(text);
}

/// Aborts the program if an invariant is violated. std::terminate() prints the text of the active
/// exception; core itself has no I/O.
void expect_nothing(const std::vector<std::string>& broken) noexcept {
  if (broken.empty()) {
    return;
  }
  try {
    terminate_with(broken);
  } catch (const std::logic_error&) {
    std::terminate();
  }
}

}  // namespace

Applied StateMachine::apply(const Command& command, const Stamp& stamp) {
  auto visits_left = deadlock_visits_per_batch_max;
  return apply_one(command, stamp, visits_left);
}

void StateMachine::apply(const Batch& batch,
                         const std::function<void(std::size_t, const Applied&)>& done) {
  auto visits_left = deadlock_visits_per_batch_max;
  for (std::size_t i = 0; i < batch.commands.size(); ++i) {
    done(i, apply_one(batch.commands[i], batch.stamp, visits_left));
  }
}

Applied StateMachine::apply_one(const Command& command, const Stamp& stamp,
                                std::uint64_t& visits_left) {
#ifdef TENURE_CHECK_INVARIANTS
  return apply_checked(command, stamp, visits_left);
#else
  return apply_to(state_, command, stamp, visits_left);
#endif
}

Applied StateMachine::apply_checked(const Command& command, const Stamp& stamp,
                                    std::uint64_t& visits_left) {
  constexpr std::size_t small = 64;
  // Of a state with n records, every n-th command is checked, so the amortised cost does not grow
  // with the state.
  if (records(state_) > small && ++unchecked_steps_ < records(state_)) {
    return apply_to(state_, command, stamp, visits_left);
  }
  unchecked_steps_ = 0;
  const auto before = state_;
  auto applied = apply_to(state_, command, stamp, visits_left);
  expect_nothing(invariants::check(state_));
  expect_nothing(invariants::check_no_deadlock(state_));
  expect_nothing(invariants::check_step(before, state_));
  return applied;
}

}  // namespace tenure::core
