#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tenure/ids.hpp>

#include "backends/backend.hpp"

namespace tenure::backends::zookeeper {

/// What a node of ours says, for people and for other clients of ours. Two lines, and the rest:
///
///   owner
///   lease=1f request=2 capacity=3
///   metadata
struct Value {
  std::string owner{};
  LeaseId lease{};
  RequestId request{};
  std::uint32_t capacity = 0;  ///< Of a semaphore; 0: unknown, or none.
  std::string metadata{};
};

[[nodiscard]] std::string write_value(const Value& value);
/// Whatever somebody wrote there: what cannot be read is left out, and the owner is the first line.
[[nodiscard]] Value read_value(std::string_view text);

}  // namespace tenure::backends::zookeeper
