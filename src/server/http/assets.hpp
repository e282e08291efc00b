#pragma once

#include <span>
#include <string_view>

namespace tenure::server::http {

/// A file of the dashboard, in the binary.
struct Asset {
  std::string_view path{};  ///< As it is asked for.
  std::string_view content_type{};
  std::string_view body{};
};

/// Made by cmake/dashboard.cmake from web/dist.
[[nodiscard]] std::span<const Asset> assets();

/// docs/reference/openapi.json: what can be asked for over HTTP.
[[nodiscard]] std::string_view openapi_document();

/// Null if there is none.
[[nodiscard]] const Asset* find_asset(std::string_view path);

}  // namespace tenure::server::http
