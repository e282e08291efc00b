#include "server/raft/record.hpp"

#include <optional>
#include <utility>

#include "core/bytes.hpp"

namespace tenure::server::raft {
namespace {

constexpr std::string_view log_magic = "TENURELG";

// Plain loads instead of a ByteReader: they run for every offset of a damaged segment.
template <class Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    value |= static_cast<Number>(Number{static_cast<unsigned char>(bytes[offset + i])} << (8 * i));
  }
  return value;
}
std::uint32_t fixed32_at(std::string_view bytes, std::size_t offset) {
  return number_at<std::uint32_t>(bytes, offset);
}
std::uint64_t fixed64_at(std::string_view bytes, std::size_t offset) {
  return number_at<std::uint64_t>(bytes, offset);
}

std::size_t behind_last_nonzero(std::string_view bytes) {
  const auto last = bytes.find_last_not_of('\0');
  return last == std::string_view::npos ? 0 : last + 1;
}

/// Result of decoding one record.
struct Attempt {
  std::optional<Record> record{};
  std::uint32_t chained_to{};
  std::string_view why{};  ///< Why the bytes are not a record.
};

// Decodes the record at this offset without a check of its chain value.
Attempt read_record(std::string_view bytes, std::size_t offset) {
  const auto rest = bytes.substr(offset);
  if (rest.size() < record_header_bytes) {
    return {.why = "the segment ends in the header of a record"};
  }
  const std::size_t length = fixed32_at(rest, 4);
  if (length > rest.size() - record_header_bytes) {
    return {.why = "the length of the record is beyond the end of the segment"};
  }
  const auto type = fixed32_at(rest, 36);
  const auto group_offset = fixed32_at(rest, 32);
  if (type < 1 || type > 3 || group_offset > offset) {
    return {.why = "the header of the record makes no sense"};
  }
  const auto whole = rest.substr(0, record_header_bytes + length);
  const auto checksum = fixed32_at(rest, 0);
  if (core::crc32c(whole.substr(4)) != checksum) {
    return {.why = "the checksum of the record is wrong"};
  }
  return {.record = Record{.index = Index{fixed64_at(rest, 8)},
                           .term = Term{fixed64_at(rest, 16)},
                           .type = static_cast<EntryType>(type),
                           .group = fixed64_at(rest, 24),
                           .group_offset = group_offset,
                           .checksum = checksum,
                           .payload = whole.substr(record_header_bytes)},
          .chained_to = fixed32_at(rest, 40),
          .why = {}};
}

// Finds a later record whose group started behind the invalid bytes: they had been durable then.
// Tries every offset, because the length of the invalid record cannot be trusted.
std::optional<std::size_t> find_later_group(std::string_view bytes, std::size_t bad) {
  for (std::size_t at = bad + 1; at + record_header_bytes <= bytes.size(); ++at) {
    const auto attempt = read_record(bytes, at);
    if (attempt.record.has_value() && attempt.record->group_offset > bad) {
      return at;
    }
  }
  return std::nullopt;
}

/// Classifies the bytes behind the last valid record.
void classify_ending(std::string_view bytes, std::size_t durable_end, SegmentScan& scan) {
  if (scan.end < durable_end) {
    scan.ending = Ending::damaged;
    scan.why = std::string(read_record(bytes, scan.end).why) +
               ", and the log was durable up to offset " + std::to_string(durable_end);
    return;
  }
  if (scan.dirty_end <= scan.end) {
    scan.ending = Ending::clean;
    return;
  }
  const auto attempt = read_record(bytes, scan.end);
  const auto used = bytes.substr(0, scan.dirty_end);
  if (attempt.record.has_value()) {
    scan.ending = Ending::damaged;
    scan.why = "the record is whole but does not follow the one before it";
  } else if (const auto later = find_later_group(used, scan.end)) {
    scan.ending = Ending::damaged;
    scan.why = std::string(attempt.why) +
               ", and a record that was written later follows at offset " + std::to_string(*later);
  } else {
    scan.ending = Ending::torn;
    scan.why = attempt.why;
  }
}

Result<void> check_header(std::string_view bytes, SegmentId id) {
  if (bytes.size() < segment_header_bytes || bytes.substr(0, 8) != log_magic) {
    return fail(Errc::invalid_argument, "not a log segment: wrong magic number");
  }
  if (fixed32_at(bytes, 8) != log_version) {
    return fail(Errc::invalid_argument, "its version is " + std::to_string(fixed32_at(bytes, 8)) +
                                            ", this program supports version " +
                                            std::to_string(log_version));
  }
  if (core::crc32c(bytes.substr(0, 28)) != fixed32_at(bytes, 28)) {
    return fail(Errc::invalid_argument, "checksum mismatch in the header");
  }
  if (fixed64_at(bytes, 12) != id.number || fixed64_at(bytes, 20) != id.cluster.get()) {
    return fail(Errc::invalid_argument, "a segment of another log");
  }
  return {};
}

}  // namespace

std::string encode_segment_header(SegmentId id) {
  core::ByteWriter writer;
  writer.raw(log_magic);
  writer.fixed32(log_version);
  writer.fixed64(id.number);
  writer.fixed64(id.cluster.get());
  writer.fixed32(core::crc32c(writer.bytes()));
  return std::move(writer).take();
}

std::uint32_t header_checksum(std::string_view header) {
  return fixed32_at(header, segment_header_bytes - 4);
}

void GroupWriter::encode(Index index, const Entry& entry, std::string& out) {
  core::ByteWriter header;
  header.fixed32(static_cast<std::uint32_t>(entry.payload->size()));
  header.fixed64(index.get());
  header.fixed64(entry.term.get());
  header.fixed64(group);
  header.fixed32(static_cast<std::uint32_t>(group_offset));
  header.fixed32(static_cast<std::uint32_t>(entry.type));
  header.fixed32(chain);
  const auto begin = out.size();
  out.append(4, '\0');
  out += header.bytes();
  out += *entry.payload;
  chain = core::crc32c(std::string_view(out).substr(begin + 4));
  core::ByteWriter checksum;
  checksum.fixed32(chain);
  out.replace(begin, 4, checksum.bytes());
  offset += out.size() - begin;
}

Result<SegmentScan> scan_segment(std::string_view bytes, SegmentId id, std::size_t durable_end) {
  if (auto checked = check_header(bytes, id); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  SegmentScan scan;
  scan.end = segment_header_bytes;
  scan.dirty_end = behind_last_nonzero(bytes);
  scan.chain = header_checksum(bytes);
  while (true) {
    const auto attempt = read_record(bytes, scan.end);
    if (!attempt.record.has_value() || attempt.chained_to != scan.chain) {
      break;
    }
    scan.records.push_back(*attempt.record);
    scan.end += attempt.record->bytes();
    scan.chain = attempt.record->checksum;
  }
  classify_ending(bytes, durable_end, scan);
  return scan;
}

}  // namespace tenure::server::raft
