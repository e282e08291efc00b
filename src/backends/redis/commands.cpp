#include "backends/redis/commands.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <variant>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "backends/redis/reply.hpp"
#include "sys/chance.hpp"
#include "sys/parse_number.hpp"

namespace tenure::backends::redis {
namespace {

constexpr std::size_t lease_digits = 16;

using Words = absl::InlinedVector<std::string_view, 20>;

/// Digits of a number, without an allocation.
class Digits {
 public:
  explicit Digits(std::uint64_t number)
      : end_(std::to_chars(text_.data(), text_.data() + text_.size(), number).ptr) {}
  // NOLINTNEXTLINE(google-explicit-constructor): so that it is a word among words.
  operator std::string_view() const {
    return {text_.data(), static_cast<std::size_t>(end_ - text_.data())};
  }

 private:
  std::array<char, 24> text_{};
  char* end_;
};

struct Claim {
  std::string want;
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

Member::Member(std::string_view text) noexcept
    : size_(static_cast<std::uint8_t>(std::min(text.size(), bytes_max))) {
  std::ranges::copy(text.substr(0, size_), text_.begin());
}

Member member_of(const Ask& ask, LeaseId lease, RequestId request) {
  std::array<char, Member::bytes_max> text;  // NOLINT(*-member-init): written before it is read
  constexpr std::string_view digits = "0123456789abcdef";
  auto rest = lease.get();
  for (auto at = lease_digits; at-- > 0; rest >>= 4U) {
    text[at] = digits[rest & 15U];
  }
  auto size = lease_digits;
  if (ask.fairness == Fairness::barging ||
      std::holds_alternative<Permits>(ask.items.front().claim)) {
    text[size++] = '.';
    const auto* const end =
        std::to_chars(text.data() + size, text.data() + text.size(), request.get()).ptr;
    size = static_cast<std::size_t>(end - text.data());
  }
  return Member({text.data(), size});
}

LeaseId lease_of(std::string_view member) {
  const auto digits = member.substr(0, lease_digits);
  return LeaseId{sys::parse_number<std::uint64_t>(digits, 16).value_or(0)};
}

std::string fresh_client() {
  constexpr std::string_view digits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string id;
  for (auto rest = sys::random_id(); id.size() < 10; rest /= digits.size()) {
    id.push_back(digits[rest % digits.size()]);
  }
  return id;
}

Commands::Commands(std::string name_space, std::string client, Reach reach)
    // The scripts know by the '@' that they are in a cluster.
    : name_space_(std::move(name_space)),
      client_((reach == Reach::one_slot ? "@" : "") + std::move(client)),
      reach_(reach),
      slot_tags_(reach == Reach::one_slot ? find_slot_tags(name_space_) : nullptr) {}

std::string Commands::last_token_of(std::string_view key) const {
  const auto tag = slot_tags_ ? std::to_string((*slot_tags_)[slot_of(key)]) : std::string();
  return "{" + name_space_ + ":" + tag + "}:t";
}

std::string Commands::key_of(const Ask& ask) const {
  const auto& name = ask.items.front().name;
  return ask.fairness == Fairness::barging ? name : head_of(name);
}

std::string Commands::label_of(const Ask& ask) const {
  std::string label;
  label.reserve(client_.size() + ask.owner.size() + ask.metadata.size() + 2);
  label.append(client_).append(" ").append(ask.owner).append("\n").append(ask.metadata);
  return label;
}

std::string Commands::head_of(std::string_view name) const {
  std::string head;
  head.reserve(name_space_.size() + name.size() + 3);
  head.append("{").append(name_space_).append(":").append(name).append("}");
  return head;
}

std::string Commands::on_lock(Script script, std::string_view name,
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

std::string Commands::acquire(const AcquireRequest& request, std::chrono::milliseconds ttl) const {
  const auto& ask = *request.ask;
  const auto& name = ask.items.front().name;
  const auto head = head_of(name);
  const auto member = member_of(ask, request.lease, request.request);
  const Digits ttl_ms(static_cast<std::uint64_t>(ttl.count()));
  const auto last_token = last_token_of(key_of(ask));
  if (ask.fairness == Fairness::barging) {
    const auto& sha = text_of(Script::barge).sha;
    return reach_ == Reach::any
               ? encode({"EVALSHA", sha, "3", name, last_token, head, member, ttl_ms})
               : encode({"EVALSHA", sha, "1", name, member, ttl_ms});
  }
  const auto members = head + ":m";
  const auto expiries = head + ":e";
  const auto queue = head + ":q";
  const auto claim = claim_of(ask.items.front());
  const Digits number(request.request.get());
  const auto label = label_of(ask);
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
              ask.again == Again::reenter ? "reenter" : "refuse",
              label};
  if (reach_ == Reach::one_slot) {
    words[2] = "5";
    words.erase(words.begin() + 8);
  }
  return encode(words);
}

std::string Commands::release(const ReleaseRequest& request, std::string_view member) const {
  const auto& item = request.ask->items.front();
  if (request.ask->fairness == Fairness::barging) {
    return encode({"EVALSHA", text_of(Script::unbarge).sha, "1", item.name, member});
  }
  const Digits acquired(request.acquired.get());
  const Digits token(request.token.get());
  std::string head("H ");
  head.append(token).append(" ").append(member).append(".").append(acquired).append(" ");
  return on_lock(Script::release, item.name,
                 {member, acquired, head, token, Digits(request.request.get())});
}

std::string Commands::leave(const Ask& ask, std::string_view member, RequestId request,
                            Found granted) const {
  return on_lock(Script::leave, ask.items.front().name,
                 {member, Digits(request.get()), granted == Found::keep ? "keep" : "drop"});
}

std::string Commands::confirm(const Ask& ask, std::string_view member, RequestId request) const {
  return on_lock(Script::confirm, ask.items.front().name, {member, Digits(request.get())});
}

std::string Commands::remove(const Ask& ask, std::string_view member) const {
  if (ask.fairness == Fairness::barging) {
    return encode({"EVALSHA", text_of(Script::unbarge).sha, "1", ask.items.front().name, member});
  }
  return on_lock(Script::leave, ask.items.front().name, {member, "*", "drop"});
}

std::string Commands::renew(const Ask& ask, std::span<const std::string> words) const {
  const auto& name = ask.items.front().name;
  const auto head = head_of(name);
  const auto members = head + ":m";
  const auto expiries = head + ":e";
  const auto queue = head + ":q";
  const auto last_token = last_token_of(head);
  Words all{"EVALSHA", text_of(Script::renew).sha, "5", head, members, expiries, queue, last_token};
  if (ask.fairness == Fairness::barging) {
    all = {"EVALSHA", text_of(Script::rebarge).sha, "1", name};
  }
  all.insert(all.end(), words.begin(), words.end());
  return encode(all);
}

std::string Commands::look(std::string_view name) const {
  return on_lock(Script::look, name, {});
}

std::string Commands::downgrade(const Ask& ask, std::string_view member, RequestId acquired) const {
  return on_lock(Script::downgrade, ask.items.front().name, {member, Digits(acquired.get())});
}

std::string Commands::holders(std::string_view name, std::size_t most) const {
  return on_lock(Script::holders, name, {Digits(most)});
}

std::string Commands::force(std::string_view name) const {
  return on_lock(Script::force, name, {});
}

}  // namespace tenure::backends::redis
