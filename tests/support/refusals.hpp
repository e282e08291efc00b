#pragma once

#include <optional>

#include <tenure/error.hpp>
#include <tenure/fence.hpp>

namespace tenure::test {

/// Why a token was refused; nothing if it was admitted.
[[nodiscard]] inline std::optional<FenceError::Reason> reason_of(const FenceResult& admitted) {
  return admitted ? std::nullopt : std::optional(admitted.error().reason);
}

/// The code of a refusal or of an error; nothing if there is none.
[[nodiscard]] inline std::optional<Errc> code_of(const FenceResult& admitted) {
  return admitted ? std::nullopt : std::optional(admitted.error().error.code);
}
template <class Value>
[[nodiscard]] std::optional<Errc> code_of(const Result<Value>& result) {
  return result ? std::nullopt : std::optional(result.error().code);
}

}  // namespace tenure::test
