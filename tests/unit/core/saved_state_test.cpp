#include "core/saved_state.hpp"

#include <string>

#include <gtest/gtest.h>

namespace tenure::core {
namespace {

constexpr SavedFrom somewhere{
    .cluster = 1, .member = 2, .term = 3, .index = 4, .saved_at_ms = 1'700'000'000'000};
constexpr std::size_t head_bytes = 68;

/// The file of a state, which comes in pieces of this size.
std::string saved(const std::string& state, std::size_t piece_bytes) {
  std::string file;
  SavedStateWriter writer(somewhere, state.size(), [&](std::string_view bytes) { file += bytes; });
  for (std::size_t at = 0; at < state.size(); at += piece_bytes) {
    writer.add(std::string_view(state).substr(at, piece_bytes));
  }
  EXPECT_TRUE(writer.finish());
  return file;
}

std::string detail_of(const std::string& file) {
  const auto read = read_saved_state(file);
  EXPECT_FALSE(read.has_value());
  return read.has_value() ? "" : read.error().detail;
}

std::string some_state(std::size_t bytes) {
  std::string state;
  for (std::size_t at = 0; at < bytes; ++at) {
    state += static_cast<char>(at * 7 + at / 251);
  }
  return state;
}

// A state of any size, written in pieces of any size, makes the same file, and is read back.
TEST(SavedState, a_saved_state_is_read_back_however_it_was_split) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, saved_block_bytes - 1, saved_block_bytes,
        saved_block_bytes + 1, 3 * saved_block_bytes + 5}) {
    const auto state = some_state(bytes);

    const auto file = saved(state, 1000);

    EXPECT_EQ(file, saved(state, 4 * saved_block_bytes));
    const auto read = read_saved_state(file);
    ASSERT_TRUE(read.has_value()) << read.error().detail;
    EXPECT_EQ(read->state, state);
    EXPECT_EQ(read->from, somewhere);
  }
}

// Of a state that did not come whole there is no file that looks whole.
TEST(SavedState, a_state_that_is_too_short_or_too_long_is_not_finished) {
  for (const std::size_t promised : {std::size_t{9}, std::size_t{11}}) {
    SavedStateWriter writer(somewhere, promised, [](std::string_view) {});
    writer.add("0123456789");
    EXPECT_FALSE(writer.finish());
  }
}

// Every single byte that changes is found, and the block is named in which it is.
TEST(SavedState, damage_is_located_to_the_block) {
  const auto file = saved(some_state(2 * saved_block_bytes + 100), 5000);
  const auto second = head_bytes + saved_block_bytes + 4;
  const auto third = second + saved_block_bytes + 4;
  const auto flipped = [&](std::size_t at) {
    auto copy = file;
    copy[at] = static_cast<char>(copy[at] ^ 1);
    return detail_of(copy);
  };

  EXPECT_EQ(flipped(head_bytes).find("bytes 68 to " + std::to_string(second)), 0U);
  EXPECT_EQ(flipped(second - 1).find("bytes 68 to "), 0U);
  EXPECT_EQ(flipped(second).find("bytes " + std::to_string(second) + " to "), 0U);
  EXPECT_EQ(flipped(file.size() - 1)
                .find("bytes " + std::to_string(third) + " to " + std::to_string(file.size())),
            0U);
  for (std::size_t at = 0; at < head_bytes; ++at) {
    EXPECT_EQ(flipped(at).find("byte"), 0U) << at;
  }
}

// Both damaged blocks are named.
TEST(SavedState, several_damaged_blocks_are_all_named) {
  auto file = saved(some_state(2 * saved_block_bytes), 5000);
  file[100] = static_cast<char>(file[100] ^ 1);
  file.back() = static_cast<char>(file.back() ^ 1);

  EXPECT_NE(
      detail_of(file).find(", " + std::to_string(head_bytes + saved_block_bytes + 4) + " to "),
      std::string::npos);
}

// A file is refused however much of it is missing, and when there is more of it.
TEST(SavedState, a_file_that_is_cut_or_longer_is_refused) {
  const auto file = saved(some_state(100), 10);

  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(detail_of(file.substr(0, size)).empty()) << size;
  }
  EXPECT_NE(detail_of(file + "x").find("appended"), std::string::npos);
}

}  // namespace
}  // namespace tenure::core
