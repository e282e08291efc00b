#pragma once

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/process_counts.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {

/// Error of connect(), which must neither block nor leak threads or sockets.
[[nodiscard]] inline Error refusal(const std::string& url,
                                   std::chrono::milliseconds timeout = std::chrono::seconds(10)) {
  constexpr std::chrono::seconds slack{5};
  const auto threads = thread_count();
  const auto sockets = socket_count();
  const auto began = std::chrono::steady_clock::now();
  const auto refused = connect(url, {.request_timeout = timeout});
  EXPECT_LT(std::chrono::steady_clock::now() - began, timeout + slack);
  if (refused) {
    return {.code = Errc{}, .detail = "it connects"};
  }
  EXPECT_TRUE(eventually([&] { return thread_count() <= threads; }));
  EXPECT_TRUE(eventually([&] { return socket_count() <= sockets; }));
  return refused.error();
}

/// Its code, and words that it has among others; never a password, which in tests is a secret.
inline void expect(const Error& error, Errc code, const std::string& words) {
  EXPECT_EQ(error, code) << to_string(error);
  EXPECT_NE(error.detail.find(words), std::string::npos) << error.detail;
  EXPECT_EQ(error.detail.find("secret"), std::string::npos) << "a password: " << error.detail;
}

}  // namespace tenure::test
