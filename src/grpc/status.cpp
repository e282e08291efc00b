#include "grpc/status.hpp"

namespace tenure::grpc {

const char* name_of(StatusCode code) {
  switch (code) {
    case StatusCode::ok: return "OK";
    case StatusCode::cancelled: return "CANCELLED";
    case StatusCode::unknown: return "UNKNOWN";
    case StatusCode::invalid_argument: return "INVALID_ARGUMENT";
    case StatusCode::deadline_exceeded: return "DEADLINE_EXCEEDED";
    case StatusCode::not_found: return "NOT_FOUND";
    case StatusCode::already_exists: return "ALREADY_EXISTS";
    case StatusCode::permission_denied: return "PERMISSION_DENIED";
    case StatusCode::resource_exhausted: return "RESOURCE_EXHAUSTED";
    case StatusCode::failed_precondition: return "FAILED_PRECONDITION";
    case StatusCode::aborted: return "ABORTED";
    case StatusCode::out_of_range: return "OUT_OF_RANGE";
    case StatusCode::unimplemented: return "UNIMPLEMENTED";
    case StatusCode::internal: return "INTERNAL";
    case StatusCode::unavailable: return "UNAVAILABLE";
    case StatusCode::loss: return "DATA_LOSS";
    case StatusCode::unauthenticated: return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

std::string percent_encoded(const std::string& text) {
  constexpr const char* digits = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x20 && byte < 0x7F && byte != '%') {
      encoded += letter;
    } else {
      encoded += '%';
      encoded += digits[byte >> 4U];
      encoded += digits[byte & 0xFU];
    }
  }
  return encoded;
}

}  // namespace tenure::grpc
