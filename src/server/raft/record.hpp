#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"

namespace tenure::server::raft {

// Disk format of a log segment. Pure functions without I/O.
//
// It begins with a header: "TENURELG", version (4), number of the segment (8), cluster (8), CRC-32C
// of these (4). Records follow, and zeros after the last. A record: CRC-32C of the rest (4), length
// of the payload (4), index (8), term (8), group (8), where the group began (4), type (4), the CRC
// of what stands before it (4), the payload. All numbers are little-endian.
//
// A group is what one fdatasync made durable, and the next is written only after that. So a bad
// record that lies before the beginning of a later group was durable once: it was damaged, not torn
// by a crash. Records are chained by their CRC, from the header on, so that no old or foreign bytes
// are read as a record. Another file records how far the last group is durable (durable_end.hpp).

inline constexpr std::uint32_t log_version = 1;
inline constexpr std::size_t segment_header_bytes = 32;
inline constexpr std::size_t record_header_bytes = 44;

struct SegmentId {
  std::uint64_t number{};
  ClusterId cluster{};
};

[[nodiscard]] std::string encode_segment_header(SegmentId id);

/// Chain value of the first record of a segment.
[[nodiscard]] std::uint32_t header_checksum(std::string_view header);

/// Encoder position of a group of records. encode() advances `offset` and `chain`.
struct GroupWriter {
  std::uint64_t group{};
  std::size_t group_offset{};
  std::size_t offset{};
  std::uint32_t chain{};

  void encode(Index index, const Entry& entry, std::string& out);
};

struct Record {
  Index index{};
  Term term{};
  EntryType type = EntryType::command;
  std::uint64_t group{};
  std::uint32_t group_offset{};
  std::uint32_t checksum{};
  std::string_view payload;

  [[nodiscard]] std::size_t bytes() const noexcept { return record_header_bytes + payload.size(); }
};

enum class Ending : std::uint8_t {
  clean,    ///< Only zeros after the last record.
  torn,     ///< Bytes of a write that no fdatasync completed; they are truncated.
  damaged,  ///< Invalid bytes that were durable.
};

struct SegmentScan {
  std::vector<Record> records;  ///< Views of the scanned bytes.
  std::size_t end{};            ///< Offset behind the last valid record.
  std::size_t dirty_end{};      ///< Offset behind the last byte that is not zero.
  std::uint32_t chain{};        ///< Chain value of the next record.
  Ending ending = Ending::clean;
  std::string why;  ///< Error at `end`.
};

/// Reads the records up to the first invalid one and classifies the end. All bytes before
/// `durable_end` were durable once: if fewer are readable, the segment is damaged.
/// `invalid_argument`: a header that is damaged, or of another version, segment or cluster.
[[nodiscard]] Result<SegmentScan> scan_segment(std::string_view bytes, SegmentId id,
                                               std::size_t durable_end = 0);

}  // namespace tenure::server::raft
