#pragma once

#include <string>

#include "core/batch.hpp"
#include "core/limits.hpp"
#include "core/state.hpp"

namespace tenure::core {

/// The limits of the fixture, which do not follow the defaults.
[[nodiscard]] Limits fixture_limits();
/// The content of tests/fixtures/snapshot_v1.bin and snapshot_v2.bin: a state with one of
/// everything.
[[nodiscard]] State fixture_state();
/// The content of tests/fixtures/snapshot_v3.bin: the same with all that cluster version 2 adds.
[[nodiscard]] State fixture_state_2();
/// The content of tests/fixtures/batch_v1.bin: one of every command, in all its forms.
[[nodiscard]] Batch fixture_batch();
/// The content of tests/fixtures/batch_v2.bin: the same with all that cluster version 2 adds.
[[nodiscard]] Batch fixture_batch_2();

/// The bytes of tests/fixtures/<name>; nothing if there is no such file.
[[nodiscard]] std::string read_fixture(const std::string& name);
void write_fixture(const std::string& name, const std::string& bytes);

}  // namespace tenure::core
