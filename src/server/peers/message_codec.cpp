#include "server/peers/message_codec.hpp"

#include <algorithm>
#include <cassert>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "core/bytes.hpp"

namespace tenure::server::peers {

core::ByteWriter begin_meta(Kind kind) {
  core::ByteWriter writer;
  writer.number(static_cast<std::uint64_t>(kind));
  return writer;
}

namespace {

using core::ByteReader;
using core::ByteWriter;
using raft::AppendEntries;
using raft::AppendResult;
using raft::Entry;
using raft::EntryType;
using raft::Index;
using raft::InstallSnapshot;
using raft::MemberId;
using raft::Message;
using raft::Probe;
using raft::ProbeResult;
using raft::RemovalNotice;
using raft::RequestVote;
using raft::Term;
using raft::TimeoutNow;
using raft::VoteResult;

bool flag(ByteReader& reader, const char* what) {
  return reader.number_up_to(1, what) == 1;
}

// Encoder and decoder of each kind, side by side -----------------------------------------------

Frame write(const AppendEntries& message) {
  auto writer = begin_meta(Kind::append_entries);
  writer.number(message.term.get());
  writer.number(message.previous.get());
  writer.number(message.previous_term.get());
  writer.number(message.commit.get());
  writer.number(message.entries.size());
  std::vector<Slice> bodies;
  bodies.reserve(message.entries.size());
  for (const auto& entry : message.entries) {
    writer.number(entry.term.get());
    writer.number(static_cast<std::uint64_t>(entry.type));
    writer.number(entry.payload->size());
    // The checksum of the frame covers the meta only, and this one covers the body of the entry.
    writer.fixed32(core::crc32c(*entry.payload));
    bodies.push_back({.owner = entry.payload, .bytes = *entry.payload});
  }
  return make_frame(writer.bytes(), std::move(bodies));
}

Entry read_entry(ByteReader& reader, std::string_view& body, const MessageLimits& limits) {
  Entry entry;
  entry.term = Term{reader.number()};
  const auto type = reader.number_up_to(3, "the type of an entry");
  const auto size = reader.number_up_to(limits.entry_bytes_max, "the length of an entry");
  const auto checksum = reader.fixed32();
  if (!reader.ok()) {
    return entry;
  }
  if (type == 0 || size > body.size()) {
    reader.set_error(type == 0 ? "an entry has no type" : "an entry is longer than its frame");
    return entry;
  }
  const auto payload = body.substr(0, size);
  body.remove_prefix(size);
  if (core::crc32c(payload) != checksum) {
    reader.set_error("checksum mismatch in an entry");
    return entry;
  }
  entry.type = static_cast<EntryType>(type);
  entry.payload = std::make_shared<const std::string>(payload);
  return entry;
}

Message read_append(ByteReader& reader, std::string_view& body, const MessageLimits& limits) {
  AppendEntries message;
  message.term = Term{reader.number()};
  message.previous = Index{reader.number()};
  message.previous_term = Term{reader.number()};
  message.commit = Index{reader.number()};
  const auto count = reader.number_up_to(limits.entries_max, "the number of entries");
  // The meta of an entry has at least 7 bytes: three varints and a CRC-32C. A forged count must not
  // allocate memory.
  message.entries.reserve(std::min<std::size_t>(count, reader.left() / 7));
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    message.entries.push_back(read_entry(reader, body, limits));
  }
  return message;
}

Frame write(const AppendResult& message) {
  auto writer = begin_meta(Kind::append_result);
  writer.number(message.term.get());
  writer.number(message.rejected.get());
  writer.number(message.last.get());
  return make_frame(writer.bytes());
}

Message read_append_result(ByteReader& reader) {
  AppendResult message;
  message.term = Term{reader.number()};
  message.rejected = Index{reader.number()};
  message.last = Index{reader.number()};
  return message;
}

Frame write(const RequestVote& message) {
  auto writer = begin_meta(Kind::request_vote);
  writer.number(message.term.get());
  writer.number(message.candidate.get());
  writer.number(message.last.get());
  writer.number(message.last_term.get());
  writer.number(message.disrupts_leader ? 1 : 0);
  writer.number(message.is_pre_vote ? 1 : 0);
  return make_frame(writer.bytes());
}

Message read_request_vote(ByteReader& reader) {
  RequestVote message;
  message.term = Term{reader.number()};
  message.candidate = MemberId{reader.number()};
  message.last = Index{reader.number()};
  message.last_term = Term{reader.number()};
  message.disrupts_leader = flag(reader, "disrupts_leader");
  message.is_pre_vote = flag(reader, "is_pre_vote");
  return message;
}

Frame write(const VoteResult& message) {
  auto writer = begin_meta(Kind::vote_result);
  writer.number(message.term.get());
  writer.number(message.is_granted ? 1 : 0);
  writer.number(message.is_pre_vote ? 1 : 0);
  return make_frame(writer.bytes());
}

Message read_vote_result(ByteReader& reader) {
  VoteResult message;
  message.term = Term{reader.number()};
  message.is_granted = flag(reader, "is_granted");
  message.is_pre_vote = flag(reader, "is_pre_vote");
  return message;
}

Frame write(const TimeoutNow& message) {
  auto writer = begin_meta(Kind::timeout_now);
  writer.number(message.term.get());
  writer.number(message.last.get());
  writer.number(message.last_term.get());
  return make_frame(writer.bytes());
}

Message read_timeout_now(ByteReader& reader) {
  TimeoutNow message;
  message.term = Term{reader.number()};
  message.last = Index{reader.number()};
  message.last_term = Term{reader.number()};
  return message;
}

Frame write(const Probe& message) {
  auto writer = begin_meta(Kind::probe);
  writer.number(message.term.get());
  writer.number(message.round);
  return make_frame(writer.bytes());
}

Frame write(const ProbeResult& message) {
  auto writer = begin_meta(Kind::probe_result);
  writer.number(message.term.get());
  writer.number(message.round);
  return make_frame(writer.bytes());
}

/// Decodes a Probe or a ProbeResult.
template <class Round>
Message read_round(ByteReader& reader) {
  Round message;
  message.term = Term{reader.number()};
  message.round = reader.number();
  return message;
}

Frame write(const RemovalNotice& message) {
  auto writer = begin_meta(Kind::removal_notice);
  writer.number(message.index.get());
  return make_frame(writer.bytes());
}

Message read_removal_notice(ByteReader& reader) {
  return RemovalNotice{.index = Index{reader.number()}};
}

// Unreachable: present because std::visit() needs an overload for every message.
Frame write(const InstallSnapshot& /*message*/) {
  assert(false && "snapshots are sent in chunks");
  return {};
}

Message read(Kind kind, ByteReader& reader, std::string_view& body, const MessageLimits& limits) {
  switch (kind) {
    case Kind::append_entries: return read_append(reader, body, limits);
    case Kind::append_result: return read_append_result(reader);
    case Kind::request_vote: return read_request_vote(reader);
    case Kind::vote_result: return read_vote_result(reader);
    case Kind::timeout_now: return read_timeout_now(reader);
    case Kind::probe: return read_round<Probe>(reader);
    case Kind::probe_result: return read_round<ProbeResult>(reader);
    case Kind::removal_notice: return read_removal_notice(reader);
    default: break;
  }
  reader.set_error("unknown kind of message");
  return TimeoutNow{};
}

}  // namespace

