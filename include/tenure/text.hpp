#pragma once

#include <string>
#include <string_view>

#include <tenure/deadlock.hpp>
#include <tenure/error.hpp>
#include <tenure/ids.hpp>
#include <tenure/key_range.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure {

/// The way back from to_string(), for configuration files, logs and wire formats. Whatever
/// to_string() writes is read again as the same value; anything else is Errc::invalid_argument
/// with a detail that names the text and what was expected.
template <class Value>
[[nodiscard]] Result<Value> parse(std::string_view text) = delete;

/// The kinds of values that can be read.
template <>
[[nodiscard]] Result<LockMode> parse<LockMode>(std::string_view text);
template <>
[[nodiscard]] Result<VictimPolicy> parse<VictimPolicy>(std::string_view text);
template <>
[[nodiscard]] Result<Errc> parse<Errc>(std::string_view text);
template <>
[[nodiscard]] Result<KeyRange> parse<KeyRange>(std::string_view text);
template <>
[[nodiscard]] Result<TxnId> parse<TxnId>(std::string_view text);
template <>
[[nodiscard]] Result<ResourceId> parse<ResourceId>(std::string_view text);

/// The number.
[[nodiscard]] std::string to_string(TxnId txn);
[[nodiscard]] std::string to_string(ResourceId resource);

/// `[1, 9]`
[[nodiscard]] std::string to_string(const KeyRange& range);

}  // namespace tenure
