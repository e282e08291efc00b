#include "backends/redis/poll.hpp"

#include <utility>

namespace tenure::backends::redis {

Poll::Poll(boost::asio::io_context& loop, std::vector<Address> addresses, Question question)
    : loop_(loop),
      addresses_(std::move(addresses)),
      question_(std::move(question)),
      moment_(loop),
      answers_(addresses_.size()),
      open_(addresses_.size()) {
  for (std::size_t which = 0; which < addresses_.size(); ++which) {
    answers_[which] =
        fail(Errc::unavailable, name_of(addresses_[which].endpoint) + ": no answer in time");
  }
}

void Poll::start() {
  for (std::size_t which = 0; which < addresses_.size(); ++which) {
    const std::weak_ptr<Poll> weak = weak_from_this();
    const auto tell = [weak, which](Result<void> how) {
      if (const auto self = weak.lock()) {
        self->told(which, std::move(how));
      }
    };
    lines_.push_back(std::make_shared<Line>(
        loop_, addresses_[which], question_.steps(which),
        Line::Calls{.ready = [tell] { tell({}); },
                    .replied = [](const Reply&) {},
                    .failed = [tell](const Error& why) { tell(std::unexpected(why)); }}));
  }
  for (const auto& line : lines_) {
    line->dial();
  }
}

void Poll::told(std::size_t which, Result<void> how) {
  if (is_over_) {
    return;
  }
  lines_[which]->stop();
  const bool is_answer = how.has_value();
  answers_[which] = std::move(how);
  --open_;
  if (open_ == 0 || (is_answer && question_.is_enough && question_.is_enough())) {
    finish();
    return;
  }
  if (!is_answer || std::exchange(has_answer_, true)) {
    return;
  }
  moment_.expires_after(question_.moment);
  moment_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && !self->is_over_) {
      self->finish();
    }
  });
}

void Poll::finish() {
  const auto self = shared_from_this();
  stop();
  question_.done(answers_);
}

void Poll::stop() {
  is_over_ = true;
  moment_.cancel();
  for (const auto& line : lines_) {
    line->stop();
  }
}

std::string words_of(const std::vector<Result<void>>& answers) {
  std::string words;
  for (const auto& answer : answers) {
    if (!answer) {
      words += (words.empty() ? "" : "; ") + answer.error().detail;
    }
  }
  return words;
}

}  // namespace tenure::backends::redis
