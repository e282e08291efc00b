#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "backends/backend.hpp"
#include "backends/redis/reply.hpp"

namespace tenure::backends::redis {

/// What the server says to an errand. Lasts as long as the call.
struct Answer {
  const Reply& reply;
  /// It was sent before on a connection that broke: perhaps the first did it.
  bool is_retry = false;
};

/// What is said to burst.lua, which says what it means.
struct BurstText {
  std::string letters{};
  std::string lengths{};
  std::string words{};
  std::chrono::milliseconds life{};  ///< That the last `t` said.
  const Ask* like = nullptr;         ///< What the last `c` said is said of this one.
  // Both as the wire has them.
  std::string heads{};
  std::string plain_keys{};
  std::string last_token{};  ///< The key of it.
  std::size_t heads_count = 0;
  std::size_t plain_keys_count = 0;

  /// For the next burst; what it took stays.
  void clear() {
    letters.clear();
    lengths.clear();
    words.clear();
    life = {};
    like = nullptr;
    heads.clear();
    plain_keys.clear();
    last_token.clear();
    heads_count = 0;
    plain_keys_count = 0;
  }

  /// One word.
  void add(char letter, std::initializer_list<std::string_view> pieces) {
    const auto begin = words.size();
    for (const auto piece : pieces) {
      words.append(piece);
    }
    letters.push_back(letter);
    lengths.append("c").append(std::to_string(words.size() - begin));
  }
};

/// An errand that burst.lua can do together with others: it is said in few words, or, if that does
/// not help, by its own script.
class Brief {
 public:
  enum class Kind : std::uint8_t { acquire, release };

  Brief() = default;
  Brief(const Brief&) = delete;
  Brief& operator=(const Brief&) = delete;
  virtual ~Brief() = default;

  [[nodiscard]] virtual Kind kind() const noexcept = 0;
  /// The name of the lock.
  [[nodiscard]] virtual std::string_view about() const noexcept = 0;
  /// Adds it. `release`: of the same lock, to be done in the same step before.
  virtual void say(BurstText& text, const Brief* release) const = 0;
  /// Of a release: whose it is.
  virtual void say_who(BurstText& /*text*/, char /*letter*/) const {}
  /// The command, by its own script.
  [[nodiscard]] virtual std::string spell() const = 0;
  virtual void answered(const Result<Answer>& answer) = 0;
};

/// One command for a server, and whom to tell.
struct Errand {
  using Answer = redis::Answer;
  /// Lasts as long as the call. An error of the server is an error here.
  using Answered = std::move_only_function<void(const Result<Answer>&)>;
  /// When the connection is lost.
  enum class Loss : std::uint8_t {
    send_again,  ///< On the next one, whenever that is.
    fail,        ///< Likewise, but if there is none soon it fails; somebody will ask anew.
    once,        ///< It fails: a copy that arrives late would do harm.
  };

  std::string command{};  ///< Empty: `brief` says it when it is needed.
  Answered answered{};    ///< Not if there is a `brief`.
  Loss loss = Loss::send_again;
  bool was_sent = false;
  bool is_alone = false;  ///< Not in a burst any more.
  std::unique_ptr<Brief> brief{};
  /// When it was first asked in vain.
  std::optional<std::chrono::steady_clock::time_point> failing_since{};
  // In a cluster: how often it was sent to the wrong node, and since when nobody takes it.
  std::uint16_t detours = 0;
  std::chrono::steady_clock::time_point astray_since{};

  void tell(const Result<Answer>& answer) { brief ? brief->answered(answer) : answered(answer); }
};

}  // namespace tenure::backends::redis
