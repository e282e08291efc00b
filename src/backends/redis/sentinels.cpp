#include "backends/redis/sentinels.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include <boost/asio/post.hpp>

#include "sys/parse_number.hpp"

namespace tenure::backends::redis {
namespace {

constexpr std::string_view channel = "+switch-master";
/// Between two attempts to listen.
constexpr std::chrono::milliseconds pause_between{200};
/// Sentinels tell each other every two seconds.
constexpr std::chrono::seconds news_are_news{5};

std::optional<Endpoint> endpoint_from(std::string_view host, std::string_view port) {
  const auto number = sys::parse_number<std::uint16_t>(port).value_or(0);
  if (host.empty() || number == 0) {
    return std::nullopt;
  }
  return Endpoint{.host = std::string(host), .port = number};
}

}  // namespace

Sentinels::Sentinels(boost::asio::io_context& loop, std::vector<Address> sentinels,
                     std::string service)
    : loop_(loop),
      sentinels_(std::move(sentinels)),
      service_(std::move(service)),
      named_(sentinels_.size()),
      pause_(loop) {}

Sentinels::~Sentinels() = default;

void Sentinels::start(Moved moved) {
  moved_ = std::move(moved);
  listen();
}

void Sentinels::stop() {
  is_stopped_ = true;
  pause_.cancel();
  waiting_.clear();
  if (poll_) {
    poll_->stop();
  }
  if (ear_) {
    ear_->stop();
  }
}

// Asking.

void Sentinels::find(Found found) {
  waiting_.push_back(std::move(found));
  ask();
}

void Sentinels::ask() {
  if (poll_ || is_stopped_) {
    return;
  }
  std::ranges::fill(named_, std::nullopt);
  unknowing_ = 0;
  const auto steps = [this](std::size_t which) {
    const std::array<std::string_view, 3> words{"SENTINEL", "get-master-addr-by-name", service_};
    std::string command;
    append_command(command, words);
    return std::vector<Step>{
        {.command = std::move(command), .check = [this, which](const Reply& reply) -> Result<void> {
           const auto where = name_of(sentinels_[which].endpoint);
           if (reply.kind == Reply::Kind::error) {
             return fail(
                 reply.text.starts_with("NOPERM") ? Errc::permission_denied : Errc::unavailable,
                 where + ": " + reply.text);
           }
           named_[which] = endpoint_from(reply.text_at(0), reply.text_at(1));
           if (!named_[which]) {
             ++unknowing_;
             return fail(Errc::unavailable, where + ": it knows no service \"" + service_ + '"');
           }
           return {};
         }}};
  };
  poll_ = std::make_shared<Poll>(
      loop_, sentinels_,
      Poll::Question{.steps = steps,
                     .done = [this](const auto& answers) { answered(answers); },
                     .is_enough = [this] { return is_agreed(); }});
  poll_->start();
}

void Sentinels::answered(const std::vector<Result<void>>& answers) {
  poll_.reset();
  auto waiting = std::exchange(waiting_, {});
  const auto* const found = best();
  if (found == nullptr) {
    const auto why = nobody_knows(answers);
    for (auto& one : waiting) {
      one(std::unexpected(why));
    }
    return;
  }
  const auto endpoint = *found;
  decide(endpoint);
  for (auto& one : waiting) {
    one(endpoint);
  }
}

/// Most of all that there are say the same: the rest may not have heard of the last failover, or
/// may be cut off with the old primary.
bool Sentinels::is_agreed() const {
  const auto* const found = best();
  return found != nullptr && 2 * votes_for(*found) > named_.size();
}

std::size_t Sentinels::votes_for(const Endpoint& endpoint) const {
  // Who does a failover tells when it is done; the others hear of it from him, a little later.
  const bool is_news =
      news_ == endpoint && std::chrono::steady_clock::now() < news_at_ + news_are_news;
  return (is_news ? named_.size() : 0) +
         static_cast<std::size_t>(
             std::ranges::count_if(named_, [&](const auto& one) { return one == endpoint; }));
}

const Endpoint* Sentinels::best() const {
  const Endpoint* best = nullptr;
  for (const auto& one : named_) {
    if (one && (best == nullptr || votes_for(*one) > votes_for(*best))) {
      best = &*one;
    }
  }
  if (best != nullptr && news_ && votes_for(*news_) > votes_for(*best)) {
    return &*news_;
  }
  return best;
}

Error Sentinels::nobody_knows(const std::vector<Result<void>>& answers) const {
  const auto is_refused = [](const Result<void>& answer) {
    return !answer && answer.error() != Errc::unavailable;
  };
  if (2 * unknowing_ > sentinels_.size()) {
    return {.code = Errc::invalid_argument,
            .detail = "no Sentinel knows the service \"" + service_ +
                      "\"; it stands after the last '/' of redis+sentinel://… (" +
                      words_of(answers) + ")"};
  }
  const auto refused = std::ranges::find_if(answers, is_refused);
  const auto code = refused != answers.end() ? refused->error().code : Errc::unavailable;
  return {.code = code,
          .detail = "no Sentinel tells where \"" + service_ + "\" is: " + words_of(answers) +
                    (code == Errc::permission_denied
                         ? "; sentinel_user=… and sentinel_password=… say who we are to them"
                         : "")};
}

void Sentinels::decide(const Endpoint& endpoint) {
  const bool is_new = last_ != endpoint;
  last_ = endpoint;
  if (is_new && moved_) {
    // Not from inside: those who are moved may be asking.
    boost::asio::post(loop_, [this, endpoint] {
      if (!is_stopped_) {
        moved_(endpoint);
      }
    });
  }
}

// Listening.

void Sentinels::listen() {
  ear_ = std::make_unique<Waker>(
      loop_, sentinels_[listens_to_], std::string(channel),
      Waker::Calls{.ready = [this] { ask(); },  // what happened while nobody listened
                   .heard = [this](std::string_view message) { heard(message); },
                   .lost = [this](const Error&) { listen_to_next(); }});
  ear_->start();
}

void Sentinels::listen_to_next() {
  if (is_stopped_ || !ear_) {
    return;
  }
  ear_->stop();
  // What is on its way to it is done before.
  boost::asio::post(loop_, [kept = std::shared_ptr<Waker>(std::move(ear_))] {});
  listens_to_ = (listens_to_ + 1) % sentinels_.size();
  pause_.expires_after(pause_between);
  pause_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !is_stopped_) {
      listen();
    }
  });
}

/// "service old-host old-port new-host new-port"
void Sentinels::heard(std::string_view message) {
  std::array<std::string_view, 5> words;
  for (auto& word : words) {
    word = message.substr(0, message.find(' '));
    message.remove_prefix(std::min(word.size() + 1, message.size()));
  }
  const auto endpoint = endpoint_from(words[3], words[4]);
  if (words[0] == service_ && endpoint) {
    news_ = endpoint;
    news_at_ = std::chrono::steady_clock::now();
    decide(*endpoint);
  }
}

}  // namespace tenure::backends::redis
