#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/bytes.hpp"
#include "core/ids.hpp"
#include "core/item.hpp"
#include "core/limits.hpp"

namespace tenure::core {

/// Decoder of the types that snapshots and the log share, on a ByteReader and with its sticky
/// error. Allocates no more than a constant times the input, so damaged lengths cannot exhaust
/// memory. Not thread safe.
class ValueReader {
 public:
  explicit ValueReader(std::string_view bytes) : in_(bytes) {}

  template <class Id>
  Id id() {
    return Id{in_.number()};
  }
  std::uint64_t number() { return in_.number(); }
  std::string text() { return in_.text(); }
  /// The same without a copy.
  std::string_view text_view() { return in_.text_view(); }
  /// Reads a time that a store can have.
  ClusterTime time();
  /// Reads any time, also one that a command will be refused for.
  ClusterTime any_time() { return ClusterTime{static_cast<std::int64_t>(in_.number())}; }
  std::uint64_t up_to(std::uint64_t max, std::string_view what) {
    return in_.number_up_to(max, what);
  }
  std::uint32_t count32(std::string_view what);
  /// A value of an enumeration that begins with 0.
  template <class Enum>
  Enum one_of(Enum last, std::string_view what) {
    return static_cast<Enum>(up_to(static_cast<std::uint64_t>(std::to_underlying(last)), what));
  }

  LockMode mode() { return one_of(last_lock_mode, "a mode"); }
  Resource resource();
  /// The same without a copy.
  ResourceView resource_view();
  BytesRange range();
  Item item();
  std::vector<Item> items();
  Limits limits(ClusterVersion version);

  /// Reads a count, then calls read() that number of times, until the first error.
  template <class Read>
  void repeat(const Read& read) {
    // Each element takes at least one byte: the rest of the input bounds the count.
    const auto count = up_to(in_.left(), "a number of elements");
    for (std::uint64_t i = 0; i < count && ok(); ++i) {
      read();
    }
  }

  void expect_end();
  void set_error(std::string_view what) { in_.set_error(what); }
  [[nodiscard]] bool ok() const noexcept { return in_.ok(); }
  [[nodiscard]] const std::string& error() const noexcept { return in_.error(); }

 private:
  static constexpr LockMode last_lock_mode = all_lock_modes.back();

  ByteReader in_;
};

}  // namespace tenure::core
