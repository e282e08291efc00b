#pragma once

#include <coroutine>
#include <exception>

namespace tenure::test {

/// A coroutine that runs by itself and that nobody waits for: not even a test that has given up, so
/// what it uses must be its own, or shared.
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
