#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenure::grpc {

/// How a call ended, with the numbers that gRPC gives these.
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

/// The code as gRPC's documents write it, e.g. "NOT_FOUND".
[[nodiscard]] const char* name_of(StatusCode code);

/// Something a server says besides the status, in a line of its own.
struct MetadataField {
  std::string name{};   ///< Lower case.
  std::string value{};  ///< Printable ASCII.

  friend bool operator==(const MetadataField&, const MetadataField&) = default;
};

inline constexpr std::size_t trailers_max = 4;  ///< Of one status; more are dropped.

struct Status {
  StatusCode code = StatusCode::ok;
  std::string message{};
  std::vector<MetadataField> trailers{};

  [[nodiscard]] bool ok() const noexcept { return code == StatusCode::ok; }
  friend bool operator==(const Status&, const Status&) = default;
};

/// The message as it may stand in a header: printable ASCII, the rest as %XX.
[[nodiscard]] std::string percent_encoded(const std::string& text);

}  // namespace tenure::grpc
