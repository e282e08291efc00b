#include "core/version.hpp"

namespace tenure::core {

/// Takes the place of the definition in src/core/version_newest.cpp.
constinit const ClusterVersion newest_version = version_1;

}  // namespace tenure::core
