#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenure::backends::redis {

/// What runs on the server: one file each in scripts/, which says what it takes and returns.
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
inline constexpr std::size_t scripts_count = static_cast<std::size_t>(Script::confirm) + 1;

struct ScriptText {
  std::string_view name{};
  std::string_view text{};
  std::string sha{};  ///< By which the server knows it.
};

[[nodiscard]] ScriptText script_text(std::string_view name, std::string_view text);

[[nodiscard]] const std::array<ScriptText, scripts_count>& all_scripts();
[[nodiscard]] inline const ScriptText& text_of(Script script) {
  return all_scripts()[static_cast<std::size_t>(script)];
}

}  // namespace tenure::backends::redis
