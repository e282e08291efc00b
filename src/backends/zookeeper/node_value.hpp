#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tenure/ids.hpp>

#include "backends/backend.hpp"

namespace tenure::backends::zookeeper {

/// Value of a queue node, readable for operators and parsed by other clients. Two lines and the
/// rest:
///
///   owner
///   lease=1f request=2 capacity=3
///   metadata
struct Value {
  std::string owner{};
  LeaseId lease{};
  RequestId request{};
  /// Capacity of the semaphore; 0: unknown, or not a semaphore.
  std::uint32_t capacity = 0;
  std::string metadata{};
};

[[nodiscard]] std::string write_value(const Value& value);
/// Parses a value leniently: unreadable fields are left out, and the first line is the owner.
[[nodiscard]] Value read_value(std::string_view text);

}  // namespace tenure::backends::zookeeper
