#include "backends/redis/command_encoder.hpp"

#include <utility>
#include <variant>
#include <vector>

#include "backends/redis/reply.hpp"
#include "sys/parse_number.hpp"
#include "sys/random.hpp"
#include "sys/to_hex.hpp"

namespace tenure::backends::redis {
namespace {

/// Hexadecimal digits of a lease in a member.
constexpr std::size_t lease_digits = 16;

/// What an item asks for, in the form of the scripts' arguments.
struct Claim {
  /// X, S, or P and the number of permits.
  std::string want;
  /// L for a lock, or P and the capacity of a semaphore.
  std::string kind;
};

Claim claim_of(const Item& item) {
  if (const auto* permits = std::get_if<Permits>(&item.claim)) {
    return {.want = "P" + std::to_string(permits->wanted),
            .kind = "P" + std::to_string(permits->capacity)};
  }
  const auto* mode = std::get_if<LockMode>(&item.claim);
  return {.want = mode != nullptr && *mode == LockMode::shared ? "S" : "X", .kind = "L"};
}

}  // namespace

std::string member_of(const AcquireSpec& spec, LeaseId lease, RequestId request) {
  auto member = sys::to_hex(lease.get(), lease_digits);
  if (spec.fairness == Fairness::barging ||
      std::holds_alternative<Permits>(spec.items.front().claim)) {
    member += '.' + std::to_string(request.get());
  }
  return member;
}

LeaseId lease_of(std::string_view member) {
  const auto digits = member.substr(0, lease_digits);
  return LeaseId{sys::parse_number<std::uint64_t>(digits, 16).value_or(0)};
}

std::string new_client_id() {
  constexpr std::string_view digits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string id;
  for (auto rest = sys::random_id(); id.size() < 10; rest /= digits.size()) {
    id.push_back(digits[rest % digits.size()]);
  }
  return id;
}

CommandEncoder::CommandEncoder(std::string name_space, std::string client, KeyScope scope)
    // The scripts recognise a cluster by the '@' in the client id.
    : name_space_(std::move(name_space)),
      client_((scope == KeyScope::one_slot ? "@" : "") + std::move(client)),
      scope_(scope),
      slot_tags_(scope == KeyScope::one_slot ? find_slot_tags(name_space_) : nullptr) {}

std::string CommandEncoder::last_token_of(std::string_view key) const {
  const auto tag = slot_tags_ ? std::to_string((*slot_tags_)[slot_of(key)]) : std::string();
  return "{" + name_space_ + ":" + tag + "}:t";
}

std::string CommandEncoder::key_of(const AcquireSpec& spec) const {
  const auto& name = spec.items.front().name;
  return spec.fairness == Fairness::barging ? name : head_of(name);
}

std::string CommandEncoder::label_of(const AcquireSpec& spec) const {
  return client_ + ' ' + spec.owner + '\n' + spec.metadata;
}

std::string CommandEncoder::head_of(std::string_view name) const {
  std::string head;
  head.reserve(name_space_.size() + name.size() + 3);
  head.append("{").append(name_space_).append(":").append(name).append("}");
  return head;
}

std::string CommandEncoder::on_lock(Script script, std::string_view name,
                                    std::span<const std::string_view> words, PlainKey plain) const {
  const auto head = head_of(name);
  const auto members = head + ":m";
  const auto expiries = head + ":e";
  const auto queue = head + ":q";
  const auto last_token = last_token_of(head);
  std::vector<std::string_view> all{"EVALSHA", text_of(script).sha, "5", head, members, expiries,
                                    queue,     last_token};
  if (plain == PlainKey::include) {
    all[2] = "6";
    all.push_back(name);
  }
  all.insert(all.end(), words.begin(), words.end());
  return encode_command(all);
}

std::string CommandEncoder::release_barging(std::string_view name, std::string_view member) {
  return encode_command({"EVALSHA", text_of(Script::release_barging).sha, "1", name, member});
}

std::string CommandEncoder::acquire(const AcquireRequest& request,
                                    std::chrono::milliseconds ttl) const {
  const auto& spec = *request.spec;
  const auto& name = spec.items.front().name;
  const auto member = member_of(spec, request.lease, request.request);
  const auto ttl_ms = std::to_string(ttl.count());
  if (spec.fairness == Fairness::barging) {
    const auto& sha = text_of(Script::acquire_barging).sha;
    return scope_ == KeyScope::any ? encode_command({"EVALSHA", sha, "3", name, last_token_of(name),
                                                     head_of(name), member, ttl_ms})
                                   : encode_command({"EVALSHA", sha, "1", name, member, ttl_ms});
  }
  const auto claim = claim_of(spec.items.front());
  return on_lock(
      Script::acquire, name,
      {member, std::to_string(request.request.get()), claim.want, claim.kind, ttl_ms,
       request.queue == Queue::wait ? "wait" : "skip",
       spec.self_conflict == SelfConflict::reenter ? "reenter" : "refuse", label_of(spec)},
      // In a cluster the plain key is in another slot.
      scope_ == KeyScope::any ? PlainKey::include : PlainKey::omit);
}

std::string CommandEncoder::release(const ReleaseRequest& request, std::string_view member) const {
  const auto& name = request.spec->items.front().name;
  if (request.spec->fairness == Fairness::barging) {
    return release_barging(name, member);
  }
  const auto acquired = std::to_string(request.acquired.get());
  const auto token = std::to_string(request.token.get());
  const auto head = "H " + token + ' ' + std::string(member) + '.' + acquired + ' ';
  return on_lock(Script::release, name,
                 {member, acquired, head, token, std::to_string(request.request.get())});
}

std::string CommandEncoder::leave(const AcquireSpec& spec, std::string_view member,
                                  RequestId request, IfGranted if_granted) const {
  return on_lock(
      Script::leave, spec.items.front().name,
      {member, std::to_string(request.get()), if_granted == IfGranted::keep ? "keep" : "drop"});
}

std::string CommandEncoder::confirm(const AcquireSpec& spec, std::string_view member,
                                    RequestId request) const {
  return on_lock(Script::confirm, spec.items.front().name, {member, std::to_string(request.get())});
}

std::string CommandEncoder::remove(const AcquireSpec& spec, std::string_view member) const {
  const auto& name = spec.items.front().name;
  return spec.fairness == Fairness::barging ? release_barging(name, member)
                                            : on_lock(Script::leave, name, {member, "*", "drop"});
}

std::string CommandEncoder::renew(const AcquireSpec& spec,
                                  std::span<const std::string> words) const {
  const auto& name = spec.items.front().name;
  std::vector<std::string_view> all(words.begin(), words.end());
  if (spec.fairness != Fairness::barging) {
    return on_lock(Script::renew, name, all);
  }
  all.insert(all.begin(), {"EVALSHA", text_of(Script::renew_barging).sha, "1", name});
  return encode_command(all);
}

std::string CommandEncoder::expire(std::string_view name) const {
  return on_lock(Script::expire, name, {});
}

std::string CommandEncoder::downgrade(const AcquireSpec& spec, std::string_view member,
                                      RequestId acquired) const {
  return on_lock(Script::downgrade, spec.items.front().name,
                 {member, std::to_string(acquired.get())});
}

std::string CommandEncoder::holders(std::string_view name, std::size_t most) const {
  return on_lock(Script::holders, name, {std::to_string(most)});
}

std::string CommandEncoder::force_release(std::string_view name) const {
  return on_lock(Script::force_release, name, {});
}

}  // namespace tenure::backends::redis
