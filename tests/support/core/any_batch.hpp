#pragma once

#include <rapidcheck.h>

#include "core/batch.hpp"

namespace tenure::core::model {

/// Any batch that can be written down, sensible or not; all commands in all their forms.
[[nodiscard]] rc::Gen<Batch> any_batch();

}  // namespace tenure::core::model
