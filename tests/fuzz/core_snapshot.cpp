// Snapshots of the state, and files with a saved state. The first byte of the input chooses: 0 is
// the bytes as they are, 1 to 4 the body of a snapshot of that format with a right checksum, 5 a
// saved state.

#include <string>
#include <utility>

#include "core/bytes.hpp"
#include "core/invariants.hpp"
#include "core/saved_state.hpp"
#include "core/snapshot.hpp"
#include "core/snapshot_format.hpp"
#include "core/state_machine.hpp"
#include "fuzz/input.hpp"

namespace tenure::fuzz {
namespace {

std::string snapshot_of(std::string_view body, std::uint32_t format) {
  core::ByteWriter writer;
  writer.raw(core::snapshot_magic);
  writer.fixed32(format);
  writer.fixed64(body.size());
  writer.raw(body);
  writer.fixed32(core::crc32c(writer.bytes()));
  return std::move(writer).take();
}

std::string saved_file_of(std::string_view state) {
  std::string file;
  core::SavedStateWriter writer({.cluster = 1, .member = 2}, state.size(),
                                [&](std::string_view bytes) { file += bytes; });
  writer.add(state);
  require(writer.finish(), "a saved state is written");
  return file;
}

/// A state that was accepted must be a good one, and one to go on with.
void use(core::State state) {
  require(core::invariants::check(state).empty(), "a decoded state keeps the invariants");
  const auto bytes = core::encode(state);
  const auto again = core::decode(bytes);
  require(again.has_value() && core::encode(*again) == bytes, "the snapshot of it is the same");
  require(core::invariants::check_no_deadlock(state).empty(), "a decoded state has no deadlock");
  core::StateMachine machine(std::move(state));
  const auto far_ahead = machine.next_deadline().value_or(core::ClusterTime{});
  static_cast<void>(machine.apply(core::Tick{}, {.time = far_ahead}));
  require(core::invariants::check(machine.state()).empty(), "a step keeps the invariants");
}

}  // namespace
}  // namespace tenure::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenure;
  fuzz::Input input(data, size);
  const auto choice = static_cast<std::uint32_t>(input.below(6));
  const auto bytes = input.rest();
  if (choice == 5) {
    if (const auto saved = core::read_saved_state(bytes)) {
      static_cast<void>(core::decode(saved->state));
    }
    const auto file = fuzz::saved_file_of(bytes);
    const auto saved = core::read_saved_state(file);
    fuzz::require(saved.has_value() && saved->state == bytes, "a saved state is read back");
    return 0;
  }
  auto state = choice == 0 ? core::decode(bytes) : core::decode(fuzz::snapshot_of(bytes, choice));
  if (state) {
    fuzz::use(*std::move(state));
  }
  return 0;
}
