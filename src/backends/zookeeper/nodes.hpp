#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The names of the nodes that make a queue. They are those of the well-known recipes, so that
/// programs with other libraries and we exclude each other: docs/reference/zookeeper_nodes.md.
namespace tenure::backends::zookeeper {

/// What ZooKeeper puts at the end of a sequential name: a counter of 32 bits with a sign, which
/// wraps.
struct Sequence {
  std::int32_t number = 0;

  friend bool operator==(const Sequence&, const Sequence&) = default;
};

/// By how much it is younger than another, or older if negative. Orders any set of numbers, also
/// one that nobody's counter made.
[[nodiscard]] constexpr std::int32_t distance(Sequence from, Sequence to) noexcept {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(to.number) -
                                   static_cast<std::uint32_t>(from.number));
}

/// Is `a` the older one? REQUIRES: less than 2^31 were created in between.
[[nodiscard]] constexpr bool precedes(Sequence a, Sequence b) noexcept {
  return distance(b, a) < 0;
}
[[nodiscard]] constexpr Sequence after(Sequence one) noexcept {
  return {static_cast<std::int32_t>(static_cast<std::uint32_t>(one.number) + 1U)};
}

/// What somebody wants who made a node.
enum class Kind : std::uint8_t {
  lock,   ///< All of it: a mutex.
  write,  ///< All of it: a read-write lock.
  read,   ///< Beside others who read.
  lease,  ///< A permit of a semaphore. It is there or it is not; nobody waits by it.
};

[[nodiscard]] constexpr bool is_exclusive(Kind kind) noexcept {
  return kind == Kind::lock || kind == Kind::write;
}

/// One node of a queue, by its name.
struct Ticket {
  Sequence sequence{};
  Kind kind = Kind::lock;

  friend bool operator==(const Ticket&, const Ticket&) = default;
};

/// Nothing: it is no node of a queue, but another lock below this one, say.
[[nodiscard]] std::optional<Ticket> ticket_of(std::string_view node);

/// How a node of ours begins, up to the sequence. Nobody else's does: by this it is found again
/// when the answer to its creation was lost.
[[nodiscard]] std::string fresh_prefix(Kind kind);

}  // namespace tenure::backends::zookeeper
