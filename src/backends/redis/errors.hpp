#pragma once

#include <string>
#include <string_view>

#include <tenure/error.hpp>

namespace tenure::backends::redis {

/// What an error of the server means for whoever asked; `where` is its address.
[[nodiscard]] Error error_from(std::string_view words, const std::string& where);

/// Errors that pass: the server loads its files, is busy, or is no primary at the moment. What was
/// asked is to be asked again, on another connection and after a pause.
[[nodiscard]] bool is_transient(std::string_view words);

/// What a node of a cluster says when it is not its turn: MOVED, ASK, TRYAGAIN, CLUSTERDOWN.
/// Nothing was done.
[[nodiscard]] bool is_redirect(std::string_view words);

}  // namespace tenure::backends::redis
