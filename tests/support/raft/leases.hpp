#pragma once

#include "core/ids.hpp"

namespace tenure::test {

inline constexpr core::LeaseId ann{1};
inline constexpr core::LeaseId bob{2};

}  // namespace tenure::test
