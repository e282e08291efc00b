#pragma once

#include <string>

#include "cli/output.hpp"
#include "cli/service.hpp"
#include "sys/json_writer.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::cli {

/// Human-readable mode or permits: "X", "S", "2 of 5", "X on [a, b)".
[[nodiscard]] std::string mode_text(const v1::Item& item);

/// Writes `mode` (IS, IX, S, U, SIX or X) or `permits`, and `range` for a key range, as in the HTTP
/// API.
void write_mode(sys::JsonWriter& json, const v1::Item& item);
// The key names are those of the HTTP API, so that one program can read both.
void write(sys::JsonWriter& json, const v1::Holder& holder);
/// Also writes the holders and earlier waiters that block the waiter.
void write(sys::JsonWriter& json, const v1::Waiter& waiter);
/// Writes the fields of a lock without its queue.
void write_fields(sys::JsonWriter& json, const v1::LockStatus& lock, const Service& service);

/// One lock with its holders and its queue. `full_name`: with the key prefix. A free lock is not an
/// error; it has no holder.
[[nodiscard]] Result<v1::ExplainResponse> explained(Service& service, const std::string& full_name,
                                                    bool is_space);

}  // namespace tenure::cli
