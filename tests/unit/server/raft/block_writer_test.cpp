#include "server/raft/block_writer.hpp"

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "support/raft/folder.hpp"

namespace tenure::server::raft {
namespace {

std::string pattern(std::size_t bytes, std::size_t seed) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) {
    text[i] = static_cast<char>('a' + (i * 7 + seed) % 26);
  }
  return text;
}

/// A file of zeros and its expected content, on a disk and on tmpfs, which differ in their support
/// for direct I/O.
class BlockWriterTest : public testing::TestWithParam<std::filesystem::path> {
 protected:
  File make(std::size_t bytes) {
    expected_.assign(bytes, '\0');
    auto file = File::open(folder_.path() / "blocks", File::Mode::create).value();
    file.write_at(0, expected_).value();
    file.sync_content().value();
    return file;
  }
  void write(BlockWriter& writer, File& file, const std::string& bytes) {
    ASSERT_TRUE(writer.write(file, bytes));
    expected_.replace(at_, bytes.size(), bytes);
    at_ += bytes.size();
  }
  std::string content() {
    return File::open(folder_.path() / "blocks", File::Mode::read).value().read_all().value();
  }

  test::TemporaryFolder folder_{GetParam()};
  std::string expected_;
  std::size_t at_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Folders, BlockWriterTest,
                         testing::Values(test::TemporaryFolder::on_disk(),
                                         test::TemporaryFolder::in_memory()));

TEST_P(BlockWriterTest, small_writes_form_one_contiguous_file) {
  auto file = make(1 << 20);
  file.write_at(0, pattern(100, 9)).value();
  expected_.replace(0, 100, pattern(100, 9));
  at_ = 100;
  auto writer = BlockWriter::begin(file, 1 << 20, at_).value();

  const std::size_t sizes[] = {1, 37, 4095, 4096, 4097, 50, 3, 12'288, 300'000, 7, 8192, 61, 4000};
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    write(writer, file, pattern(sizes[i], i));
    ASSERT_EQ(content(), expected_) << "after write " << i;
  }
}

TEST_P(BlockWriterTest, a_second_writer_continues_at_the_end_of_the_first) {
  auto file = make(1 << 16);
  auto first = BlockWriter::begin(file, 1 << 16, 0).value();
  write(first, file, pattern(5000, 1));

  auto again = File::open(folder_.path() / "blocks", File::Mode::change).value();
  auto second = BlockWriter::begin(again, 1 << 16, at_).value();
  write(second, again, pattern(123, 2));

  EXPECT_EQ(content(), expected_);
}

TEST_P(BlockWriterTest, the_last_byte_of_the_file_can_be_written) {
  auto file = make(8192);
  auto writer = BlockWriter::begin(file, 8192, 0).value();
  write(writer, file, pattern(8000, 1));
  write(writer, file, pattern(192, 2));
  EXPECT_EQ(content(), expected_);
}

TEST_P(BlockWriterTest, a_file_of_an_odd_size_is_written_through_the_cache_and_stays_that_size) {
  auto file = make(5000);
  auto writer = BlockWriter::begin(file, 5000, 0).value();
  EXPECT_FALSE(writer.is_direct());
  write(writer, file, pattern(4999, 1));
  EXPECT_EQ(content(), expected_);
}

TEST_P(BlockWriterTest, a_file_that_is_too_short_is_an_error) {
  auto file = make(10);
  const auto writer = BlockWriter::begin(file, 4096, 100);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error(), Errc::unavailable);
}

TEST_P(BlockWriterTest, a_write_that_failed_can_be_tried_again) {
  auto file = make(8192);
  auto writer = BlockWriter::begin(file, 8192, 0).value();
  write(writer, file, pattern(100, 1));
  auto closed = File();
  EXPECT_FALSE(writer.write(closed, pattern(50, 2)));

  write(writer, file, pattern(50, 2));

  EXPECT_EQ(content(), expected_);
}

}  // namespace
}  // namespace tenure::server::raft