std::uint8_t kind_of(const ReceivedFrame& frame) noexcept {
  return frame.meta.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(frame.meta.front());
}

Frame encode(const Message& message) {
  return std::visit([](const auto& one) { return write(one); }, message);
}

Result<Message> decode(const ReceivedFrame& frame, const MessageLimits& limits) {
  ByteReader reader(frame.meta);
  const auto kind = static_cast<Kind>(reader.number_up_to(255, "the kind of a message"));
  auto body = frame.body;
  auto message = read(kind, reader, body, limits);
  if (reader.ok() && (reader.left() != 0 || !body.empty())) {
    reader.set_error("trailing bytes in a message");
  }
  if (!reader.ok()) {
    return fail(Errc::invalid_argument, reader.error());
  }
  return message;
}

std::vector<AppendEntries> split(AppendEntries message, const MessageLimits& limits) {
  std::vector<AppendEntries> parts;
  auto& entries = message.entries;
  std::size_t begin = 0;
  do {
    std::size_t end = begin;
    std::size_t bytes = 0;
    while (end < entries.size() && end - begin < limits.entries_max &&
           (end == begin || bytes + entries[end].payload->size() <= limits.entries_bytes_max)) {
      bytes += entries[end++].payload->size();
    }
    AppendEntries part{
        .term = message.term,
        .previous = raft::next(message.previous, begin),
        .previous_term = begin == 0 ? message.previous_term : entries[begin - 1].term,
        .commit = message.commit,
        .entries = {}};
    if (begin == 0 && end == entries.size()) {
      part.entries = std::move(entries);
      parts.push_back(std::move(part));
      break;
    }
    // Copies the references to the payloads and not the payloads.
    const auto from = entries.begin() + static_cast<std::ptrdiff_t>(begin);
    part.entries.assign(from, entries.begin() + static_cast<std::ptrdiff_t>(end));
    parts.push_back(std::move(part));
    begin = end;
  } while (begin < entries.size());
  return parts;
}

}  // namespace tenure::server::peers
