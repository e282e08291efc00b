#pragma once

#include <string_view>

namespace tenure::fence {

/// Sources of admit.lua and write.lua, which the build embeds in the library.
extern const std::string_view admit_script;
extern const std::string_view write_script;

}  // namespace tenure::fence
