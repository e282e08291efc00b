#include "core/state_machine.hpp"

#include <variant>

#include "core/step.hpp"

namespace tenure::core {

Applied StateMachine::apply(const Command& command, const Stamp& stamp) {
  Step step(state_);
  step.begin(stamp);
  return step.finish(std::visit(step, command));
}

}  // namespace tenure::core
