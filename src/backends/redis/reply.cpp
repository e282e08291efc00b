#include "backends/redis/reply.hpp"

#include <array>
#include <charconv>

#include <hiredis/read.h>

namespace tenure::backends::redis {
namespace {

/// Appends a RESP2 header such as "*3\r\n" or "$12\r\n".
void append_number(std::string& out, char mark, std::size_t number) {
  std::array<char, 24> digits;  // NOLINT(*-member-init): written before it is read
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  out.push_back(mark);
  out.append(digits.data(), end);
  out.append("\r\n");
}

}  // namespace

/// hiredis calls these to build replies. The objects belong to the reader's pool, so free() does
/// nothing.
struct ReplyReader::Functions {
  static ReplyReader& reader_of(const redisReadTask* task) {
    return *static_cast<ReplyReader*>(task->privdata);
  }
  static void* text(const redisReadTask* task, char* bytes, std::size_t size) {
    const auto kind = task->type == REDIS_REPLY_ERROR    ? Reply::Kind::error
                      : task->type == REDIS_REPLY_STATUS ? Reply::Kind::status
                                                         : Reply::Kind::text;
    auto* const reply = reader_of(task).make(*task, kind);
    if (reply != nullptr) {
      reply->text.assign(bytes, size);
    }
    return reply;
  }
  static void* array(const redisReadTask* task, int elements) {
    if (elements > static_cast<int>(reader_of(task).elements_limit_)) {
      return nullptr;
    }
    return reader_of(task).make(*task, Reply::Kind::array);
  }
  static void* integer(const redisReadTask* task, long long number) {
    auto* const reply = reader_of(task).make(*task, Reply::Kind::integer);
    if (reply != nullptr) {
      reply->number = number;
    }
    return reply;
  }
  static void* nil(const redisReadTask* task) {
    return reader_of(task).make(*task, Reply::Kind::nil);
  }
  static void free(void* /*reply*/) {}

  static redisReplyObjectFunctions& all() {
    static redisReplyObjectFunctions functions{.createString = text,
                                               .createArray = array,
                                               .createInteger = integer,
                                               .createNil = nil,
                                               .freeObject = free};
    return functions;
  }
};

void ReplyReader::Free::operator()(redisReader* reader) const {
  redisReaderFree(reader);
}

ReplyReader::ReplyReader(std::size_t elements_limit)
    : elements_limit_(elements_limit), reader_(redisReaderCreateWithFunctions(&Functions::all())) {
  reader_->privdata = this;
}

ReplyReader::~ReplyReader() = default;

Reply* ReplyReader::make(const redisReadTask& task, Reply::Kind kind) {
  if (used_ > elements_limit_) {
    return nullptr;
  }
  if (used_ == made_.size()) {
    made_.push_back(std::make_unique<Reply>());
  }
  auto& reply = *made_[used_++];
  reply.kind = kind;
  reply.number = 0;
  reply.text.clear();
  reply.elements.clear();
  if (task.parent != nullptr) {
    static_cast<Reply*>(task.parent->obj)->elements.push_back(&reply);
  }
  return &reply;
}

void ReplyReader::feed(std::span<const std::uint8_t> bytes) {
  if (reader_->len - reader_->pos + bytes.size() > bytes_max) {
    protocol_error_ = "reply larger than 16 MiB";
    return;
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): hiredis takes char.
  redisReaderFeed(reader_.get(), reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

const Reply* ReplyReader::next() {
  if (protocol_error_) {
    return nullptr;
  }
  void* reply = nullptr;
  // No reply is partially parsed, so the pool can be reused.
  if (reader_->ridx < 0) {
    used_ = 0;
  }
  if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) {
    protocol_error_ =
        reader_->err == REDIS_ERR_OOM ? "reply with too many elements" : reader_->errstr;
    return nullptr;
  }
  return static_cast<const Reply*>(reply);
}

std::string encode_command(std::span<const std::string_view> words) {
  std::string command;
  // 16 bytes for the header of the array, and 10 for the header and line ends of most words.
  std::size_t bytes = 16;
  for (const auto word : words) {
    bytes += word.size() + 10;
  }
  command.reserve(bytes);
  append_number(command, '*', words.size());
  for (const auto word : words) {
    append_number(command, '$', word.size());
    command.append(word).append("\r\n");
  }
  return command;
}

std::string_view info_field(std::string_view info, std::string_view name) {
  const auto mark = "\n" + std::string(name) + ":";
  const auto at = info.find(mark);
  if (at == std::string_view::npos) {
    return {};
  }
  const auto rest = info.substr(at + mark.size());
  return rest.substr(0, rest.find('\r'));
}

}  // namespace tenure::backends::redis
