#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <tenure/error.hpp>

#include "backends/redis/reply.hpp"

namespace tenure::backends::redis {

/// One command for a server, and whom to tell.
struct Errand {
  struct Answer {
    const Reply& reply;
    /// It was sent before on a connection that broke: perhaps the first did it.
    bool is_retry = false;
  };
  /// Lasts as long as the call. An error of the server is an error here.
  using Answered = std::move_only_function<void(const Result<Answer>&)>;
  /// When the connection is lost.
  enum class Loss : std::uint8_t {
    send_again,  ///< On the next one, whenever that is.
    fail,        ///< Likewise, but if there is none soon it fails; somebody will ask anew.
    once,        ///< It fails: a copy that arrives late would do harm.
  };

  /// The same in few words, for burst.lua, where many are done by one call.
  struct Brief {
    char kind = 'a';
    std::size_t about = 0;       ///< The hash of its first key.
    std::size_t keys = 0;        ///< How many,
    std::size_t words = 0;       ///< and after them.
    std::string wire{};          ///< The keys as they are sent,
    std::size_t keys_bytes = 0;  ///< up to here, and the words.
  };

  std::string command{};  ///< Empty: `spell` says it when it is needed.
  Answered answered{};
  Loss loss = Loss::send_again;
  bool was_sent = false;
  std::optional<Brief> brief{};
  std::move_only_function<std::string()> spell{};
  /// When it was first asked in vain.
  std::optional<std::chrono::steady_clock::time_point> failing_since{};
  // In a cluster: how often it was sent to the wrong node, and since when nobody takes it.
  std::uint16_t detours = 0;
  std::chrono::steady_clock::time_point astray_since{};
};

}  // namespace tenure::backends::redis
