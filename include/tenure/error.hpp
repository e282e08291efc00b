#pragma once

#include <concepts>
#include <expected>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace tenure {

/// Reason why an operation failed, from the caller's point of view: each value calls for a
/// different next step. Also a std::error_code: `std::error_code code = Errc::timed_out;`
///
/// The numbers are stable. New values are added at the end, so a `switch` over them needs a
/// `default`.
enum class Errc {
  would_block = 1,   ///< Another owner holds the lock or waits for it; the call does not wait.
  timed_out,         ///< The timeout expired. The request has left the wait queue.
  cancelled,         ///< The stop token was triggered. The request has left the wait queue.
  deadlock,          ///< Waiting closed a cycle and this request is the victim: release and retry.
  not_held,          ///< The caller does not hold the lock that it releases.
  invalid_argument,  ///< The request can never succeed as written.
  resource_exhausted,  ///< A documented limit is reached. The request changed nothing.
  lease_lost,          ///< The lease ended, and every lock held under it is lost. Acquire again.
  unavailable,         ///< No reply: the outcome is unknown. Retry with the same request id.
  permission_denied,   ///< The credentials do not permit this operation on this name.
  unsupported,         ///< The backend lacks the capability; see docs/reference/backends.md.
  conflict = would_block,  ///< Alias of would_block.
};

/// Name of the enumerator.
[[nodiscard]] constexpr std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::would_block: return "would_block";
    case Errc::timed_out: return "timed_out";
    case Errc::cancelled: return "cancelled";
    case Errc::deadlock: return "deadlock";
    case Errc::not_held: return "not_held";
    case Errc::invalid_argument: return "invalid_argument";
    case Errc::resource_exhausted: return "resource_exhausted";
    case Errc::lease_lost: return "lease_lost";
    case Errc::unavailable: return "unavailable";
    case Errc::permission_denied: return "permission_denied";
    case Errc::unsupported: return "unsupported";
  }
  return "unknown";
}

/// Description of a code, for errors without a detail of their own.
[[nodiscard]] constexpr std::string_view message(Errc code) noexcept {
  switch (code) {
    case Errc::would_block: return "lock request conflicts with an existing lock";
    case Errc::timed_out: return "the timeout expired before the lock was granted";
    case Errc::cancelled: return "the wait was cancelled";
    case Errc::deadlock: return "waiting closes a cycle, and this request is its victim";
    case Errc::not_held: return "the caller does not hold the lock";
    case Errc::invalid_argument: return "the request can never succeed as written";
    case Errc::resource_exhausted: return "a limit is reached";
    case Errc::lease_lost: return "the lease has ended, and every lock held under it is lost";
    case Errc::unavailable: return "no reply; the outcome of the request is unknown";
    case Errc::permission_denied: return "the credentials do not permit this operation";
    case Errc::unsupported: return "the backend does not support this operation";
  }
  return "unknown error";
}

namespace detail {

class ErrorCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "tenure"; }
  [[nodiscard]] std::string message(int code) const override {
    return std::string(tenure::message(static_cast<Errc>(code)));
  }
  [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
    switch (static_cast<Errc>(code)) {
      case Errc::would_block: return std::errc::operation_would_block;
      case Errc::timed_out: return std::errc::timed_out;
      case Errc::cancelled: return std::errc::operation_canceled;
      case Errc::deadlock: return std::errc::resource_deadlock_would_occur;
      case Errc::not_held: return std::errc::operation_not_permitted;
      case Errc::invalid_argument: return std::errc::invalid_argument;
      case Errc::permission_denied: return std::errc::permission_denied;
      case Errc::unsupported: return std::errc::operation_not_supported;
      default: return {code, *this};
    }
  }
};

}  // namespace detail

/// Category of Errc, named "tenure". Codes compare equal to the std::errc with the same meaning:
/// `code == std::errc::timed_out`.
[[nodiscard]] inline const std::error_category& error_category() noexcept {
  static const detail::ErrorCategory category;
  return category;
}

/// Conversion that std::error_code looks for.
[[nodiscard]] inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

/// Error code for programs, with a detail for operators and logs.
struct Error {
  Errc code;                ///< Next step for the caller.
  std::string detail = {};  ///< What is wrong, where, and what to do; may be empty.

  friend bool operator==(const Error& error, Errc wanted) noexcept { return error.code == wanted; }
  friend bool operator==(const Error&, const Error&) = default;
};

/// `code: detail`, or `code: message` for an error without a detail.
[[nodiscard]] inline std::string to_string(const Error& error) {
  std::string text(to_string(error.code));
  text += ": ";
  text += error.detail.empty() ? message(error.code) : std::string_view(error.detail);
  return text;
}

/// Writes the name of the code.
template <class Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, Errc code) {
  return out << to_string(code);
}
/// Writes what to_string() returns.
template <class Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const Error& error) {
  return out << to_string(error);
}

/// Exception that Result::or_throw() throws. what() is the full error: code and detail.
class Exception : public std::system_error {
 public:
  /// For code that reports an Error of its own by an exception.
  explicit Exception(Error error)
      : std::system_error(make_error_code(error.code)),
        state_(std::make_shared<const State>(std::move(error))) {}

