#include "backends/redlock/command_encoder.hpp"

#include <utility>

#include "backends/redis/reply.hpp"
#include "sys/to_hex.hpp"

namespace tenure::backends::redlock {
namespace {

/// Width of a time in µs since 1970, which suffices until the year 2286. A fixed width lets
/// set_not_after() replace it in an encoded command.
constexpr std::size_t time_digits = 16;
/// Time for which a released lock keeps its last token. The scripts use the same time.
constexpr std::chrono::milliseconds token_memory{60'000};
/// Placeholder for the deadline: none.
constexpr std::string_view no_time = "0000000000000000";

using redis::encode_command;

/// The lock is a barging one: a plain key, as other Redlock libraries use it.
bool is_plain(const AcquireSpec& spec) {
  return spec.fairness == Fairness::barging;
}

/// Beginning of the head of a lock that has a vote, while no client waits.
std::string head_begin(std::string_view member, const std::string& ttl_ms,
                       const std::string& token) {
  return "R " + std::string(member) + ' ' + ttl_ms + " 0 " + token + " - ";
}

/// Digest of a script.
const std::string& sha_of(Script script) {
  return text_of(script).sha;
}

}  // namespace

std::string member_of(LeaseId lease, RequestId request) {
  return sys::to_hex(lease.get(), 16) + '.' + std::to_string(request.get());
}

CommandEncoder::CommandEncoder(std::string name_space, std::string client)
    : client_(std::move(client)),
      channels_(name_space + ":wake:"),
      keys_(std::move(name_space), client_) {}

std::string CommandEncoder::vote(const Vote& vote) const {
  const auto& name = vote.spec.items.front().name;
  const auto head = keys_.head_of(name);
  const auto ttl = std::to_string(vote.ttl.count());
  if (is_plain(vote.spec)) {
    return encode_command(
        {"EVALSHA", sha_of(Script::vote_plain), "2", name, head, vote.member, ttl, no_time});
  }
  const auto token = std::to_string(vote.token);
  const auto life = std::to_string((vote.ttl + token_memory).count());
  const auto value = head_begin(vote.member, ttl, token) + client_ + ' ' + vote.spec.owner + '\n' +
                     vote.spec.metadata;
  if (!vote.waits) {
    return encode_command(
        {"EVALSHA", sha_of(Script::vote), "2", head, name, value, token, life, "-", no_time});
  }
  return encode_command({"EVALSHA", sha_of(Script::vote), "3", head, name, head + ":w", value,
                         token, life, (vote.was_refused ? "*" : "+") + client_, no_time});
}

void CommandEncoder::set_not_after(std::string& vote, std::int64_t micros) {
  std::string digits(time_digits, '0');
  const auto text = std::to_string(micros);
  if (micros > 0 && text.size() <= time_digits) {
    digits.replace(time_digits - text.size(), text.size(), text);
  }
  // The deadline is the last word; two bytes of line end follow it.
  vote.replace(vote.size() - time_digits - 2, time_digits, digits);
}

std::string CommandEncoder::write_back(const AcquireSpec& spec, std::string_view member,
                                       FencingToken token) const {
  return encode_command({"EVALSHA", sha_of(Script::write_back), "1",
                         keys_.head_of(spec.items.front().name), member,
                         std::to_string(token.get())});
}

std::string CommandEncoder::release(const Release& release) const {
  const auto token = std::to_string(release.token.get());
  const auto begin = head_begin(release.member, std::to_string(release.ttl.count()), token);
  return withdraw_vote(release.spec, release.member, {token, begin}, release.waits);
}

std::string CommandEncoder::withdraw(const AcquireSpec& spec, std::string_view member,
                                     Waits waits) const {
  return withdraw_vote(spec, member, {.token = "0", .prefix = "-"}, waits);
}

std::string CommandEncoder::withdraw_vote(const AcquireSpec& spec, std::string_view member,
                                          const ExpectedHead& expected, Waits waits) const {
  const auto& name = spec.items.front().name;
  if (is_plain(spec)) {
    return encode_command({"EVALSHA", sha_of(Script::withdraw_vote_plain), "1", name, member});
  }
  const auto head = keys_.head_of(name);
  return encode_command({"EVALSHA", sha_of(Script::withdraw_vote), "2", head, head + ":w",
                         "T " + std::string(expected.token) + ' ' + std::string(member),
                         expected.prefix, waits == Waits::no_longer ? client_ : "-"});
}

std::string CommandEncoder::extend(const AcquireSpec& spec, std::string_view member,
                                   std::chrono::milliseconds ttl, RequestId change) const {
  const auto& name = spec.items.front().name;
  const auto script = is_plain(spec) ? Script::extend_plain : Script::extend;
  return encode_command({"EVALSHA", sha_of(script), "1",
                         is_plain(spec) ? name : keys_.head_of(name), member,
                         std::to_string(ttl.count()), std::to_string(change.get())});
}

std::string CommandEncoder::holder(std::string_view name) const {
  return encode_command({"EVALSHA", sha_of(Script::holder), "1", keys_.head_of(name)});
}

std::string CommandEncoder::force_release(std::string_view name) const {
  return encode_command(
      {"EVALSHA", sha_of(Script::force_release), "1", keys_.head_of(name), channels_, name});
}

}  // namespace tenure::backends::redlock
