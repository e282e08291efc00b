#include "core/version.hpp"

namespace tenure::core {

constinit const ClusterVersion newest_version = version_2;

}  // namespace tenure::core
