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

struct redisReader;
struct redisReadTask;
struct redisReplyObjectFunctions;

namespace tenure::backends::redis {

/// What a Redis server answers.
struct Reply {
  enum class Kind : std::uint8_t { nil, integer, text, status, error, array };

  Kind kind = Kind::nil;
  std::int64_t number = 0;
  std::string text{};
  std::vector<const Reply*> elements{};

  /// Of an array: the integer at this place; 0 if there is none.
  [[nodiscard]] std::int64_t number_at(std::size_t index) const noexcept {
    return index < elements.size() ? elements[index]->number : 0;
  }
  [[nodiscard]] std::string_view text_at(std::size_t index) const noexcept {
    return index < elements.size() ? std::string_view(elements[index]->text) : std::string_view();
  }
};

/// Value of the field `name` in a reply to INFO; empty if the reply does not have it.
[[nodiscard]] std::string_view info_field(std::string_view info, std::string_view name);

/// Cuts a stream of bytes into replies (RESP2), by hiredis, with limits: it alone would believe in
/// an array of a thousand million elements.
class ReplyReader {
 public:
  static constexpr std::size_t elements_max = 20'000;
  static constexpr std::size_t bytes_max = std::size_t{16} * 1024 * 1024;

  /// `elements_limit`: of one reply, all arrays in it together.
  explicit ReplyReader(std::size_t elements_limit = elements_max);
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;
  ~ReplyReader();

  void feed(std::span<const std::uint8_t> bytes);
  /// The next reply, until it is asked again; null if it is not complete, or what came is none.
  [[nodiscard]] const Reply* next();
  /// Why what came is no reply; nothing can follow.
  [[nodiscard]] const std::optional<std::string>& protocol_error() const noexcept {
    return protocol_error_;
  }

 private:
  struct Functions;

  /// A reply that is reused, strings and all; null beyond the limit.
  [[nodiscard]] Reply* make(const redisReadTask& task, Reply::Kind kind);

  struct Free {
    void operator()(redisReader* reader) const;
  };
  const std::size_t elements_limit_;
  std::unique_ptr<redisReader, Free> reader_;
  std::vector<std::unique_ptr<Reply>> made_;
  std::size_t used_ = 0;
  std::optional<std::string> protocol_error_;
};

/// Appends a command as the wire has it.
void append_command(std::string& out, std::span<const std::string_view> words);

/// One command in the form in which it is sent.
[[nodiscard]] std::string encode_command(std::initializer_list<std::string_view> words);

}  // namespace tenure::backends::redis
