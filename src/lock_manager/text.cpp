#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>
#include <variant>
#include <vector>

#include <tenure/lock_manager/snapshot.hpp>
#include <tenure/lock_manager/target.hpp>
#include <tenure/lock_manager/text.hpp>

namespace tenure {

namespace {

constexpr std::array all_victim_policies{
    VictimPolicy::youngest,   VictimPolicy::oldest,     VictimPolicy::fewest_locks,
    VictimPolicy::most_locks, VictimPolicy::least_work, VictimPolicy::lowest_priority,
};

constexpr std::array all_codes{
    Errc::would_block, Errc::timed_out,         Errc::cancelled,          Errc::deadlock,
    Errc::not_held,    Errc::invalid_argument,  Errc::resource_exhausted, Errc::lease_lost,
    Errc::unavailable, Errc::permission_denied, Errc::unsupported,
};

/// Quotes a text: `\xNN` for bytes that are not printable, a backslash before quotes and
/// backslashes. Injective, so that distinct names never print alike.
std::string quoted(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result = "\"";
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte > 0x7E) {
      result += "\\x";
      result += digits[byte / 16];
      result += digits[byte % 16];
      continue;
    }
    if (character == '"' || character == '\\') {
      result += '\\';
    }
    result += character;
  }
  return result + '"';
}

std::unexpected<Error> not_understood(std::string_view text, std::string_view expected) {
  constexpr std::size_t shown_bytes_max = 80;
  std::string detail = quoted(text.substr(0, shown_bytes_max));
  detail += text.size() > shown_bytes_max ? "... is not " : " is not ";
  detail += expected;
  return fail(Errc::invalid_argument, std::move(detail));
}

/// Parses a value that to_string() printed.
template <class Value>
Result<Value> parse_one_of(std::span<const Value> values, std::string_view text,
                           std::string_view kind) {
  const auto found = std::ranges::find(values, text, [](Value value) { return to_string(value); });
  if (found != values.end()) {
    return *found;
  }
  std::string expected(kind);
  std::string_view separator = ": ";
  for (const Value value : values) {
    expected += separator;
    expected += to_string(value);
    separator = ", ";
  }
  return not_understood(text, expected);
}

/// Parses a number at the front of `text`, and removes it.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) {
    return std::nullopt;
  }
  const auto length = static_cast<std::size_t>(end - text.data());
  if (length > 1 && text.front() == '0') {
    return std::nullopt;
  }
  text.remove_prefix(length);
  return number;
}

/// Removes a prefix; returns false if the text has another one.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) {
    return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

/// Parses a decimal id; rejects leading zeros, so that each id has one text.
template <class Id>
Result<Id> parse_id(std::string_view text, std::string_view expected) {
  std::string_view rest = text;
  const auto number = take_number(rest);
  if (!number || !rest.empty()) {
    return not_understood(text, expected);
  }
  return Id(*number);
}

/// Parses `[1, 9]`; empty if the text is anything else, or the first key is the greater one.
std::optional<KeyRange> key_range_of(std::string_view text) {
  if (!take(text, "[")) {
    return std::nullopt;
  }
  const auto start = take_number(text);
  if (!start || !take(text, ", ")) {
    return std::nullopt;
  }
  const auto end = take_number(text);
  if (!end || text != "]") {
    return std::nullopt;
  }
  return KeyRange::of(*start, *end);
}

}  // namespace

template <>
Result<LockMode> parse<LockMode>(std::string_view text) {
  return parse_one_of<LockMode>(all_lock_modes, text, "a lock mode");
}

template <>
Result<VictimPolicy> parse<VictimPolicy>(std::string_view text) {
  return parse_one_of<VictimPolicy>(all_victim_policies, text, "a victim policy");
}

template <>
Result<Errc> parse<Errc>(std::string_view text) {
  return parse_one_of<Errc>(all_codes, text, "an error code");
}

template <>
Result<KeyRange> parse<KeyRange>(std::string_view text) {
  if (const auto range = key_range_of(text)) {
    return *range;
  }
  return not_understood(text, "a range of keys such as [1, 9], first key first");
}

template <>
Result<TxnId> parse<TxnId>(std::string_view text) {
  return parse_id<TxnId>(text, "a transaction: a number below 2^64");
}

