#pragma once

#include <boost/system/error_code.hpp>

#include "h2/status.hpp"

namespace tenure::h2 {

/// Status of a client's calls after their connection has failed. `unauthenticated`: one side
/// rejects the certificate of the other, so a retry does not help.
[[nodiscard]] Status explain(const boost::system::error_code& fault);

}  // namespace tenure::h2
