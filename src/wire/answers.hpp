#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/command.hpp"
#include "core/outcome.hpp"
#include "tenure/v1/lock.pb.h"
#include "tenure/v1/session.pb.h"
#include "tenure/v1/watch.pb.h"

namespace tenure::wire {

/// Key of an acquisition: `name/lease-request`, with the name of its first lock and both ids in
/// hexadecimal.
/// Human-readable id of the acquisition.
[[nodiscard]] std::string key_of(const core::Acquire& acquire);

/// Milliseconds, rounded down, so that no client trusts a lease longer than the store does.
[[nodiscard]] std::uint64_t milliseconds(core::ClusterTime time);

// Encoders of outcomes. LockResponse answers a unary call; Outcome answers one operation of a
// Session stream, which can express every outcome.
void write(const core::Granted& granted, v1::LockResponse& out);
/// REQUIRES: is_busy(refused); other refusals become a status.
void write(const core::Refused& refused, v1::LockResponse& out);
/// Whether the refusal is an ordinary result (the lock is not available), not an error.
[[nodiscard]] bool is_busy(const core::Refused& refused);

/// The id of the operation is written by the caller.
void write(const core::Outcome& outcome, v1::Outcome& out);
/// An error before the proposal, or of the proposal, as a refusal.
void write(const Error& error, v1::Outcome& out);

/// Whether a delete event contains the record as it was before. It adds bytes to each event, so the
/// client chooses.
enum class PreviousRecord : std::uint8_t { omit, include };
/// Encodes an event. A change that ends a hold is a delete; an event of a wait changes no record.
void write(const core::Event& event, PreviousRecord previous, v1::Event& out);

}  // namespace tenure::wire
