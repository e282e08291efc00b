#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/item.hpp"
#include "core/limits.hpp"
#include "core/outcome.hpp"

namespace tenure::core {

struct Hold;
struct Lease;
struct State;
struct Wait;

/// Bytes that part of the state takes, by a fixed formula instead of by the allocator, so that all
/// members count the same. A record counts a constant and the bytes of its strings. The constants
/// are at least what a record takes in memory, indexes included.
struct Bytes {
  std::size_t records = 0;  ///< Leases, holds and waits.
  std::size_t answers = 0;  ///< Remembered answers of finished requests.

  Bytes& operator+=(const Bytes& other) noexcept {
    records += other.records;
    answers += other.answers;
    return *this;
  }
  /// REQUIRES: `other` is part of it.
  Bytes& operator-=(const Bytes& other) noexcept {
    records -= other.records;
    answers -= other.answers;
    return *this;
  }
  friend bool operator==(const Bytes&, const Bytes&) = default;
};

inline constexpr std::size_t bytes_per_lease = 384;
inline constexpr std::size_t bytes_per_hold = 192;
inline constexpr std::size_t bytes_per_wait = 512;  ///< With its part of the lock's queue.
inline constexpr std::size_t bytes_per_name = 128;  ///< Item that is a whole lock.
inline constexpr std::size_t bytes_per_part = 512;  ///< Item that is a range or permits.
inline constexpr std::size_t bytes_per_answer = 96;
inline constexpr std::size_t bytes_per_cycle_step = 96;

[[nodiscard]] std::size_t bytes_of(std::span<const Item> items) noexcept;
[[nodiscard]] std::size_t bytes_of(const Hold& hold) noexcept;
[[nodiscard]] std::size_t bytes_of(const Wait& wait) noexcept;
/// Of a refusal, beyond bytes_per_answer.
[[nodiscard]] std::size_t bytes_of(const Refused& refused) noexcept;
/// Of the lease alone.
[[nodiscard]] std::size_t bytes_of(const Lease& lease) noexcept;

/// What a limit of bytes means. Records beyond it are refused. Answers may take a quarter of it
/// besides; beyond that they are forgotten, down to `answers_kept` of each lease, so that a release
/// never fails for lack of room.
struct Quota {
  static constexpr std::size_t answers_kept = 16;

  std::size_t bytes_max = 0;

  [[nodiscard]] std::size_t records_max() const noexcept { return bytes_max; }
  [[nodiscard]] std::size_t answers_max() const noexcept { return bytes_max / 4; }
};

/// Bytes of all leases with what depends on them, in total and by authenticated user. Derived data:
/// not in snapshots.
class Usage {
 public:
  [[nodiscard]] const Bytes& total() const noexcept { return total_; }
  /// Nothing for an empty name: leases without a user have no share.
  [[nodiscard]] Bytes of_user(std::string_view user) const;

  void add(std::string_view user, const Bytes& bytes);
  /// REQUIRES: it was added.
  void remove(std::string_view user, const Bytes& bytes);

  friend bool operator==(const Usage&, const Usage&) = default;

 private:
  Bytes total_;
  std::map<std::string, Bytes, std::less<>> users_;  ///< Of those that have any.
};

/// What this lease takes, with its holds, waits and answers, counted from the state.
[[nodiscard]] Bytes count_bytes(const State& state, const Lease& lease);
/// Counts all leases again, such as after a snapshot was read.
void recount_bytes(State& state);

}  // namespace tenure::core
