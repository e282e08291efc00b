#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <tenure/error.hpp>

#include "backends/redis/reply.hpp"

namespace tenure::backends::redis {

/// A command for a server, and the callback that receives its reply or the error that ended it. The
/// callback is called at most once. Used on the loop's thread only.
struct Command {
  /// A reply of the server. Valid during the callback only.
  struct Response {
    const Reply& reply;
    /// The command was sent before on a connection that broke; the server may have executed it.
    bool is_retry = false;
  };
  /// Receives the reply; an error reply of the server arrives as an Error.
  using OnReply = std::move_only_function<void(const Result<Response>&)>;
  /// Policy when the connection breaks before the reply arrives.
  enum class Retry : std::uint8_t {
    always,         ///< Resend on the next connection, however long that takes.
    until_timeout,  ///< Resend, but fail if no connection is made within the request timeout.
    never,          ///< Fail at once: a copy that arrives late would do harm.
  };

  std::string encoded{};  ///< Command in wire format (RESP2).
  OnReply on_reply{};     ///< Callback for the reply.
  Retry retry = Retry::always;
  /// Replicas that must have received the command, and all earlier writes of its connection, before
  /// it completes (WAIT).
  std::uint32_t replicas = 0;
  bool was_sent = false;  ///< Sent before on a connection that broke.
  /// Time of the first failed attempt.
  std::optional<std::chrono::steady_clock::time_point> failing_since{};
  std::uint16_t redirects = 0;  ///< Redirects by cluster nodes since the last pause.
  std::chrono::steady_clock::time_point redirected_since{};  ///< Time of the first redirect.

  void complete(const Result<Response>& response) { on_reply(response); }
};

}  // namespace tenure::backends::redis
