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

/// Reads what ValueWriter wrote; as ByteReader, on which it stands, it goes on after the first
/// complaint with zeros. Nothing it returns is larger than the bytes it came from would explain.
class ValueReader {
 public:
  explicit ValueReader(std::string_view bytes) : in_(bytes) {}

  template <class Id>
  Id id() {
    return Id{in_.number()};
  }
  std::uint64_t number() { return in_.number(); }
  std::string text() { return in_.text(); }
  /// The same, where it stands.
  std::string_view text_view() { return in_.text_view(); }
  /// Within what a store can have.
  ClusterTime time();
  /// Any, as ValueWriter writes it.
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
  /// The same, where it stands.
  ResourceView resource_view();
  BytesRange range();
  Item item();
  std::vector<Item> items();
  Limits limits(ClusterVersion version);

  /// Calls read() as often as the next number says, while all is well.
  template <class Read>
  void repeat(const Read& read) {
    // Each takes at least a byte.
    const auto count = up_to(in_.left(), "a number of things");
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
