#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming): names of hiredis.
struct redisReader;
struct redisReadTask;
struct redisReplyObjectFunctions;
// NOLINTEND(readability-identifier-naming)

namespace tenure::backends::redis {

/// Reply of a Redis server (RESP2).
struct Reply {
  /// RESP2 type of the reply.
  enum class Kind : std::uint8_t { nil, integer, text, status, error, array };

  /// Type of this reply.
  Kind kind = Kind::nil;
  /// Value of an integer.
  std::int64_t number = 0;
  /// Value of a bulk string, status or error.
  std::string text{};
  /// Elements of an array; owned by the reader.
  std::vector<const Reply*> elements{};

  /// Integer at this index of an array; 0 if there is none.
  [[nodiscard]] std::int64_t number_at(std::size_t index) const noexcept {
    return index < elements.size() ? elements[index]->number : 0;
  }
  /// Text at this index of an array; empty if there is none.
  [[nodiscard]] std::string_view text_at(std::size_t index) const noexcept {
    return index < elements.size() ? std::string_view(elements[index]->text) : std::string_view();
  }
};

/// Value of the field `name` in a reply to INFO; empty if the reply does not have it.
[[nodiscard]] std::string_view info_field(std::string_view info, std::string_view name);

/// Incremental RESP2 parser (hiredis) with limits on bytes and elements, because hiredis alone
/// would allocate an array of any announced size. Replies are reused with their strings, so that
/// parsing does not allocate in the steady state. Not thread safe.
class ReplyReader {
 public:
  /// Default limit of the elements of one reply; holders.lua, the largest, returns 2 × 1,000.
  static constexpr std::size_t elements_max = 20'000;
  /// Limit of the bytes of an incomplete reply.
  static constexpr std::size_t bytes_max = std::size_t{16} * 1024 * 1024;

  /// `elements_limit`: elements of one reply, all nested arrays together.
  explicit ReplyReader(std::size_t elements_limit = elements_max);
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;
  ~ReplyReader();

  /// Appends received bytes.
  void feed(std::span<const std::uint8_t> bytes);
  /// Next reply, valid until the next call; null: none is complete, or the input is invalid.
  [[nodiscard]] const Reply* next();
  /// Why the input is invalid; no reply can follow.
  [[nodiscard]] const std::optional<std::string>& protocol_error() const noexcept {
    return protocol_error_;
  }

 private:
  /// Callbacks of hiredis that build our replies.
  struct Functions;

  /// Unused reply of the pool; null beyond the limit.
  [[nodiscard]] Reply* make(const redisReadTask& task, Reply::Kind kind);

  /// Deleter of the hiredis reader.
  struct Free {
    void operator()(redisReader* reader) const;
  };
  /// Limit of the elements of one reply.
  const std::size_t elements_limit_;
  /// hiredis parser.
  std::unique_ptr<redisReader, Free> reader_;
  /// Pool of replies.
  std::vector<std::unique_ptr<Reply>> made_;
  /// Number of pool entries in the current reply.
  std::size_t used_ = 0;
  /// Why the input is invalid.
  std::optional<std::string> protocol_error_;
};

/// Command in wire format (RESP2).
[[nodiscard]] std::string encode_command(std::span<const std::string_view> words);
[[nodiscard]] inline std::string encode_command(std::initializer_list<std::string_view> words) {
  return encode_command(std::span(words.begin(), words.size()));
}

}  // namespace tenure::backends::redis
