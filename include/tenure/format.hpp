#pragma once

#include <version>

/// @file
/// std::formatter for errors and ids, where the standard library has it. A separate header, because
/// the formatting library is slow to compile.

#if defined(__cpp_lib_format)

#include <format>
#include <string_view>

#include <tenure/error.hpp>
#include <tenure/strong.hpp>

/// Name of the code. Takes the format specification of a string.
template <>
struct std::formatter<tenure::Errc> : std::formatter<std::string_view> {
  template <class Context>
  auto format(tenure::Errc code, Context& context) const {
    return std::formatter<std::string_view>::format(tenure::to_string(code), context);
  }
};

/// Code and detail, as to_string() returns them. Takes the format specification of a string.
template <>
struct std::formatter<tenure::Error> : std::formatter<std::string_view> {
  template <class Context>
  auto format(const tenure::Error& error, Context& context) const {
    return std::formatter<std::string_view>::format(tenure::to_string(error), context);
  }
};

/// The underlying value, with its format specification.
template <class Value, class Tag>
struct std::formatter<tenure::Strong<Value, Tag>> : std::formatter<Value> {
  template <class Context>
  auto format(const tenure::Strong<Value, Tag>& strong, Context& context) const {
    return std::formatter<Value>::format(strong.get(), context);
  }
};

#endif
