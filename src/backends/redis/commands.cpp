#include "backends/redis/commands.hpp"

#include <array>
#include <charconv>
#include <utility>
#include <variant>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "backends/redis/reply.hpp"
#include "sys/chance.hpp"

namespace tenure::backends::redis {
namespace {

constexpr std::size_t lease_digits = 16;
/// A head outlives its holder's time by this, as the scripts have it.
constexpr std::chrono::milliseconds memory{60'000};

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
  std::array<char, 24> text_;  // NOLINT(*-member-init): written before it is read
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

/// How the head begins of a lock with this one holder, up to the token.
std::string head_before_token(const Item& item, std::string_view member) {
  const auto claim = claim_of(item);
  std::string head = "H ";
  return head.append(claim.kind).append(" ").append(member).append(" ").append(claim.want) + " ";
}

/// What is said briefly about a lock, with its head so far.
Errand::Brief brief_about(char kind, std::initializer_list<std::string_view> head) {
  Errand::Brief brief{.kind = kind, .keys = 1};
  brief.wire.reserve(256);
  append_word(brief.wire, head);
  std::size_t size = 0;
  for (const auto piece : head) {
    size += piece.size();
  }
  const auto line_end = brief.wire.size() - 2;
  brief.about =
      std::hash<std::string_view>{}(std::string_view(brief.wire).substr(line_end - size, size));
  return brief;
}

}  // namespace

std::string member_of(const Ask& ask, LeaseId lease, RequestId request) {
  std::string member(lease_digits, '0');
  constexpr std::string_view digits = "0123456789abcdef";
  auto rest = lease.get();
  for (auto at = lease_digits; at-- > 0; rest >>= 4U) {
    member[at] = digits[rest & 15U];
  }
  const bool is_own =
      ask.fairness == Fairness::barging || std::holds_alternative<Permits>(ask.items.front().claim);
  return is_own ? member + "." + std::to_string(request.get()) : member;
}

LeaseId lease_of(std::string_view member) {
  std::uint64_t number = 0;
  const auto text = member.substr(0, lease_digits);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return error == std::errc{} && end == text.data() + text.size() ? LeaseId{number} : LeaseId{};
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
      reach_(reach) {}

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
  Words all{"EVALSHA", text_of(script).sha, "4", head, members, expiries, queue};
  all.insert(all.end(), words.begin(), words.end());
  return encode(all);
}

std::string Commands::acquire(const AcquireRequest& request, std::chrono::milliseconds ttl) const {
  const auto& ask = *request.ask;
  const auto& name = ask.items.front().name;
  const auto head = head_of(name);
  const auto member = member_of(ask, request.lease, request.request);
  const Digits ttl_ms(static_cast<std::uint64_t>(ttl.count()));
  if (ask.fairness == Fairness::barging) {
    return reach_ == Reach::any
               ? encode({"EVALSHA", text_of(Script::barge).sha, "2", name, head, member, ttl_ms})
               : encode({"EVALSHA", text_of(Script::barge).sha, "1", name, member, ttl_ms});
  }
  const auto members = head + ":m";
  const auto expiries = head + ":e";
  const auto queue = head + ":q";
  const auto claim = claim_of(ask.items.front());
  const Digits number(request.request.get());
  const auto label = label_of(ask);
  Words words{"EVALSHA",
              text_of(Script::acquire).sha,
              "5",
              head,
              members,
              expiries,
              queue,
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
    words[2] = "4";
    words.erase(words.begin() + 7);
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
  auto head = head_before_token(item, member);
  head.append(token).append(" ").append(acquired).append(" ");
  return on_lock(Script::release, item.name,
                 {member, acquired, head, token, Digits(request.request.get())});
}

std::optional<Errand::Brief> Commands::acquire_briefly(const AcquireRequest& request,
                                                       std::string_view member,
                                                       std::chrono::milliseconds ttl) const {
  const auto& ask = *request.ask;
  if (reach_ == Reach::one_slot || ask.fairness == Fairness::barging) {
    return std::nullopt;
  }
  const auto& item = ask.items.front();
  const auto claim = claim_of(item);
  const Digits number(request.request.get());
  auto brief = brief_about('a', {"{", name_space_, ":", item.name, "}"});
  auto& wire = brief.wire;
  append_word(wire, item.name);
  ++brief.keys;
  brief.keys_bytes = wire.size();
  append_word(wire, Digits(static_cast<std::uint64_t>((ttl + memory).count())));
  append_word(wire, {"H ", claim.kind, " ", member, " ", claim.want, " "});
  append_word(wire, {" ", number, " ", client_, " ", ask.owner, "\n", ask.metadata});
  brief.words = 3;
  return brief;
}

std::optional<Errand::Brief> Commands::release_briefly(const ReleaseRequest& request,
                                                       std::string_view member) const {
  if (reach_ == Reach::one_slot || request.ask->fairness == Fairness::barging) {
    return std::nullopt;
  }
  const auto& item = request.ask->items.front();
  const auto claim = claim_of(item);
  const Digits acquired(request.acquired.get());
  const Digits token(request.token.get());
  auto brief = brief_about('r', {"{", name_space_, ":", item.name, "}"});
  auto& wire = brief.wire;
  brief.keys_bytes = wire.size();
  append_word(wire,
              {"H ", claim.kind, " ", member, " ", claim.want, " ", token, " ", acquired, " "});
  append_word(wire, {"T ", token, " ", member, ".", acquired});
  brief.words = 2;
  return brief;
}

std::string Commands::leave(const Ask& ask, std::string_view member, RequestId request,
                            Found granted) const {
  return on_lock(Script::leave, ask.items.front().name,
                 {member, Digits(request.get()), granted == Found::keep ? "keep" : "drop"});
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
  Words all{"EVALSHA", text_of(Script::renew).sha, "4", head, members, expiries, queue};
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
