#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

#include "cli/arguments.hpp"
#include "tenure/v1/item.pb.h"

namespace tenure::cli {

/// Locks of tenured that a command line selects by --space and --range, by --path, or by names, in
/// the mode of --mode, --shared or --exclusive.
struct Selection {
  std::vector<v1::Item> items{};
  std::vector<std::string> shown{};  ///< Names for messages and TENURE_NAME.
};

/// Mode of the request: IS, IX, S, U, SIX or X. Error for contradicting options.
[[nodiscard]] Result<std::string> mode_of(const Arguments& arguments);
/// Parses the options. Error unless exactly one of names, --space and --path is given.
[[nodiscard]] Result<Selection> select_items(const Arguments& arguments, std::string_view mode);

}  // namespace tenure::cli
