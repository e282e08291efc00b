#include "backends/redlock/ballots.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

namespace tenure::backends::redlock {

using Clock = net::TimerQueue::Clock;

void Ballots::ask(Question question, Decided decided) {
  const auto ballot = std::make_shared<Ballot>(Ballot{.question = std::move(question),
                                                      .decided = std::move(decided),
                                                      .count = VoteCount(nodes_.size()),
                                                      .end = {}});
  for (std::size_t server = 0; server < nodes_.size(); ++server) {
    if (!put(ballot, server)) {
      ballot->count.cast(server, Verdict::failed);
    }
  }
  flush_soon();
  ballot->is_asked = true;
  decide_if_ripe(*ballot);
  if (ballot->decided) {
    ballot->end = Clock::now() + ballot->question.limit;
    open_.push_back(ballot);
    sweep_at(ballot->end);
  }
}

/// False: nobody waits for this one.
bool Ballots::put(const std::shared_ptr<Ballot>& ballot, std::size_t server) {
  auto& node = *nodes_[server];
  const bool answers = node.answers();
  const bool is_for_everybody = ballot->question.whom == Question::Whom::everybody;
  if (!answers && !is_for_everybody) {
    return false;
  }
  auto command = ballot->question.command(server);
  if (!command) {
    return false;
  }
  const bool is_run = node.run(
      {.command = *std::move(command),
       .answered = [this, ballot,
                    server](const auto& answer) { answered(*ballot, server, answer); },
       .loss = is_for_everybody ? redis::Errand::Loss::send_again : redis::Errand::Loss::fail});
  return answers && is_run;
}

void Ballots::tell(std::size_t server, std::string command) {
  if (nodes_[server]->answers() &&
      nodes_[server]->run({.command = std::move(command), .answered = [](const auto&) {}})) {
    flush_soon();
  }
}

void Ballots::answered(Ballot& ballot, std::size_t server, const Result<Answer>& answer) {
  ballot.count.cast(server, ballot.question.judge(server, answer));
  decide_if_ripe(ballot);
}

void Ballots::decide_if_ripe(Ballot& ballot) {
  const auto& count = ballot.count;
  if (!ballot.is_asked || !ballot.decided) {
    return;
  }
  using enum Question::Until;
  const auto until = ballot.question.until;
  const bool is_ripe = count.open() == 0 || (until != all && count.is_won()) ||
                       (until == hopeless && count.is_hopeless()) ||
                       (until == certain && count.is_refused());
  if (is_ripe) {
    std::exchange(ballot.decided, nullptr)(count);
  }
}

void Ballots::sweep_at(Clock::time_point when) {
  if (sweep_ && *sweep_ <= when) {
    return;
  }
  sweep_ = when;
  timers_.call_at(when, [this, when] {
    if (sweep_ == when) {
      sweep_.reset();
      sweep();
    }
  });
}

/// Those who have not answered in time are not waited for any longer.
void Ballots::sweep() {
  std::erase_if(open_, [](const auto& ballot) { return !ballot->decided; });
  const auto now = Clock::now();
  std::vector<std::shared_ptr<Ballot>> over;
  for (const auto& ballot : open_) {
    if (ballot->end > now) {
      sweep_at(ballot->end);
    } else {
      over.push_back(ballot);
    }
  }
  for (const auto& ballot : over) {
    for (std::size_t server = 0; server < nodes_.size(); ++server) {
      if (ballot->count.of(server) == Verdict::open) {
        nodes_[server]->fell_silent();
        ballot->count.cast(server, Verdict::failed);
      }
    }
    decide_if_ripe(*ballot);
  }
}

void Ballots::flush_soon() {
  if (!std::exchange(is_flush_due_, true)) {
    boost::asio::post(loop_, [this] { flush(); });
  }
}

void Ballots::flush() {
  is_flush_due_ = false;
  for (const auto& node : nodes_) {
    node->flush();
  }
}

}  // namespace tenure::backends::redlock
