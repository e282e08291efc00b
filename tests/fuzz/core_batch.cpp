// Batches of commands as the log has them: decoding, and applying what was decoded. The input is a
// sequence of batches, each with its length before it.

#include <cstddef>
#include <string>

#include "core/batch.hpp"
#include "core/invariants.hpp"
#include "core/snapshot.hpp"
#include "core/state_machine.hpp"
#include "fuzz/input.hpp"

namespace tenure::fuzz {
namespace {

/// Of one input; checking a state costs a look at all of it.
constexpr std::size_t commands_max = 256;

void require_none(const std::vector<std::string>& errors, const char* what) {
  for (const auto& error : errors) {
    std::fprintf(stderr, "%s\n", error.c_str());
  }
  require(errors.empty(), what);
}

void check_round_trip(const core::Batch& batch) {
  const auto again = core::decode_batch(core::encode(batch));
  require(again.has_value() && *again == batch, "an encoded batch is decoded to the same batch");
}

void check_state(const core::State& state) {
  require_none(core::invariants::check(state), "the invariants of the state");
  require_none(core::invariants::check_no_deadlock(state), "no deadlock");
  const auto bytes = core::encode(state);
  const auto decoded = core::decode(bytes);
  if (!decoded) {
    std::fprintf(stderr, "%s\n", decoded.error().detail.c_str());
  }
  require(decoded.has_value(), "a snapshot of the state is decoded");
  require(core::encode(*decoded) == bytes, "a decoded snapshot is the same state");
}

}  // namespace
}  // namespace tenure::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenure;
  fuzz::Input input(data, size);
  // Small limits, so that short inputs reach them.
  core::StateMachine machine({.items_max = 8,
                              .leases_max = 8,
                              .leases_per_client_max = 4,
                              .items_per_lease_max = 16,
                              .waits_per_lease_max = 4,
                              .waiters_per_lock_max = 6,
                              .reentries_max = 4,
                              .answers_per_lease_max = 4,
                              .events_max = 16});
  std::size_t applied = 0;
  while (!input.is_empty() && applied < fuzz::commands_max) {
    const auto batch = core::decode_batch(input.sized_text());
    if (!batch) {
      continue;
    }
    fuzz::check_round_trip(*batch);
    if (batch->version > machine.state().version) {
      continue;  // A leader writes none before the cluster has that version.
    }
    for (const auto& command : batch->commands) {
      if (++applied > fuzz::commands_max) {
        break;
      }
      static_cast<void>(machine.apply(command, batch->stamp));
    }
  }
  fuzz::check_state(machine.state());
  return 0;
}
