#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

namespace tenure::core {

/// The version that is written; no other is read.
inline constexpr std::uint32_t saved_state_version = 1;
/// Each has a checksum of its own, so that damage can be located.
inline constexpr std::size_t saved_block_bytes = std::size_t{64} << 10;

/// Where a saved state is from.
struct SavedFrom {
  std::uint64_t cluster = 0;
  std::uint64_t member = 0;
  std::uint64_t term = 0;
  std::uint64_t index = 0;        ///< Of the last log entry in it.
  std::uint64_t saved_at_ms = 0;  ///< Unix time, of the machine that saved it.

  friend bool operator==(const SavedFrom&, const SavedFrom&) = default;
};

/// A state in a file of its own, as `tenure snapshot save` writes it and `tenured seed` reads it.
/// Layout: "TENURESV", version (4), size of a block (4), SavedFrom (5 × 8), size of the state (8),
/// CRC-32C of all this (4); then the state (core/snapshot.hpp) in blocks, the last one shorter,
/// each with its CRC-32C behind it. Numbers are little-endian.
class SavedStateWriter {
 public:
  /// Takes the next bytes of the file.
  using Sink = std::function<void(std::string_view)>;

  SavedStateWriter(const SavedFrom& from, std::uint64_t state_bytes, Sink sink);

  /// The next bytes of the state.
  void add(std::string_view bytes);
  /// True if the whole state was given, and is written then.
  [[nodiscard]] bool finish();

 private:
  void write_block(std::string_view block);

  Sink sink_;
  std::uint64_t left_;
  std::string block_;
};

struct SavedState {
  SavedFrom from{};
  std::string state{};  ///< For decode().
};

/// `invalid_argument` says which bytes of the file are damaged.
[[nodiscard]] Result<SavedState> read_saved_state(std::string_view file);

}  // namespace tenure::core
