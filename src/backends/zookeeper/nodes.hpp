#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Names of queue nodes. They follow the well-known recipes, so that programs with other libraries
/// and Tenure exclude each other: docs/reference/zookeeper_nodes.md.
namespace tenure::backends::zookeeper {

/// Suffix of a sequential node: a signed 32-bit counter that wraps.
struct Sequence {
  std::int32_t number = 0;

  friend bool operator==(const Sequence&, const Sequence&) = default;
};

/// Signed distance of two counters modulo 2^32. It orders any set of numbers, also numbers written
/// by hand.
[[nodiscard]] constexpr std::int32_t distance(Sequence from, Sequence to) noexcept {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(to.number) -
                                   static_cast<std::uint32_t>(from.number));
}

/// Whether `a` is older. REQUIRES: fewer than 2^31 nodes were created in between.
[[nodiscard]] constexpr bool precedes(Sequence a, Sequence b) noexcept {
  return distance(b, a) < 0;
}
[[nodiscard]] constexpr Sequence after(Sequence one) noexcept {
  return {static_cast<std::int32_t>(static_cast<std::uint32_t>(one.number) + 1U)};
}

/// Claim of a queue node.
enum class Kind : std::uint8_t {
  /// Exclusive, as a mutex.
  lock,
  /// Exclusive, as a read-write lock.
  write,
  /// Shared.
  read,
  /// Permit of a semaphore; exists or not, and never waits.
  lease,
};

[[nodiscard]] constexpr bool is_exclusive(Kind kind) noexcept {
  return kind == Kind::lock || kind == Kind::write;
}

/// Queue node, parsed from its name.
struct Ticket {
  Sequence sequence{};
  Kind kind = Kind::lock;

  friend bool operator==(const Ticket&, const Ticket&) = default;
};

/// Parses a node name; empty if it is not a queue node, for example another lock below this one.
[[nodiscard]] std::optional<Ticket> ticket_of(std::string_view node);

/// Unique name prefix up to the sequence number. It identifies the node when the reply to its
/// creation was lost.
[[nodiscard]] std::string fresh_prefix(Kind kind);

}  // namespace tenure::backends::zookeeper
