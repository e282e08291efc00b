#pragma once

#include <string_view>

namespace tenure::fence {

/// The texts of admit.lua and write.lua; the build puts them into the library.
extern const std::string_view admit_script;
extern const std::string_view write_script;

}  // namespace tenure::fence
