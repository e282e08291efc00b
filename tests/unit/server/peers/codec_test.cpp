#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/bytes.hpp"
#include "server/peers/handshake.hpp"
#include "server/peers/message_codec.hpp"
#include "server/peers/outbox.hpp"
#include "server/peers/snapshot_transfer.hpp"

namespace tenure::server::peers {
namespace {

using raft::AppendEntries;
using raft::Entry;
using raft::EntryType;
using raft::Index;
using raft::Message;
using raft::Term;

raft::Bytes bytes_of(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

std::string on_the_wire(const Frame& frame) {
  std::string wire = frame.head;
  for (const auto& body : frame.bodies) {
    wire += body.bytes;
  }
  return wire;
}

/// Messages and errors of a FrameReader that receives these bytes in pieces.
std::vector<Result<Message>> read_in_pieces(const std::string& wire, std::size_t piece) {
  FrameReader reader({});
  std::vector<Result<Message>> found;
  for (std::size_t at = 0; at < wire.size(); at += piece) {
    const auto fed =
        reader.feed(std::string_view(wire).substr(at, piece), [&](const ReceivedFrame& frame) {
          found.push_back(decode(frame, {}));
          return true;
        });
    if (!fed) {
      found.push_back(std::unexpected(fed.error()));
      break;
    }
  }
  return found;
}

Message any_message() {
  const auto number = [] { return *rc::gen::arbitrary<std::uint64_t>(); };
  switch (*rc::gen::inRange(0, 8)) {
    case 0: {
      AppendEntries append{.term = Term{number()},
                           .previous = Index{number()},
                           .previous_term = Term{number()},
                           .commit = Index{number()}};
      const auto count = *rc::gen::inRange(0, 20);
      for (int i = 0; i < count; ++i) {
        append.entries.push_back({.term = Term{number()},
                                  .type = static_cast<EntryType>(*rc::gen::inRange(1, 4)),
                                  .payload = bytes_of(*rc::gen::arbitrary<std::string>())});
      }
      return append;
    }
    case 1:
      return raft::AppendResult{
          .term = Term{number()}, .rejected = Index{number()}, .last = Index{number()}};
    case 2:
      return raft::RequestVote{.term = Term{number()},
                               .candidate = raft::MemberId{number()},
                               .last = Index{number()},
                               .last_term = Term{number()},
                               .disrupts_leader = *rc::gen::arbitrary<bool>(),
                               .is_pre_vote = *rc::gen::arbitrary<bool>()};
    case 3:
      return raft::VoteResult{.term = Term{number()},
                              .is_granted = *rc::gen::arbitrary<bool>(),
                              .is_pre_vote = *rc::gen::arbitrary<bool>()};
    case 4:
      return raft::TimeoutNow{
          .term = Term{number()}, .last = Index{number()}, .last_term = Term{number()}};
    case 5: return raft::Probe{.term = Term{number()}, .round = number()};
    case 6: return raft::ProbeResult{.term = Term{number()}, .round = number()};
    default: return raft::RemovalNotice{.index = Index{number()}};
  }
}

// Every message round-trips for any fragmentation of the stream. The encoding is canonical, so
// equal bytes imply equal fields.
RC_GTEST_PROP(PeersCodec, every_message_arrives_as_it_was_sent, ()) {
  const auto sent = any_message();
  const auto wire = on_the_wire(encode(sent)) + on_the_wire(encode(sent));

  const auto found = read_in_pieces(
      wire, *rc::gen::inRange<std::size_t>(1, std::max<std::size_t>(2, wire.size())));

  RC_ASSERT(found.size() == 2U);
  for (const auto& one : found) {
    RC_ASSERT(one.has_value());
    RC_ASSERT(one->index() == sent.index());
    RC_ASSERT(on_the_wire(encode(*one)) == on_the_wire(encode(sent)));
  }
}

RC_GTEST_PROP(PeersCodec, random_bytes_are_refused_and_never_crash, (const std::string& bytes)) {
  for (const auto& one : read_in_pieces(bytes, 7)) {
    RC_ASSERT(!one.has_value());
  }
  const ReceivedFrame frame{.meta = bytes, .body = bytes};
  static_cast<void>(decode(frame, {}));
  static_cast<void>(decode_hello(frame));
  static_cast<void>(decode_welcome(frame));
  static_cast<void>(decode_refusal(frame));
  SnapshotReceiver receiver({});
  static_cast<void>(receiver.begin(frame, {}));
  static_cast<void>(receiver.chunk(frame, {}));
}

// A bit flipped in transit must not reach the log.
RC_GTEST_PROP(PeersCodec, a_changed_byte_is_always_detected, ()) {
  const auto sent = any_message();
  auto wire = on_the_wire(encode(sent));
  const auto at = *rc::gen::inRange<std::size_t>(0, wire.size());
  wire[at] = static_cast<char>(wire[at] ^ *rc::gen::inRange(1, 256));

  for (const auto& one : read_in_pieces(wire, wire.size())) {
    RC_ASSERT(!one.has_value());
  }
}

// A valid checksum excludes transmission errors, but not a faulty sender.
RC_GTEST_PROP(PeersCodec, a_sealed_frame_of_random_words_never_crashes, (const std::string& meta)) {
  for (int kind = 0; kind < 70; ++kind) {
    const auto sealed = static_cast<char>(kind) + meta;
    static_cast<void>(read_in_pieces(on_the_wire(make_frame(sealed)), 1000));
    const ReceivedFrame frame{.meta = sealed, .body = meta};
    static_cast<void>(decode(frame, {}));
    static_cast<void>(decode_hello(frame));
    SnapshotReceiver receiver({});
    static_cast<void>(receiver.begin(frame, {}));
    static_cast<void>(receiver.chunk(frame, {}));
  }
}

TEST(PeersCodec, lengths_beyond_the_limits_are_refused_before_they_cost_memory) {
  core::ByteWriter prefix;
  prefix.fixed32(0);
  prefix.fixed32(16);
  prefix.fixed32(0xFFFFFFFFU);
  FrameReader reader({.meta_bytes_max = 64, .body_bytes_max = 64});

  EXPECT_FALSE(reader.feed(prefix.bytes(), [](const ReceivedFrame&) { return true; }));

  const auto one = encode(AppendEntries{
      .entries = {{.type = EntryType::command, .payload = bytes_of(std::string(100, 'x'))}}});
  const auto wire = on_the_wire(one);
  const ReceivedFrame frame{.meta = std::string_view(one.head).substr(frame_prefix_bytes),
                            .body = one.bodies.front().bytes};
  EXPECT_TRUE(decode(frame, {}));
  EXPECT_FALSE(decode(frame, {.entry_bytes_max = 99}));
  EXPECT_FALSE(decode(frame, {.entries_max = 0}));
}

TEST(PeersCodec, payloads_are_shared_and_not_copied) {
  const auto payload = bytes_of(std::string(1000, 'x'));

  const auto frame = encode(AppendEntries{.entries = {{.payload = payload}}});

  ASSERT_EQ(frame.bodies.size(), 1U);
  EXPECT_EQ(frame.bodies.front().bytes.data(), payload->data());
}

// The leader sends a lagging follower its whole log in one message.
TEST(PeersCodec, a_long_message_is_split_into_several_that_mean_the_same) {
  AppendEntries all{
      .term = Term{9}, .previous = Index{100}, .previous_term = Term{3}, .commit = Index{120}};
  for (std::uint64_t i = 0; i < 10; ++i) {
    all.entries.push_back({.term = Term{4 + i}, .payload = bytes_of(std::string(i * 10, 'x'))});
  }

  const auto parts = split(all, {.entries_max = 4, .entries_bytes_max = 100});

  Index next = all.previous;
  Term term = all.previous_term;
  for (const auto& part : parts) {
    EXPECT_EQ(part.previous, next);
    EXPECT_EQ(part.previous_term, term);
    EXPECT_EQ(part.term, all.term);
    EXPECT_EQ(part.commit, all.commit);
    ASSERT_FALSE(part.entries.empty());
    EXPECT_LE(part.entries.size(), 4U);
    next = raft::next(next, part.entries.size());
    term = part.entries.back().term;
  }
  EXPECT_EQ(next, Index{110});
  EXPECT_GT(parts.size(), 3U);
  EXPECT_EQ(split(AppendEntries{}, {}).size(), 1U) << "a heartbeat is one message";
}

TEST(PeersOutbox, a_full_outbox_drops_new_messages_and_keeps_the_order) {
  Outbox outbox(
      {.messages_max = 4, .bytes_max = 250, .batch_bytes_max = 1, .batch_messages_max = 9});
  const auto entry = [](std::size_t size) {
    return encode(AppendEntries{.entries = {{.payload = bytes_of(std::string(size, 'x'))}}});
  };

  EXPECT_TRUE(outbox.push(entry(100)));
  EXPECT_TRUE(outbox.push(entry(150)));
  EXPECT_FALSE(outbox.push(entry(1))) << "250 bytes wait";
  EXPECT_TRUE(outbox.push(encode(AppendEntries{}))) << "a heartbeat has no entries";
  EXPECT_TRUE(outbox.push(encode(raft::AppendResult{})));
  EXPECT_FALSE(outbox.push(encode(raft::AppendResult{}))) << "four messages wait";

  const auto batch = outbox.take_batch();
  ASSERT_EQ(batch.size(), 1U) << "a message larger than a batch is sent alone";
  EXPECT_EQ(batch.front().body_bytes(), 100U);
  EXPECT_EQ(outbox.size(), 3U);
  outbox.clear();
  EXPECT_TRUE(outbox.push(entry(1000))) << "an empty outbox accepts a message of any size";
}

}  // namespace
}  // namespace tenure::server::peers
