#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "server/config/config.hpp"

namespace tenure::server {

/// How a value is written. In TOML, counts are integers, toggles booleans, and all others strings;
/// sizes may be either.
enum class ValueType : std::uint8_t { toggle, count, size, duration, text };

/// One thing that can be set: in the file by its key, on the command line by its flag.
struct Setting {
  std::string_view key;   ///< `section.name`
  std::string_view help;  ///< One sentence for people.
  ValueType type = ValueType::text;
  std::string expected{};  ///< "1 to 100", "one of a, b": for the reference.
  std::function<Result<void>(Config&, std::string_view)> assign{};
  std::function<std::string(const Config&)> print{};  ///< What assign() would take.

  [[nodiscard]] std::string_view section() const { return key.substr(0, key.find('.')); }
  [[nodiscard]] std::string_view name() const { return key.substr(key.find('.') + 1); }
  /// `--data-dir`, `--listen-grpc`.
  [[nodiscard]] std::string flag() const;
};

/// All of them, in the order in which people should see them.
[[nodiscard]] std::span<const Setting> settings();
[[nodiscard]] const Setting* find_setting(std::string_view key);
/// The known key that looks most like this one, or "" if none does.
[[nodiscard]] std::string_view nearest_key(std::string_view key);

struct Section {
  std::string_view name;
  std::string_view title;
};
[[nodiscard]] std::span<const Section> sections();

}  // namespace tenure::server
