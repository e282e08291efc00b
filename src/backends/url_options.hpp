#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenure/client/options.hpp>
#include <tenure/error.hpp>

#include "backends/url.hpp"
#include "sys/parse_number.hpp"

namespace tenure::backends {

/// Table of the options `?key=value&…` that a URL may have: name, type and target of each. An
/// option that is unknown, is given twice or has a wrong value is `invalid_argument`; the error
/// names the position and what is allowed. Not thread safe.
///
///     UrlOptions options(UrlOptions::common);
///     options.text("namespace", name).duration("retry_delay", delay, {.least = 1ms});
///     if (auto consumed = options.consume(url); !consumed) { … }
///
/// REQUIRES: the targets outlive consume().
class UrlOptions {
 public:
  /// Options that connect() consumes before it opens a backend. Errors name them, too.
  static constexpr std::string_view common = "owner, key_prefix, request_timeout";
  /// The same for a backend with an event loop.
  static constexpr std::string_view common_with_event_loop =
      "owner, key_prefix, request_timeout, busy_poll";

  /// File that an option names.
  struct File {
    std::string content{};     ///< Never empty.
    std::size_t position = 0;  ///< Position of the file name in the URL.
  };
  struct DurationLimits {
    std::chrono::microseconds least{0};
    std::optional<std::chrono::microseconds> most{};
  };
  template <class Number>
  struct NumberLimits {
    Number least = std::numeric_limits<Number>::min();
    Number most = std::numeric_limits<Number>::max();
  };
  /// Empty: the value is good. Else what is expected.
  using Check = std::function<std::string(const std::string& value)>;
  using Set = std::function<Result<void>(const Url::Part& value)>;

  explicit UrlOptions(std::string_view consumed_before = {}) : known_(consumed_before) {}

  UrlOptions& text(std::string_view name, std::string& target, Check check = {});
  /// `true` or `false`.
  UrlOptions& flag(std::string_view name, bool& target);
  template <std::integral Number>
  UrlOptions& number(std::string_view name, Number& target,
                     std::type_identity_t<NumberLimits<Number>> limits = {});
  /// A number and a unit: us, ms, s or m. The value is a whole number of the target's unit.
  template <class Rep, class Period>
  UrlOptions& duration(std::string_view name, std::chrono::duration<Rep, Period>& target,
                       const DurationLimits& limits);
  template <class Rep, class Period>
  UrlOptions& duration(std::string_view name,
                       std::optional<std::chrono::duration<Rep, Period>>& target,
                       const DurationLimits& limits);
  /// Reads the file. A file that is empty or cannot be read is an error.
  UrlOptions& file(std::string_view name, std::optional<File>& target);
  /// Any other type.
  UrlOptions& add(std::string_view name, Set set);

  /// Sets the targets and takes the options out of the URL. Targets of options that the URL does
  /// not have stay as they are.
  [[nodiscard]] Result<void> consume(Url& url);
  /// The same, and leaves options that are not in this table in the URL.
  [[nodiscard]] Result<void> consume_known(Url& url);

 private:
  struct Option {
    std::string name;
    Set set;
    bool is_given = false;
  };

  UrlOptions& add_duration(std::string_view name, std::chrono::microseconds unit,
                           const DurationLimits& limits,
                           std::function<void(std::chrono::microseconds)> set);

  std::string known_;  ///< Comma-separated names for errors.
  std::vector<Option> options_;
};

/// Consumes the options that all backends have in common, among others those of the client.
[[nodiscard]] Result<void> consume_common_options(Url& url, ConnectOptions& options);

template <std::integral Number>
UrlOptions& UrlOptions::number(std::string_view name, Number& target,
                               std::type_identity_t<NumberLimits<Number>> limits) {
  return add(name,
             [name = std::string(name), &target, limits](const Url::Part& value) -> Result<void> {
               const auto number = sys::parse_number<Number>(value.text);
               if (!number || *number < limits.least || *number > limits.most) {
                 return url_error(value.position, name + " is a number from " +
                                                      std::to_string(limits.least) + " to " +
                                                      std::to_string(limits.most));
               }
               target = *number;
               return {};
             });
}

template <class Rep, class Period>
UrlOptions& UrlOptions::duration(std::string_view name, std::chrono::duration<Rep, Period>& target,
                                 const DurationLimits& limits) {
  using Duration = std::chrono::duration<Rep, Period>;
  return add_duration(name, Duration(1), limits, [&target](std::chrono::microseconds value) {
    target = std::chrono::duration_cast<Duration>(value);
  });
}

template <class Rep, class Period>
UrlOptions& UrlOptions::duration(std::string_view name,
                                 std::optional<std::chrono::duration<Rep, Period>>& target,
                                 const DurationLimits& limits) {
  using Duration = std::chrono::duration<Rep, Period>;
  return add_duration(name, Duration(1), limits, [&target](std::chrono::microseconds value) {
    target = std::chrono::duration_cast<Duration>(value);
  });
}

}  // namespace tenure::backends
