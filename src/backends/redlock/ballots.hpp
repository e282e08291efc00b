#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "backends/redis/pipeline.hpp"
#include "backends/redlock/node.hpp"
#include "backends/redlock/vote_count.hpp"
#include "net/timer_queue.hpp"

namespace tenure::backends::redlock {

/// Asks all servers the same, at the same time, and tells as soon as it is decided; nobody waits
/// for the slowest. All on the loop's thread.
class Ballots {
 public:
  using Nodes = std::vector<std::unique_ptr<Node>>;
  using Answer = redis::Errand::Answer;

  struct Question {
    /// What this server is asked; nothing: it is passed over.
    std::function<std::optional<std::string>(std::size_t server)> command;
    /// What an answer means. Also called for those that come after the decision.
    std::function<Verdict(std::size_t server, const Result<Answer>&)> judge;
    std::chrono::milliseconds limit{};
    /// `certain`: or not until it is refused for sure; `all`: not until nobody is left to answer.
    enum class Until : std::uint8_t { hopeless, certain, all } until = Until::hopeless;
    /// `everybody`: also those that do not answer at the moment, when they do; nobody waits for
    /// them.
    enum class Whom : std::uint8_t { who_answers, everybody } whom = Whom::who_answers;
  };
  using Decided = std::move_only_function<void(const VoteCount&)>;

  /// The nodes may still be made.
  Ballots(boost::asio::io_context& loop, const Nodes& nodes, net::TimerQueue& timers)
      : loop_(loop), nodes_(nodes), timers_(timers) {}

  /// `decided` is called once, perhaps before this returns.
  void ask(Question question, Decided decided);
  /// One server, of which nobody awaits an answer.
  void tell(std::size_t server, std::string command);
  /// What was asked leaves at the end of this turn of the loop.
  void flush_soon();
  void flush();

 private:
  struct Ballot {
    Question question;
    Decided decided;
    VoteCount count;
    net::TimerQueue::Clock::time_point end;
    bool is_asked = false;  ///< All of them.
  };

  [[nodiscard]] bool put(const std::shared_ptr<Ballot>& ballot, std::size_t server);
  void answered(Ballot& ballot, std::size_t server, const Result<Answer>& answer);
  void decide_if_ripe(Ballot& ballot);
  void sweep_at(net::TimerQueue::Clock::time_point when);
  void sweep();

  boost::asio::io_context& loop_;
  const Nodes& nodes_;
  net::TimerQueue& timers_;
  std::vector<std::shared_ptr<Ballot>> open_;  ///< Not decided; and some that are.
  std::optional<net::TimerQueue::Clock::time_point> sweep_;
  bool is_flush_due_ = false;
};

}  // namespace tenure::backends::redlock