  /// The error, as the Result contained it. code() has the code alone.
  [[nodiscard]] const Error& error() const noexcept { return state_->error; }
  /// `lease_lost: the lease ended before unlock(); work done since may have raced`
  [[nodiscard]] const char* what() const noexcept override { return state_->text.c_str(); }

 private:
  struct State {
    explicit State(Error reported) : error(std::move(reported)), text(to_string(error)) {}
    Error error;
    std::string text;
  };
  /// Shared, because exceptions are copied and a copy must not throw.
  std::shared_ptr<const State> state_;
};

template <class T>
class Result;

namespace detail {

template <class U>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<Result<T>> = true;
template <class T, class E>
inline constexpr bool is_result<std::expected<T, E>> = true;
template <class E>
inline constexpr bool is_result<std::unexpected<E>> = true;

/// Type from which a Result<T> takes its value: neither another result nor a tag.
template <class U, class T>
concept ValueOf =
    !is_result<std::remove_cvref_t<U>> && !std::same_as<std::remove_cvref_t<U>, std::in_place_t> &&
    !std::same_as<std::remove_cvref_t<U>, std::unexpect_t> && std::constructible_from<T, U>;

}  // namespace detail

/// Value of a fallible call, or its Error: a std::expected<T, Error> with or_throw().
///
///     if (auto guard = mutex.try_lock()) { … }            // test it
///     Guard guard = mutex.lock().or_throw();              // or throw Exception
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
  using Expected = std::expected<T, Error>;

 public:
  /// A default-constructed value.
  Result() = default;
  /// A value.
  template <class U = T>
    requires detail::ValueOf<U, T>
  explicit(!std::is_convertible_v<U, T>) constexpr Result(U&& value)
      : Expected(std::in_place, std::forward<U>(value)) {}
  /// A value that is constructed in place.
  template <class... Args>
  constexpr explicit Result(std::in_place_t in_place, Args&&... args)
      : Expected(in_place, std::forward<Args>(args)...) {}
  // NOLINTBEGIN(google-explicit-constructor): `return fail(…);` has to convert.
  /// An error, as fail() returns it.
  constexpr Result(std::unexpected<Error> error) : Expected(std::move(error)) {}
  /// The outcome of functions that return std::expected, such as transform().
  constexpr Result(const Expected& other) : Expected(other) {}
  constexpr Result(Expected&& other) : Expected(std::move(other)) {}
  // NOLINTEND(google-explicit-constructor)

  /// Returns the value; throws Exception if there is an error instead.
  constexpr std::add_lvalue_reference_t<T> or_throw() & {
    check();
    return **this;
  }
  constexpr std::add_lvalue_reference_t<const T> or_throw() const& {  // NOLINT(*-nodiscard)
    check();
    return **this;
  }
  /// By value, so that `for (auto& holder : client.holders("a").or_throw())` is safe.
  constexpr T or_throw() && {
    check();
    return *std::move(*this);
  }

  /// Passes the value to `next` and returns the result of that, or the error if there is no value.
  /// std::expected::and_then() accepts only functions that return a std::expected itself.
  template <class Next>
  constexpr auto and_then(Next&& next) const& {
    return chain(*this, std::forward<Next>(next));
  }
  template <class Next>
  constexpr auto and_then(Next&& next) && {
    return chain(std::move(*this), std::forward<Next>(next));
  }

  /// Passes the error to `next` and returns the result of that, or the value if there is no error.
  template <class Next>
  constexpr Result or_else(Next&& next) const& {
    return this->has_value() ? *this : Result(std::forward<Next>(next)(this->error()));
  }
  template <class Next>
  constexpr Result or_else(Next&& next) && {
    return this->has_value() ? std::move(*this)
                             : Result(std::forward<Next>(next)(std::move(this->error())));
  }

  /// Compares with another result, with a value, or with an error as fail() returns it.
  template <class Other>
    requires(!detail::is_result<Other> || std::same_as<Other, Result> ||
             std::same_as<Other, std::unexpected<Error>>)
  friend constexpr bool operator==(const Result& a, const Other& b) {
    if constexpr (std::same_as<Other, Result>) {
      return static_cast<const Expected&>(a) == static_cast<const Expected&>(b);
    } else if constexpr (std::same_as<Other, std::unexpected<Error>>) {
      return !a.has_value() && a.error() == b.error();
    } else {
      return a.has_value() && *a == b;
    }
  }

 private:
  template <class Self, class Next>
  static constexpr auto chain(Self&& self, Next&& next) {
    const auto call = [&] {
      if constexpr (std::is_void_v<T>) {
        return std::forward<Next>(next)();
      } else {
        return std::forward<Next>(next)(*std::forward<Self>(self));
      }
    };
    using NextResult = decltype(call());
    return self.has_value() ? call()
                            : NextResult(std::unexpected<Error>(std::forward<Self>(self).error()));
  }

  constexpr void check() const {
    if (!this->has_value()) {
      throw Exception(this->error());
    }
  }
};

/// The error of a Result: `return fail(Errc::not_held, "nothing is locked");`
[[nodiscard]] inline std::unexpected<Error> fail(Errc code, std::string detail = {}) {
  return std::unexpected(Error{.code = code, .detail = std::move(detail)});
}

}  // namespace tenure

template <>
struct std::is_error_code_enum<tenure::Errc> : std::true_type {};
