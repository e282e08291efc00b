#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/container/btree_map.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <tenure/error.hpp>

#include "backends/redis/line.hpp"
#include "backends/redis/scripts.hpp"

namespace tenure::backends::redis {

/// One command for the server, and whom to tell.
struct Errand {
  struct Answer {
    const Reply& reply;
    /// It was sent before on a connection that broke: perhaps the first did it.
    bool is_retry = false;
  };
  /// Lasts as long as the call. An error of the server is an error here.
  using Answered = std::move_only_function<void(const Result<Answer>&)>;
  /// When the connection is lost. `fail`: if there is no other soon; somebody will ask anew.
  enum class Loss : std::uint8_t { send_again, fail };

  std::string command{};
  Answered answered{};
  Loss loss = Loss::send_again;
  bool was_sent = false;
};

/// Carries errands to one server over one connection, as many at a time as there are. When the
/// connection is lost they are sent again on the next one, in their order; so the scripts take the
/// same request twice. A server that has forgotten the scripts is told them again. All on the
/// loop's thread.
class Pipeline : public std::enable_shared_from_this<Pipeline> {
 public:
  struct Calls {
    std::function<void()> ready;  ///< Connected, also again; what was open has been sent again.
    std::function<void(const Error&)> lost;     ///< Or could not be connected.
    std::function<void()> idle;                 ///< All is answered.
    std::function<void(std::string)> doubtful;  ///< Something that people should know.
  };

  Pipeline(boost::asio::io_context& loop, const Address& address, Calls calls);

  void start() { line_->dial(); }
  [[nodiscard]] bool is_ready() const noexcept { return line_->is_ready(); }
  [[nodiscard]] bool is_idle() const noexcept { return open_.empty(); }
  [[nodiscard]] const std::string& where() const noexcept { return line_->where(); }

  /// Leaves with the next flush().
  void run(Errand errand);
  void flush() { line_->flush(); }
  /// All that is open fails with this.
  void stop(const Error& why);

 private:
  using Id = std::uint64_t;

  void ready();
  void lost(const Error& why);
  void replied(const Reply& reply);
  void send(Id id, Errand& errand);
  void send_all();
  void load_scripts();
  void fail_all(const Error& why, bool only_those_that_cannot_wait);
  [[nodiscard]] std::vector<Step> greeting();

  Calls calls_;
  const std::chrono::milliseconds grace_max_;
  boost::asio::steady_timer grace_;
  bool is_lost_for_good_ = true;  ///< No connection, and not only just now.
  std::shared_ptr<Line> line_;
  absl::btree_map<Id, Errand> open_;  ///< Not answered, in their order.
  std::deque<Id> sent_;               ///< On this connection; 0: of a script.
  Id last_id_ = 0;
  bool has_scripts_ = true;
  bool is_stopped_ = false;
  /// Why the server refuses us; what is asked until it does not fails by it.
  std::optional<Error> refusal_;
};

}  // namespace tenure::backends::redis
