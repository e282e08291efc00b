#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenure::server::auth {

/// Action on a lock name.
enum class Verb : std::uint8_t { read = 1, lock = 2, admin = 3 };
[[nodiscard]] std::string_view to_string(Verb verb) noexcept;

/// Right on the names with a prefix. Each level includes the levels before it.
enum class Level : std::uint8_t { none, read, lock, admin };
[[nodiscard]] std::string_view to_string(Level level) noexcept;
[[nodiscard]] std::optional<Level> level_from(std::string_view word) noexcept;

[[nodiscard]] constexpr bool covers(Level level, Verb verb) noexcept {
  return static_cast<std::uint8_t>(level) >= static_cast<std::uint8_t>(verb);
}

/// Right of a user on a prefix. Prefixes are byte strings: "app" is also a prefix of "apple/1".
struct Rule {
  std::string prefix{};
  Level level = Level::none;

  friend bool operator==(const Rule&, const Rule&) = default;
};

/// Rules of one user. The rule with the longest matching prefix decides; without a matching rule
/// the action is denied. Immutable; thread safe.
///
/// A rule with level `none` takes names out of a wider rule. Lookups cost a binary search plus the
/// depth of nested prefixes.
class Rights {
 public:
  Rights() = default;
  /// The first of several rules for the same prefix applies.
  explicit Rights(std::vector<Rule> rules);

  [[nodiscard]] bool may(Verb verb, std::string_view name) const {
    const auto* rule = rule_for(name);
    return rule != nullptr && covers(rule->level, verb);
  }
  /// Rule with the longest prefix of `name`; null: none.
  [[nodiscard]] const Rule* rule_for(std::string_view name) const;
  /// Whether the action is allowed for at least one name with this prefix.
  [[nodiscard]] bool may_any(Verb verb, std::string_view prefix = {}) const;
  /// Whether the action is allowed for all names with this prefix.
  [[nodiscard]] bool may_all(Verb verb, std::string_view prefix = {}) const;
  /// First name after `name`, in byte order, at which another rule can apply; nullopt: there is
  /// none. Lets a listing skip unreadable ranges instead of visiting each lock.
  [[nodiscard]] std::optional<std::string> skip(std::string_view name) const;

  /// Sorted by prefix.
  [[nodiscard]] const std::vector<Rule>& rules() const noexcept { return rules_; }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  std::vector<Rule> rules_;
  /// For each rule, the index of the rule with the longest proper prefix of its prefix, or `none`.
  std::vector<std::size_t> parents_;
};

}  // namespace tenure::server::auth
