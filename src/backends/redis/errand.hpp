#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <tenure/error.hpp>

#include "backends/redis/reply.hpp"

namespace tenure::backends::redis {

/// A command for a server, and the callback that receives its reply.
struct Errand {
  /// A reply of the server. Valid during the callback only.
  struct Answer {
    const Reply& reply;
    /// The command was sent before on a connection that broke; the server may have executed it.
    bool is_retry = false;
  };
  /// Receives the reply; an error reply of the server arrives as an Error.
  using Answered = std::move_only_function<void(const Result<Answer>&)>;
  /// Policy when the connection breaks before the reply arrives.
  enum class Loss : std::uint8_t {
    send_again,  ///< Resend on the next connection, however long that takes.
    fail,        ///< Resend, but fail if no connection is made within the request timeout.
    once,        ///< Fail at once: a copy that arrives late would do harm.
  };

  std::string command{};  ///< Encoded (RESP2).
  Answered answered{};
  Loss loss = Loss::send_again;
  bool was_sent = false;
  /// Time of the first failed attempt.
  std::optional<std::chrono::steady_clock::time_point> failing_since{};
  std::uint16_t detours = 0;  ///< Redirects by cluster nodes since the last pause.
  std::chrono::steady_clock::time_point astray_since{};  ///< Time of the first redirect.

  void tell(const Result<Answer>& answer) { answered(answer); }
};

}  // namespace tenure::backends::redis
