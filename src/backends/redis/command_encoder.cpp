#include "backends/redis/command_encoder.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <variant>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "backends/redis/reply.hpp"
#include "sys/parse_number.hpp"
#include "sys/random.hpp"

namespace tenure::backends::redis {
namespace {

/// Hexadecimal digits of a lease in a member id.
constexpr std::size_t lease_digits = 16;

/// Words of a command; the inlined capacity fits every script call with fixed arguments.
using Words = absl::InlinedVector<std::string_view, 20>;

/// Decimal digits of a number, without allocation.
class Digits {
 public:
  explicit Digits(std::uint64_t number)
      : end_(std::to_chars(text_.data(), text_.data() + text_.size(), number).ptr) {}
  // NOLINTNEXTLINE(google-explicit-constructor): so that it is a word among words.
  operator std::string_view() const {
    return {text_.data(), static_cast<std::size_t>(end_ - text_.data())};
  }

 private:
  /// Digits; 20 suffice for 64 bits.
  std::array<char, 24> text_{};
  /// End of the digits.
  char* end_;
};

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

/// Encodes a command with one allocation: 16 bytes for the header of the array, and up to 10 for
/// the header and line ends of each word.
std::string encode(const Words& words) {
  std::string command;
  std::size_t bytes = 16;
  for (const auto word : words) {
    bytes += word.size() + 10;
  }
  command.reserve(bytes);
  append_command(command, words);
  return command;
}

}  // namespace

MemberId::MemberId(std::string_view text) noexcept
    : size_(static_cast<std::uint8_t>(std::min(text.size(), bytes_max))) {
  std::ranges::copy(text.substr(0, size_), text_.begin());
}

MemberId member_of(const AcquireSpec& spec, LeaseId lease, RequestId request) {
  std::array<char, MemberId::bytes_max> text;  // NOLINT(*-member-init): written before it is read
  constexpr std::string_view digits = "0123456789abcdef";
  auto rest = lease.get();
  for (auto at = lease_digits; at-- > 0; rest >>= 4U) {
    text[at] = digits[rest & 15U];
  }
  auto size = lease_digits;
  if (spec.fairness == Fairness::barging ||
      std::holds_alternative<Permits>(spec.items.front().claim)) {
    text[size++] = '.';
    const auto* const end =
        std::to_chars(text.data() + size, text.data() + text.size(), request.get()).ptr;
    size = static_cast<std::size_t>(end - text.data());
  }
  return MemberId({text.data(), size});
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
  std::string label;
  label.reserve(client_.size() + spec.owner.size() + spec.metadata.size() + 2);
  label.append(client_).append(" ").append(spec.owner).append("\n").append(spec.metadata);
  return label;
}

std::string CommandEncoder::head_of(std::string_view name) const {
  std::string head;
  head.reserve(name_space_.size() + name.size() + 3);
  head.append("{").append(name_space_).append(":").append(name).append("}");
  return head;
}

std::string CommandEncoder::on_lock(Script script, std::string_view name,
                                    std::initializer_list<std::string_view> words) const {
  const auto head = head_of(name);
  const auto members = head + ":m";
  const auto expiries = head + ":e";
  const auto queue = head + ":q";
  const auto last_token = last_token_of(head);
  Words all{"EVALSHA", text_of(script).sha, "5", head, members, expiries, queue, last_token};
  all.insert(all.end(), words.begin(), words.end());
  return encode(all);
}

std::string CommandEncoder::acquire(const AcquireRequest& request,
                                    std::chrono::milliseconds ttl) const {
  const auto& spec = *request.spec;
  const auto& name = spec.items.front().name;
  const auto head = head_of(name);
  const auto member = member_of(spec, request.lease, request.request);
  const Digits ttl_ms(static_cast<std::uint64_t>(ttl.count()));
  const auto last_token = last_token_of(key_of(spec));
  if (spec.fairness == Fairness::barging) {
    const auto& sha = text_of(Script::acquire_barging).sha;
    return scope_ == KeyScope::any
               ? encode({"EVALSHA", sha, "3", name, last_token, head, member, ttl_ms})
               : encode({"EVALSHA", sha, "1", name, member, ttl_ms});
  }
  const auto members = head + ":m";
  const auto expiries = head + ":e";
  const auto queue = head + ":q";
  const auto claim = claim_of(spec.items.front());
  const Digits number(request.request.get());
  const auto label = label_of(spec);
  Words words{"EVALSHA",
              text_of(Script::acquire).sha,
              "6",
              head,
              members,
              expiries,
              queue,
              last_token,
              name,
              member,
              number,
              claim.want,
              claim.kind,
              ttl_ms,
              request.queue == Queue::wait ? "wait" : "skip",
              spec.self_conflict == SelfConflict::reenter ? "reenter" : "refuse",
              label};
  // Without the plain key, which is in another slot.
  if (scope_ == KeyScope::one_slot) {
    words[2] = "5";
    words.erase(words.begin() + 8);
  }
  return encode(words);
}

std::string CommandEncoder::release(const ReleaseRequest& request, std::string_view member) const {
  const auto& item = request.spec->items.front();
  if (request.spec->fairness == Fairness::barging) {
    return encode({"EVALSHA", text_of(Script::release_barging).sha, "1", item.name, member});
  }
  const Digits acquired(request.acquired.get());
  const Digits token(request.token.get());
  std::string head("H ");
  head.append(token).append(" ").append(member).append(".").append(acquired).append(" ");
  return on_lock(Script::release, item.name,
                 {member, acquired, head, token, Digits(request.request.get())});
}

std::string CommandEncoder::leave(const AcquireSpec& spec, std::string_view member,
                                  RequestId request, IfGranted if_granted) const {
  return on_lock(Script::leave, spec.items.front().name,
                 {member, Digits(request.get()), if_granted == IfGranted::keep ? "keep" : "drop"});
}

std::string CommandEncoder::confirm(const AcquireSpec& spec, std::string_view member,
                                    RequestId request) const {
  return on_lock(Script::confirm, spec.items.front().name, {member, Digits(request.get())});
}

std::string CommandEncoder::remove(const AcquireSpec& spec, std::string_view member) const {
  if (spec.fairness == Fairness::barging) {
    return encode(
        {"EVALSHA", text_of(Script::release_barging).sha, "1", spec.items.front().name, member});
  }
  return on_lock(Script::leave, spec.items.front().name, {member, "*", "drop"});
}

std::string CommandEncoder::renew(const AcquireSpec& spec,
                                  std::span<const std::string> words) const {
  const auto& name = spec.items.front().name;
  const auto head = head_of(name);
  const auto members = head + ":m";
  const auto expiries = head + ":e";
  const auto queue = head + ":q";
  const auto last_token = last_token_of(head);
  Words all{"EVALSHA", text_of(Script::renew).sha, "5", head, members, expiries, queue, last_token};
  if (spec.fairness == Fairness::barging) {
    all = {"EVALSHA", text_of(Script::renew_barging).sha, "1", name};
  }
  all.insert(all.end(), words.begin(), words.end());
  return encode(all);
}

std::string CommandEncoder::expire(std::string_view name) const {
  return on_lock(Script::expire, name, {});
}

std::string CommandEncoder::downgrade(const AcquireSpec& spec, std::string_view member,
                                      RequestId acquired) const {
  return on_lock(Script::downgrade, spec.items.front().name, {member, Digits(acquired.get())});
}

std::string CommandEncoder::holders(std::string_view name, std::size_t most) const {
  return on_lock(Script::holders, name, {Digits(most)});
}

std::string CommandEncoder::force_release(std::string_view name) const {
  return on_lock(Script::force_release, name, {});
}

}  // namespace tenure::backends::redis
