#include "core/batch.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "core/state_machine.hpp"
#include "support/core/fixtures.hpp"

namespace tenure::core {
namespace {

std::string detail_of(std::string_view bytes) {
  const auto batch = decode_batch(bytes);
  EXPECT_FALSE(batch.has_value());
  EXPECT_TRUE(batch.has_value() || batch.error() == Errc::invalid_argument ||
              batch.error() == Errc::unsupported);
  return batch.has_value() ? "" : batch.error().detail;
}

// 002.091, 002.092, 002.093: term and index are the log's own; the rest of the entry is this.
TEST(CoreBatch, every_command_survives_a_round_trip) {
  const auto batch = fixture_batch();

  const auto decoded = decode_batch(encode(batch));

  ASSERT_TRUE(decoded.has_value()) << decoded.error().detail;
  EXPECT_EQ(*decoded, batch);
}

TEST(CoreBatch, an_empty_batch_can_be_written) {
  EXPECT_EQ(decode_batch(encode(Batch{})).value(), Batch{});
}

// A stamp that no store would take still arrives; the state machine bounds it.
TEST(CoreBatch, the_most_extreme_stamps_survive_a_round_trip_and_can_be_applied) {
  for (const auto time : {ClusterTime::min(), ClusterTime{-1}, ClusterTime::max()}) {
    const Batch batch{.stamp = {.time = time, .revision = Revision{~0ULL}}, .commands = {Tick{}}};

    const auto decoded = decode_batch(encode(batch)).value();

    EXPECT_EQ(decoded, batch);
    StateMachine machine;
    machine.apply(decoded.commands[0], decoded.stamp);
    machine.apply(GrantLease{.ttl = std::chrono::seconds(1)}, decoded.stamp);
    EXPECT_GE(machine.state().now, ClusterTime{});
  }
}

TEST(CoreBatch, every_truncation_is_refused) {
  const auto bytes = encode(fixture_batch());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(detail_of(std::string_view(bytes).substr(0, size)), "");
  }
  EXPECT_NE(detail_of(bytes + '\0').find("trailing bytes"), std::string::npos);
}

// Without a checksum a changed byte may mean another batch, but then it is that batch's only form.
TEST(CoreBatch, every_changed_byte_is_refused_or_gives_a_batch_with_these_bytes) {
  const auto bytes = encode(fixture_batch());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int change = 1; change < 256; ++change) {
      auto changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ change);
      if (const auto batch = decode_batch(changed)) {
        EXPECT_EQ(encode(*batch), changed) << "two ways to write one batch, byte " << i;
      }
    }
  }
}

TEST(CoreBatch, the_error_names_the_cause_and_the_offset) {
  EXPECT_EQ(detail_of(""), "batch: it ends in the middle of a number (byte 0)");
  EXPECT_EQ(detail_of("\x03"),
            "batch: version 3 is not known here; this program reads versions 1 to 2");
  EXPECT_EQ(detail_of(std::string("\x01\x00\x00\x01\x7F", 5)),
            "batch: the kind of a command is out of range (byte 5)");
  // An acquire of 2^63 items: refused before room is made for them.
  EXPECT_EQ(detail_of(std::string("\x01\x00\x00\x01\x00\x01\x01", 7) +
                      std::string("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01")),
            "batch: a number of elements is out of range (byte 17)");
  EXPECT_EQ(detail_of(std::string("\x01\x00\x00\x01\x01\x01\x00\x02", 8)),
            "batch: what to release is out of range (byte 8)");
}

}  // namespace
}  // namespace tenure::core
