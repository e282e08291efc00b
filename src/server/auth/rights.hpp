#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenure::server::auth {

/// What is done with a name.
enum class Verb : std::uint8_t { read = 1, lock = 2, admin = 3 };
[[nodiscard]] std::string_view to_string(Verb verb) noexcept;

/// What somebody may do with the names under a prefix. Each includes those before it.
enum class Level : std::uint8_t { none, read, lock, admin };
[[nodiscard]] std::string_view to_string(Level level) noexcept;
[[nodiscard]] std::optional<Level> level_from(std::string_view word) noexcept;

[[nodiscard]] constexpr bool covers(Level level, Verb verb) noexcept {
  return static_cast<std::uint8_t>(level) >= static_cast<std::uint8_t>(verb);
}

/// One line of the rights of a user. A prefix is bytes: "app" is also a prefix of "apple/1".
struct Rule {
  std::string prefix{};
  Level level = Level::none;

  friend bool operator==(const Rule&, const Rule&) = default;
};

/// What one user may do: for every name the rule with the longest prefix of it decides; without one
/// nothing is allowed. A function of its rules alone. Thread safe.
class Rights {
 public:
  Rights() = default;
  /// Of several rules for one prefix the first counts.
  explicit Rights(std::vector<Rule> rules);

  [[nodiscard]] bool may(Verb verb, std::string_view name) const {
    const auto* rule = rule_for(name);
    return rule != nullptr && covers(rule->level, verb);
  }
  /// The one that decides; null: none does.
  [[nodiscard]] const Rule* rule_for(std::string_view name) const;
  /// Is there any name with this prefix for which it may?
  [[nodiscard]] bool may_somewhere(Verb verb, std::string_view prefix = {}) const;
  /// May it for all names with this prefix?
  [[nodiscard]] bool may_everywhere(Verb verb, std::string_view prefix = {}) const;
  /// Behind a name for which it may not: the first one in the order of bytes at which that could be
  /// different. Nothing: there is none. So that a walk over many names costs what it may see.
  [[nodiscard]] std::optional<std::string> skip(std::string_view name) const;

  /// By prefix.
  [[nodiscard]] const std::vector<Rule>& rules() const noexcept { return rules_; }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  std::vector<Rule> rules_;
  /// For each rule: the one with the longest other prefix of its prefix, or `none`.
  std::vector<std::size_t> parents_;
};

}  // namespace tenure::server::auth