template <>
Result<ResourceId> parse<ResourceId>(std::string_view text) {
  return parse_id<ResourceId>(text, "a resource: a number below 2^64");
}

std::string to_string(TxnId txn) {
  return std::to_string(txn.get());
}

std::string to_string(ResourceId resource) {
  return std::to_string(resource.get());
}

std::string to_string(const KeyRange& range) {
  // Not `"[" + ...`: g++ 12 warns wrongly about an overlap (-Wrestrict), which -Werror makes an
  // error.
  std::string text("[");
  text += std::to_string(range.start()) + ", " + std::to_string(range.end());
  return text += "]";
}

std::string_view to_string(VictimPolicy policy) noexcept {
  switch (policy) {
    case VictimPolicy::youngest: return "youngest";
    case VictimPolicy::oldest: return "oldest";
    case VictimPolicy::fewest_locks: return "fewest_locks";
    case VictimPolicy::most_locks: return "most_locks";
    case VictimPolicy::least_work: return "least_work";
    case VictimPolicy::lowest_priority: return "lowest_priority";
  }
  return "unknown";
}

std::string to_string(const DeadlockReport& report) {
  std::string text;
  const std::vector<DeadlockMember>& members = report.members;
  for (std::size_t index = 0; index < members.size(); ++index) {
    const DeadlockMember& next = members[(index + 1) % members.size()];
    text += index == 0 ? to_string(members[index].txn) + " waits" : ", which waits";
    if (!members[index].waits_for.empty()) {
      text += " for " + members[index].waits_for;
    }
    text += ", blocked by " + to_string(next.txn);
  }
  text += members.empty() ? "victim: " : "; victim: ";
  return text + to_string(report.deadlock.victim);
}

namespace {

/// Visitor: prints a target so that different targets have different texts.
struct TargetText {
  std::string operator()(ResourceId resource) const { return "resource " + to_string(resource); }
  std::string operator()(std::string_view name) const { return quoted(name); }
  std::string operator()(const KeysOf& keys) const {
    return "keys " + to_string(keys.range) + " of space " + to_string(keys.space);
  }
  std::string operator()(const BytesOf& keys) const {
    const auto& end = keys.range.end();
    return "keys [" + quoted(keys.range.start()) + ", " + (end ? quoted(*end) : "∞") +
           ") of space " + to_string(keys.space);
  }
};

/// Cells of one line of a snapshot.
using Row = std::array<std::string, 6>;

Row row_of(const LockView& lock, const HolderView& holder) {
  return {lock.target,
          to_string(holder.txn),
          std::string(to_string(holder.mode)),
          "held",
          std::to_string(holder.count),
          std::to_string(holder.transaction_for.count()) + " ms"};
}

Row row_of(const LockView& lock, const WaiterView& waiter) {
  return {lock.target,
          to_string(waiter.txn),
          std::string(to_string(waiter.mode)),
          waiter.upgrade ? "waits (upgrade)" : "waits",
          "-",
          std::to_string(waiter.waited.count()) + " us"};
}

/// Width on a terminal: number of bytes without UTF-8 continuation bytes.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

/// Prints rows with columns of equal width. The last column has no padding.
std::string aligned(const std::vector<Row>& rows) {
  std::array<std::size_t, std::tuple_size_v<Row>> widths = {};
  for (const Row& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], width_of(row[column]));
    }
  }
  std::string table;
  for (const Row& row : rows) {
    for (std::size_t column = 0; column + 1 < row.size(); ++column) {
      table += row[column];
      table.append(widths[column] - width_of(row[column]) + 2, ' ');
    }
    table += row.back() + "\n";
  }
  return table;
}

}  // namespace

std::string to_string(const Target& target) {
  return std::visit(TargetText(), target);
}

std::string to_string(const LockSnapshot& snapshot) {
  if (snapshot.locks.empty()) {
    return "no locks\n";
  }
  std::vector<Row> rows{{"target", "txn", "mode", "state", "count", "time"}};
  for (const LockView& lock : snapshot.locks) {
    for (const HolderView& holder : lock.holders) {
      rows.push_back(row_of(lock, holder));
    }
    for (const WaiterView& waiter : lock.waiters) {
      rows.push_back(row_of(lock, waiter));
    }
  }
  return aligned(rows);
}

}  // namespace tenure
