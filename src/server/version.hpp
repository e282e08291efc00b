#pragma once

#include <string_view>

namespace tenure::server {

/// Of the project; CMake gives it.
inline constexpr std::string_view version = TENURE_VERSION;

}  // namespace tenure::server
