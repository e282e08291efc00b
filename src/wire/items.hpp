#pragma once

#include <tenure/error.hpp>

#include "core/item.hpp"
#include "core/outcome.hpp"
#include "tenure/v1/item.pb.h"

namespace tenure::wire {

/// Decodes an item. `invalid_argument` names the invalid field. The store checks sizes and names.
[[nodiscard]] Result<core::Item> item_from(const v1::Item& item);
/// UNSPECIFIED is exclusive: the safe mode for a client that names none. `invalid_argument`: a mode
/// of a newer client.
[[nodiscard]] Result<LockMode> mode_from(v1::Mode mode);
/// Never UNSPECIFIED.
[[nodiscard]] v1::Mode mode_of(LockMode mode);
/// A range without an end is unbounded. `invalid_argument`: the range is empty.
[[nodiscard]] Result<BytesRange> range_from(const v1::Range& range);

// Inverse of item_from(), and the encoding of a deadlock step.
void write(const core::Item& item, v1::Item& out);
void write(const core::CycleStep& step, v1::CycleStep& out);

}  // namespace tenure::wire
