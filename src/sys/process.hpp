#pragma once

#include <string>

namespace tenure::sys {

/// Who this process is, for people: host name, process id and a random number, `web-3.812.9f3a`.
/// The last because ids of processes come back, and containers all have the same ones.
[[nodiscard]] std::string process_label();

}  // namespace tenure::sys
