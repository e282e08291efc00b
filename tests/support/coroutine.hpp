#pragma once

#include <coroutine>
#include <exception>

namespace tenure::test {

/// Detached coroutine. A failed test may end before it, so it must own or share everything it uses.
struct Detached {
  struct promise_type {
    static Detached get_return_object() noexcept { return {}; }
    static std::suspend_never initial_suspend() noexcept { return {}; }
    static std::suspend_never final_suspend() noexcept { return {}; }
    static void return_void() noexcept {}
    [[noreturn]] static void unhandled_exception() noexcept { std::terminate(); }
  };
};

}  // namespace tenure::test
