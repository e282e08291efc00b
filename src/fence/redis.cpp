#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <utility>

#include <hiredis/hiredis.h>

#include <tenure/fence_redis.hpp>

#include "fence/scripts.hpp"
#include "fence/token_check.hpp"

namespace tenure {
namespace {

/// Deleter for replies of hiredis.
struct Free {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, Free>;
/// Command and arguments. Views: the caller keeps the texts until the command is sent.
using Words = std::vector<std::string_view>;

/// Sends one command and waits for its reply; null if the connection is lost. Passes lengths, so
/// that names and values may contain any byte.
Reply run(redisContext& connection, const Words& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const auto word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  return Reply(static_cast<redisReply*>(
      redisCommandArgv(&connection, static_cast<int>(words.size()), texts.data(), lengths.data())));
}

/// Text of a reply, empty for other types: `str` is valid for these three only.
std::string_view text_of(const redisReply& reply) {
  const bool is_text = reply.type == REDIS_REPLY_STRING || reply.type == REDIS_REPLY_STATUS ||
                       reply.type == REDIS_REPLY_ERROR;
  return is_text ? std::string_view(reply.str, static_cast<std::size_t>(reply.len))
                 : std::string_view();
}

bool is_error(const Reply& reply, std::string_view word) {
  return reply != nullptr && reply->type == REDIS_REPLY_ERROR && text_of(*reply).starts_with(word);
}

/// Maps an error of the server by its first word.
Errc code_of(std::string_view message) {
  // Temporary states, and redirects: a retry, or a connection to the right node, may succeed.
  constexpr std::array not_ready{"LOADING",  "BUSY",    "MASTERDOWN", "READONLY", "CLUSTERDOWN",
                                 "TRYAGAIN", "MISCONF", "NOREPLICAS", "MOVED",    "ASK"};
  const auto word = message.substr(0, message.find(' '));
  if (word == "OOM") {
    return Errc::resource_exhausted;
  }
  return std::ranges::find(not_ready, word) == not_ready.end() ? Errc::invalid_argument
                                                               : Errc::unavailable;
}

/// Error of a reply that is not a result of the fence.
Error error_of(const redisReply* reply) {
  if (reply == nullptr) {
    return {.code = Errc::unavailable,
            .detail = "the connection to Redis is lost; the script may have run"};
  }
  if (reply->type != REDIS_REPLY_ERROR) {
    return {.code = Errc::unavailable, .detail = "unexpected reply from Redis"};
  }
  const auto message = text_of(*reply);
  return {.code = code_of(message), .detail = "Redis: " + std::string(message)};
}

/// Error of invalid writes, or std::nullopt.
std::optional<Error> validate(std::span<const RedisWrite> writes) {
  if (writes.size() > RedisFence::writes_max) {
    return Error{.code = Errc::resource_exhausted,
                 .detail = std::to_string(writes.size()) +
                           " writes exceed the limit of one call; " +
                           std::to_string(RedisFence::writes_max) + " are allowed"};
  }
  // Checked before the script runs: a script that fails in the middle keeps its earlier writes.
  for (const auto& write : writes) {
    if (write.command.empty()) {
      return Error{.code = Errc::invalid_argument, .detail = "a write has no command"};
    }
    if (write.arguments.size() > RedisFence::arguments_max) {
      return Error{.code = Errc::resource_exhausted,
                   .detail = std::to_string(write.arguments.size()) +
                             " arguments exceed the limit of one write; " +
                             std::to_string(RedisFence::arguments_max) + " are allowed"};
    }
  }
  return std::nullopt;
}

/// Whether the server may evict tokens. A server that does not report its policy is trusted. With
/// an allkeys- policy a full server deletes any key. A fence without its token would admit the next
/// stale writer. An access list may forbid INFO, which is why its absence is accepted.
bool may_evict_tokens(redisContext& connection) {
  const auto reply = run(connection, {"INFO", "memory"});
  return reply != nullptr && text_of(*reply).contains("maxmemory_policy:allkeys-");
}

/// Both scripts as one text: EVALSHA identifies a script by the hash of its whole text.
const std::string& script_text() {
  static const std::string text =
      std::string(fence::admit_script) + std::string(fence::write_script);
  return text;
}

/// EVALSHA, or EVAL if the server has lost the script by a restart or SCRIPT FLUSH.
Reply evaluate(redisContext& connection, Words words) {
  auto reply = run(connection, words);
  if (is_error(reply, "NOSCRIPT")) {
    // Nothing was executed, so the repetition is safe. EVAL also caches the script again.
    words[0] = "EVAL";
    words[1] = script_text();
    reply = run(connection, words);
  }
  return reply;
}

/// Converts the reply {verdict, token}. Everything that is not a clear admission of this token is a
/// rejection or an error.
FenceResult read_answer(const redisReply* reply, fence::TokenCheck check) {
  if (reply == nullptr || reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
    return not_checked(check, error_of(reply));
  }
  const auto verdict = text_of(*reply->element[0]);
  const auto highest = fence::token_from(text_of(*reply->element[1]));
  if (verdict == "admitted" && highest == check.token) {
    return {};
  }
  if ((verdict == "stale" || verdict == "reused") && highest) {
    check.repeated = fence::Repeated::reject;  // A custom script may have used `once`.
    return not_stored(check, *highest);
  }
  return not_checked(check, error_of(reply));
}

}  // namespace

RedisFence::RedisFence(redisContext& connection, RedisFenceOptions options)
    : connection_(&connection), options_(std::move(options)) {}

Result<RedisFence> RedisFence::on(redisContext& connection, const RedisFenceOptions& options) {
  if (options.key_prefix.size() > resource_bytes_max ||
      options.key_prefix.find_first_of("{}") != std::string::npos) {
    return fail(Errc::invalid_argument,
                "key_prefix must have at most 1,024 bytes and no braces, which mark the part that "
                "a Redis Cluster hashes");
  }
  // Loaded once, so that each check sends the hash of the script instead of its text. Also shows
  // that the connection works and that scripts are permitted.
  const auto loaded = run(connection, {"SCRIPT", "LOAD", script_text()});
  if (loaded == nullptr || loaded->type != REDIS_REPLY_STRING) {
    return std::unexpected(error_of(loaded.get()));
  }
  if (may_evict_tokens(connection)) {
    return fail(Errc::invalid_argument,
                "this Redis may evict tokens (maxmemory-policy allkeys-...); set noeviction or a "
                "volatile- policy");
  }
  RedisFence made(connection, options);
  made.script_ = text_of(*loaded);
  return made;
}

FenceResult RedisFence::admit(std::string_view resource, FencingToken token,
                              std::span<const RedisWrite> writes) {
  return decide({.resource = resource, .token = token, .repeated = fence::Repeated::admit}, writes);
}

FenceResult RedisFence::admit(std::string_view resource, FencingToken token,
                              std::initializer_list<RedisWrite> writes) {
  return admit(resource, token, std::span(writes.begin(), writes.size()));
}

FenceResult RedisFence::admit_once(std::string_view resource, FencingToken token,
                                   std::span<const RedisWrite> writes) {
  return decide({.resource = resource, .token = token, .repeated = fence::Repeated::reject},
                writes);
}

FenceResult RedisFence::admit_once(std::string_view resource, FencingToken token,
                                   std::initializer_list<RedisWrite> writes) {
  return admit_once(resource, token, std::span(writes.begin(), writes.size()));
}

Result<FencingToken> RedisFence::highest(std::string_view resource) {
  if (auto why = fence::validate(resource)) {
    return std::unexpected(*std::move(why));
  }
  // A missing key means that no token has been admitted for this resource.
  const auto key = key_of(resource);
  const auto reply = run(*connection_, {"GET", key});
  if (reply != nullptr && reply->type == REDIS_REPLY_NIL) {
    return FencingToken{};
  }
  if (reply == nullptr || reply->type != REDIS_REPLY_STRING) {
    return std::unexpected(error_of(reply.get()));
  }
  const auto token = fence::token_from(text_of(*reply));
  if (!token) {
    return fail(Errc::invalid_argument, "the key " + key + " does not contain a token");
  }
  return *token;
}

std::string_view RedisFence::lua() noexcept {
  return fence::admit_script;
}

std::string RedisFence::key_of(std::string_view resource) const {
  std::string key = options_.key_prefix;
  // The braces are the hash tag of Redis Cluster: the keys of a caller with the same tag are on the
  // same node, which a script requires.
  key += '{';
  key += resource;
  key += '}';
  return key;
}

FenceResult RedisFence::read(const redisReply* reply, FencingToken token) {
  return read_answer(reply, {.resource = "a script's key", .token = token, .repeated = {}});
}

FenceResult RedisFence::decide(const fence::TokenCheck& check, std::span<const RedisWrite> writes) {
  if (auto why = validate(check)) {
    return not_checked(check, *std::move(why));
  }
  if (auto why = validate(writes)) {
    return not_checked(check, *std::move(why));
  }
  const auto key = key_of(check.resource);
  const auto keys = std::to_string(1 + writes.size());
  const auto token = std::to_string(check.token.get());
  // The keys come first, in the order that write.lua expects: the fence, then one for each write.
  Words words{"EVALSHA", script_, keys, key};
  for (const auto& write : writes) {
    words.emplace_back(write.key);
  }
  words.emplace_back(token);
  words.emplace_back(check.repeated == fence::Repeated::admit ? "again" : "once");
  // Reserved for the whole call, because `words` refers to these texts.
  std::vector<std::string> counts(writes.size());
  for (std::size_t i = 0; i < writes.size(); ++i) {
    counts[i] = std::to_string(writes[i].arguments.size());
    words.emplace_back(writes[i].command);
    words.emplace_back(counts[i]);
    words.insert(words.end(), writes[i].arguments.begin(), writes[i].arguments.end());
  }
  return read_answer(evaluate(*connection_, std::move(words)).get(), check);
}

}  // namespace tenure
