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

/// Bytes of a part of the state, by a fixed formula and not by the allocator, so that all members
/// count the same. A record counts a constant plus the bytes of its strings; the constant is an
/// upper bound for its memory, including indexes.
struct Bytes {
  std::size_t records = 0;  ///< Leases, holds and waits.
  std::size_t answers = 0;  ///< Remembered answers of finished requests.

  Bytes& operator+=(const Bytes& other) noexcept {
    records += other.records;
    answers += other.answers;
    return *this;
  }
  /// REQUIRES: `other` is part of these bytes.
  Bytes& operator-=(const Bytes& other) noexcept {
    records -= other.records;
    answers -= other.answers;
    return *this;
  }
  friend bool operator==(const Bytes&, const Bytes&) = default;
};

/// Bytes of a lease with its history and its entries in the indexes.
inline constexpr std::size_t bytes_per_lease = 384;
inline constexpr std::size_t bytes_per_hold = 192;
inline constexpr std::size_t bytes_per_wait = 512;   ///< Includes its entries in the queues.
inline constexpr std::size_t bytes_per_name = 128;   ///< Item that is a whole lock.
inline constexpr std::size_t bytes_per_range = 512;  ///< Item that is a range or permits.
inline constexpr std::size_t bytes_per_answer = 96;
inline constexpr std::size_t bytes_per_cycle_step = 96;

[[nodiscard]] std::size_t bytes_of(std::span<const Item> items) noexcept;
[[nodiscard]] std::size_t bytes_of(const Hold& hold) noexcept;
[[nodiscard]] std::size_t bytes_of(const Wait& wait) noexcept;
/// Bytes of a refusal beyond bytes_per_answer.
[[nodiscard]] std::size_t bytes_of(const Refused& refused) noexcept;
/// Bytes of the lease record alone.
[[nodiscard]] std::size_t bytes_of(const Lease& lease) noexcept;

/// Meaning of a byte limit. Records beyond it are refused. Answers may take another quarter of it;
/// beyond that they are forgotten, except the last `answers_kept` of each lease, so that a release
/// never fails because of the quota.
struct Quota {
  static constexpr std::size_t answers_kept = 16;

  std::size_t bytes_max = 0;

  [[nodiscard]] std::size_t records_max() const noexcept { return bytes_max; }
  [[nodiscard]] std::size_t answers_max() const noexcept { return bytes_max / 4; }
};

/// Bytes of all leases and their records, in total and by authenticated user. Derived data, which
/// is not in snapshots. Not thread safe.
class Usage {
 public:
  [[nodiscard]] const Bytes& total() const noexcept { return total_; }
  /// Zero for an empty name: leases without a user count in the total only.
  [[nodiscard]] Bytes of_user(std::string_view user) const;

  void add(std::string_view user, const Bytes& bytes);
  /// REQUIRES: the bytes were added before.
  void remove(std::string_view user, const Bytes& bytes);

  friend bool operator==(const Usage&, const Usage&) = default;

 private:
  Bytes total_;
  std::map<std::string, Bytes, std::less<>> users_;  ///< Bytes by user; no entry is zero.
};

/// Counts the bytes of a lease with its holds, waits and answers.
[[nodiscard]] Bytes count_bytes(const State& state, const Lease& lease);
/// Recounts all leases, for example after a snapshot was read.
void recount_bytes(State& state);

}  // namespace tenure::core
