#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

namespace tenure::core {

/// Version of the file format that is written; no other is read.
inline constexpr std::uint32_t saved_state_version = 1;
/// Size of a block. Each block has its own checksum, so that damage can be located.
inline constexpr std::size_t saved_block_bytes = std::size_t{64} << 10;

/// Origin of a saved state.
struct SavedFrom {
  std::uint64_t cluster = 0;      ///< Cluster id.
  std::uint64_t member = 0;       ///< Member that saved the state.
  std::uint64_t term = 0;         ///< Raft term of the leader that served the state.
  std::uint64_t index = 0;        ///< Index of the last log entry in the state.
  std::uint64_t saved_at_ms = 0;  ///< Wall clock time of the saving machine, in Unix milliseconds.

  friend bool operator==(const SavedFrom&, const SavedFrom&) = default;
};

/// Writer of a state as a file: `tenure snapshot save` writes it, `tenured seed` reads it.
/// Layout: "TENURESV", version (4), size of a block (4), SavedFrom (5 × 8), size of the state (8),
/// CRC-32C of all this (4); then the state (core/snapshot.hpp) in blocks, the last one shorter,
/// each followed by its CRC-32C. Numbers are little-endian. Not thread safe.
class SavedStateWriter {
 public:
  /// Callback for the next bytes of the file.
  using Sink = std::function<void(std::string_view)>;

  SavedStateWriter(const SavedFrom& from, std::uint64_t state_bytes, Sink sink);

  /// Appends the next bytes of the state.
  void add(std::string_view bytes);
  /// Writes the last block. Returns false if bytes of the state are missing.
  [[nodiscard]] bool finish();

 private:
  void write_block(std::string_view block);

  Sink sink_;
  std::uint64_t left_;
  std::string block_;
};

struct SavedState {
  SavedFrom from{};
  std::string state{};  ///< Encoded state, for decode().
};

/// Reads a saved state. The detail of `invalid_argument` locates the damaged bytes.
[[nodiscard]] Result<SavedState> read_saved_state(std::string_view file);

}  // namespace tenure::core
