#pragma once

#include <cstdint>
#include <string>

#include <tenure/error.hpp>

#include "grpc/status.hpp"

namespace tenure::backends::etcd {

/// Recovery from a failed call.
enum class Recovery : std::uint8_t {
  /// The member cannot serve the request now: use another one, or retry later.
  other_member,
  /// The token is invalid: authenticate again, then retry.
  reauthenticate,
  /// A retry would fail, too: report the error. Nothing was changed.
  none,
};

/// Error of a call and the recovery from it.
struct Failure {
  Recovery recovery = Recovery::other_member;
  Error error{};
};

/// Classifies a failed call to the member at address `server`.
[[nodiscard]] Failure classify(const grpc::Status& status, const std::string& server);

/// Classifies the end of a stream. etcd never ends a stream on its own, so it is opened again, here
/// or elsewhere.
[[nodiscard]] Failure classify_stream(const grpc::Status& status, const std::string& server);

/// Classifies an error text without a status, as in a cancelled watch.
[[nodiscard]] Failure classify(const std::string& words, const std::string& server);

/// Error of a reply that etcd cannot have sent. The outcome of the request is unknown.
[[nodiscard]] Error malformed_reply(const std::string& server);

}  // namespace tenure::backends::etcd
