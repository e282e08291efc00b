#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenure::backends::redis {

/// Lua scripts that run on the server; each file in scripts/ documents its arguments and results.
enum class Script : std::uint8_t {
  acquire,
  release,
  leave,
  renew,
  expire,
  downgrade,
  force_release,
  holders,
  acquire_barging,
  release_barging,
  renew_barging,
  confirm,
};
/// Number of scripts.
inline constexpr std::size_t scripts_count = static_cast<std::size_t>(Script::confirm) + 1;

/// Source of a script and its digest.
struct ScriptText {
  /// File name without extension.
  std::string_view name{};
  /// Lua source.
  std::string_view text{};
  /// SHA-1 digest in hexadecimal digits, the script's id for EVALSHA.
  std::string sha{};
};

/// Computes the digest of a script.
[[nodiscard]] ScriptText script_text(std::string_view name, std::string_view text);

/// All scripts in the order of `Script`.
[[nodiscard]] const std::array<ScriptText, scripts_count>& all_scripts();
/// Source and digest of one script.
[[nodiscard]] inline const ScriptText& text_of(Script script) {
  return all_scripts()[static_cast<std::size_t>(script)];
}

}  // namespace tenure::backends::redis
