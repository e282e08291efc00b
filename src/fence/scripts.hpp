#pragma once

#include <string_view>

namespace tenure::fence {

/// Sources of admit.lua and write.lua, which the build embeds in the library. admit.lua defines the
/// function tenure_admit(); write.lua calls it and is appended to it. Both exist for the whole run
/// time of the process.
extern const std::string_view admit_script;
extern const std::string_view write_script;

}  // namespace tenure::fence
