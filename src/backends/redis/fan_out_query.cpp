#include "backends/redis/fan_out_query.hpp"

#include <utility>

namespace tenure::backends::redis {

FanOutQuery::FanOutQuery(boost::asio::io_context& loop, std::vector<ServerOptions> servers,
                         Options options)
    : loop_(loop),
      servers_(std::move(servers)),
      options_(std::move(options)),
      grace_timer_(loop),
      results_(servers_.size()),
      pending_(servers_.size()) {
  for (std::size_t which = 0; which < servers_.size(); ++which) {
    results_[which] =
        fail(Errc::unavailable, name_of(servers_[which].endpoint) + ": no reply in time");
  }
}

void FanOutQuery::start() {
  for (std::size_t which = 0; which < servers_.size(); ++which) {
    // The connections are members, so a strong reference in their callbacks would be a cycle.
    const std::weak_ptr<FanOutQuery> weak = weak_from_this();
    const auto report = [weak, which](Result<void> result) {
      if (const auto self = weak.lock()) {
        self->completed(which, std::move(result));
      }
    };
    connections_.push_back(std::make_shared<Connection>(
        loop_, servers_[which], options_.steps(which),
        Connection::Callbacks{
            .ready = [report] { report({}); },
            .replied = [](const Reply&) {},
            .failed = [report](const Error& why) { report(std::unexpected(why)); }}));
  }
  for (const auto& connection : connections_) {
    connection->connect();
  }
}

void FanOutQuery::completed(std::size_t which, Result<void> result) {
  if (is_over_) {
    return;
  }
  connections_[which]->stop();
  const bool is_answer = result.has_value();
  results_[which] = std::move(result);
  --pending_;
  if (pending_ == 0 || (is_answer && options_.is_enough && options_.is_enough())) {
    finish();
    return;
  }
  if (!is_answer || std::exchange(has_answer_, true)) {
    return;
  }
  grace_timer_.expires_after(options_.grace);
  grace_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && !self->is_over_) {
      self->finish();
    }
  });
}

void FanOutQuery::finish() {
  // Options::done may release the owner's reference, which is the last one.
  const auto self = shared_from_this();
  stop();
  options_.done(results_);
}

void FanOutQuery::stop() {
  is_over_ = true;
  grace_timer_.cancel();
  for (const auto& connection : connections_) {
    connection->stop();
  }
}

std::string join_errors(const std::vector<Result<void>>& answers) {
  std::string words;
  for (const auto& answer : answers) {
    if (!answer) {
      words += (words.empty() ? "" : "; ") + answer.error().detail;
    }
  }
  return words;
}

}  // namespace tenure::backends::redis
