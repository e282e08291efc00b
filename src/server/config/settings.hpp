#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "server/config/config.hpp"

namespace tenure::server {

/// Notation of a value. In TOML, counts are integers, toggles booleans, and all others strings; a
/// size may also be an integer of bytes.
enum class ValueType : std::uint8_t { toggle, count, size, duration, text };

/// One setting: a key of the file, an environment variable and a flag. Immutable after
/// construction.
///
/// The command line, the environment, the file, --help, the manual pages and the reference are
/// generated from it, so they cannot disagree about a default or a range.
struct Setting {
  std::string_view key;   ///< `section.name`
  std::string_view help;  ///< Help text, also in the manual pages and docs/reference.
  ValueType type = ValueType::text;
  std::string expected{};  ///< Valid values for the reference: "1 to 100", "off, on". Empty: any.
  /// Parses and checks a value. On failure the Config is unchanged, and the error has no key, which
  /// the caller adds with its position.
  std::function<Result<void>(Config&, std::string_view)> assign{};
  std::function<std::string(const Config&)> print{};  ///< Value in the notation of assign().

  [[nodiscard]] std::string_view section() const { return key.substr(0, key.find('.')); }
  [[nodiscard]] std::string_view name() const { return key.substr(key.find('.') + 1); }
  /// `--data-dir`, `--listen-grpc`.
  [[nodiscard]] std::string flag() const;
  /// Environment variable: TENURE_NODE_DATA_DIR, TENURE_LISTEN_GRPC.
  [[nodiscard]] std::string variable() const;
};

/// All settings, in the order of the reference.
/// Thread safe.
[[nodiscard]] std::span<const Setting> settings();
/// Null: unknown key.
[[nodiscard]] const Setting* find_setting(std::string_view key);
/// Known key with the smallest edit distance to `key`; "" if none is similar.
[[nodiscard]] std::string_view nearest_key(std::string_view key);

/// Table of the file, and heading in the help and the manual pages.
struct Section {
  std::string_view name;
  std::string_view title;
};
[[nodiscard]] std::span<const Section> sections();

}  // namespace tenure::server
