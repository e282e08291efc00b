#pragma once

#include <string>

namespace tenure::sys {

/// Human-readable label of this process: host name, process id and a random number,
/// `web-3.812.9f3a`. The random part is needed because process ids are reused, and are the same in
/// many containers.
[[nodiscard]] std::string process_label();

}  // namespace tenure::sys
