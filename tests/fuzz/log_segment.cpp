// Segments of the log. The input describes records and what is changed in their bytes afterwards;
// or it is the segment itself.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>

#include "fuzz/input.hpp"
#include "server/raft/record.hpp"

namespace tenure::fuzz {
namespace {

using namespace server::raft;

constexpr SegmentId id{.number = 7, .cluster = ClusterId{11}};
constexpr std::size_t records_max = 32;

std::string write_records(Input& input) {
  auto segment = encode_segment_header(id);
  GroupWriter writer{.offset = segment.size(), .chain = header_checksum(segment)};
  writer.group_offset = writer.offset;
  const auto count = input.below(records_max);
  for (std::size_t i = 0; i < count; ++i) {
    const auto choice = input.byte();
    if ((choice & 1U) != 0) {
      ++writer.group;
      writer.group_offset = writer.offset;
    }
    const Entry entry{.term = Term{choice & 6U},
                      .type = static_cast<EntryType>(1 + choice % 3),
                      .payload = std::make_shared<const std::string>(input.text(choice >> 3U))};
    writer.encode(Index{i + 1}, entry, segment);
  }
  segment.append(input.number() % 512, '\0');
  return segment;
}

/// Bits that flip, zeros in the place of bytes, an early end: what disks and crashes do.
void damage(std::string& segment, Input& input) {
  while (!input.is_empty() && !segment.empty()) {
    const auto at = input.number() % segment.size();
    const auto how = input.byte();
    if (how < 128) {
      segment[at] = static_cast<char>(segment[at] ^ (how + 1));
    } else if (how < 224) {
      const auto length = std::min<std::size_t>(segment.size() - at, how - 127U);
      segment.replace(at, length, length, '\0');
    } else {
      segment.resize(at);
    }
  }
}

void check(std::string_view bytes) {
  const auto scan = scan_segment(bytes, id);
  if (!scan) {
    return;
  }
  std::size_t end = segment_header_bytes;
  for (const auto& record : scan->records) {
    require(record.payload.empty() ||
                (record.payload.data() >= bytes.data() + end &&
                 record.payload.data() + record.payload.size() <= bytes.data() + bytes.size()),
            "a record lies in the segment, behind the one before it");
    end += record.bytes();
  }
  require(end == scan->end && end <= bytes.size(), "the records end at the offset of the scan");
  require((scan->ending == Ending::clean) == (scan->dirty_end <= scan->end),
          "an end is clean when only zeros follow");
  // What loading makes of a torn end: zeros from there on.
  auto cut = std::string(bytes);
  std::fill(cut.begin() + static_cast<std::ptrdiff_t>(scan->end), cut.end(), '\0');
  const auto again = scan_segment(cut, id);
  require(again.has_value() && again->records.size() == scan->records.size() &&
              again->ending == Ending::clean,
          "a segment that was cut has the same records");
}

}  // namespace
}  // namespace tenure::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenure::fuzz;
  Input input(data, size);
  if (input.below(2) == 0) {
    check(input.rest());
    return 0;
  }
  auto segment = write_records(input);
  const auto whole = scan_segment(segment, id);
  require(whole.has_value() && whole->ending == Ending::clean, "what was written is read");
  damage(segment, input);
  check(segment);
  return 0;
}
