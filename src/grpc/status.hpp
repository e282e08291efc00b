#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenure::grpc {

/// gRPC status code, with gRPC's numbers.
enum class StatusCode : std::uint8_t {
  ok = 0,
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  loss = 15,
  unauthenticated = 16,
};

/// Name of the code in gRPC's documentation, for example "NOT_FOUND".
[[nodiscard]] const char* name_of(StatusCode code);

/// Metadata field: request metadata or trailing metadata.
struct MetadataField {
  std::string name{};   ///< Lower case.
  std::string value{};  ///< Printable ASCII.

  friend bool operator==(const MetadataField&, const MetadataField&) = default;
};

inline constexpr std::size_t trailers_max =
    4;  ///< Maximum number of trailing metadata fields per status; more are dropped.

/// Result of a call: code, human-readable message and trailing metadata.
struct Status {
  StatusCode code = StatusCode::ok;
  std::string message{};
  std::vector<MetadataField> trailers{};

  [[nodiscard]] bool ok() const noexcept { return code == StatusCode::ok; }
  friend bool operator==(const Status&, const Status&) = default;
};

/// Percent-encoded message for the grpc-message header: printable ASCII, other bytes as %XX.
[[nodiscard]] std::string percent_encoded(const std::string& text);

}  // namespace tenure::grpc
