#pragma once

#include <string>
#include <string_view>

#include <tenure/error.hpp>
#include <tenure/ids.hpp>
#include <tenure/key_range.hpp>
#include <tenure/lock_manager/deadlock.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure {

/// Inverse of to_string(), for configuration files, logs and wire formats: every output of
/// to_string() is parsed as the same value. Other input is Errc::invalid_argument; the detail
/// quotes it and names what was expected.
template <class Value>
[[nodiscard]] Result<Value> parse(std::string_view text) = delete;

/// Types that can be parsed.
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

/// Decimal number.
[[nodiscard]] std::string to_string(TxnId txn);
[[nodiscard]] std::string to_string(ResourceId resource);

/// `[1, 9]`
[[nodiscard]] std::string to_string(const KeyRange& range);

}  // namespace tenure
