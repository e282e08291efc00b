#include "backends/redis/sentinel_resolver.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include <boost/asio/post.hpp>

#include "sys/parse_number.hpp"
#include "sys/take_until.hpp"

namespace tenure::backends::redis {
namespace {

/// Channel on which a Sentinel announces failovers.
constexpr std::string_view channel = "+switch-master";
/// Delay before subscribing to the next Sentinel.
constexpr std::chrono::milliseconds resubscribe_delay{200};
/// Time during which an announcement outvotes the Sentinels' replies. Sentinels exchange their
/// state every two seconds, so by then they agree.
constexpr std::chrono::seconds announcement_lifetime{5};

/// Endpoint in a Sentinel's reply; absent if it is invalid.
std::optional<Endpoint> endpoint_from(std::string_view host, std::string_view port) {
  const auto number = sys::parse_number<std::uint16_t>(port).value_or(0);
  if (host.empty() || number == 0) {
    return std::nullopt;
  }
  return Endpoint{.host = std::string(host), .port = number};
}

}  // namespace

SentinelResolver::SentinelResolver(boost::asio::io_context& loop,
                                   std::vector<ServerOptions> sentinels, std::string service)
    : loop_(loop),
      sentinels_(std::move(sentinels)),
      service_(std::move(service)),
      reported_(sentinels_.size()),
      resubscribe_timer_(loop) {}

SentinelResolver::~SentinelResolver() = default;

void SentinelResolver::start(OnPrimaryChanged on_primary_changed) {
  on_primary_changed_ = std::move(on_primary_changed);
  subscribe();
}

void SentinelResolver::stop() {
  is_stopped_ = true;
  resubscribe_timer_.cancel();
  pending_.clear();
  if (query_) {
    query_->stop();
  }
  if (subscriber_) {
    subscriber_->stop();
  }
}

// Lookup.

void SentinelResolver::resolve(OnResolved on_resolved) {
  pending_.push_back(std::move(on_resolved));
  query();
}

void SentinelResolver::query() {
  if (query_ || is_stopped_) {
    return;
  }
  std::ranges::fill(reported_, std::nullopt);
  service_unknown_count_ = 0;
  const auto steps = [this](std::size_t which) {
    return std::vector<HandshakeStep>{
        {.command = encode_command({"SENTINEL", "get-master-addr-by-name", service_}),
         .check = [this, which](const Reply& reply) -> Result<void> {
           const auto where = name_of(sentinels_[which].endpoint);
           if (reply.kind == Reply::Kind::error) {
             return fail(
                 reply.text.starts_with("NOPERM") ? Errc::permission_denied : Errc::unavailable,
                 where + ": " + reply.text);
           }
           reported_[which] = endpoint_from(reply.text_at(0), reply.text_at(1));
           if (!reported_[which]) {
             ++service_unknown_count_;
             return fail(Errc::unavailable, where + ": unknown service \"" + service_ + '"');
           }
           return {};
         }}};
  };
  query_ = std::make_shared<FanOutQuery>(
      loop_, sentinels_,
      FanOutQuery::Options{.steps = steps,
                           .done = [this](const auto& answers) { query_done(answers); },
                           .is_enough = [this] { return is_agreed(); }});
  query_->start();
}

void SentinelResolver::query_done(const std::vector<Result<void>>& answers) {
  query_.reset();
  auto waiting = std::exchange(pending_, {});
  const auto* const found = most_reported();
  if (found == nullptr) {
    const auto why = resolve_error(answers);
    for (auto& one : waiting) {
      one(std::unexpected(why));
    }
    return;
  }
  const auto endpoint = *found;
  set_primary(endpoint);
  for (auto& one : waiting) {
    one(endpoint);
  }
}

/// More than half of all Sentinels must agree. The others may have missed the latest failover, or
/// be partitioned together with the old primary.
bool SentinelResolver::is_agreed() const {
  const auto* const found = most_reported();
  return found != nullptr && 2 * votes_for(*found) > reported_.size();
}

std::size_t SentinelResolver::votes_for(const Endpoint& endpoint) const {
  // The Sentinel that performs a failover announces it at its end; the others learn of it later.
  const bool is_announced = announced_ == endpoint && std::chrono::steady_clock::now() <
                                                          announced_at_ + announcement_lifetime;
  return (is_announced ? reported_.size() : 0) +
         static_cast<std::size_t>(
             std::ranges::count_if(reported_, [&](const auto& one) { return one == endpoint; }));
}

const Endpoint* SentinelResolver::most_reported() const {
  const Endpoint* most_reported = nullptr;
  for (const auto& one : reported_) {
    if (one && (most_reported == nullptr || votes_for(*one) > votes_for(*most_reported))) {
      most_reported = &*one;
    }
  }
  if (most_reported != nullptr && announced_ &&
      votes_for(*announced_) > votes_for(*most_reported)) {
    return &*announced_;
  }
  return most_reported;
}

Error SentinelResolver::resolve_error(const std::vector<Result<void>>& answers) const {
  const auto is_refused = [](const Result<void>& answer) {
    return !answer && answer.error() != Errc::unavailable;
  };
  if (2 * service_unknown_count_ > sentinels_.size()) {
    return {.code = Errc::invalid_argument,
            .detail = "no Sentinel knows the service \"" + service_ +
                      "\"; the URL names it after the last '/': redis+sentinel://…/service (" +
                      join_errors(answers) + ")"};
  }
  const auto refused = std::ranges::find_if(answers, is_refused);
  const auto code = refused != answers.end() ? refused->error().code : Errc::unavailable;
  return {.code = code,
          .detail = "no Sentinel reported the primary of \"" + service_ +
                    "\": " + join_errors(answers) +
                    (code == Errc::permission_denied
                         ? "; set sentinel_user=… and sentinel_password=… for the Sentinels"
                         : "")};
}

void SentinelResolver::set_primary(const Endpoint& endpoint) {
  const bool is_new = primary_ != endpoint;
  primary_ = endpoint;
  if (is_new && on_primary_changed_) {
    // Posted, because the callback moves connections that may be waiting for this lookup.
    boost::asio::post(loop_, [this, endpoint] {
      if (!is_stopped_) {
        on_primary_changed_(endpoint);
      }
    });
  }
}

// Failover announcements.

void SentinelResolver::subscribe() {
  subscriber_ = std::make_unique<Subscriber>(
      loop_, sentinels_[subscribed_index_], std::string(channel),
      Subscriber::Callbacks{
          // A failover may have happened before the subscription.
          .ready = [this] { query(); },
          .message = [this](std::string_view message) { handle_switch_master(message); },
          .disconnected = [this](const Error&) { subscribe_to_next(); }});
  subscriber_->start();
}

void SentinelResolver::subscribe_to_next() {
  if (is_stopped_ || !subscriber_) {
    return;
  }
  subscriber_->stop();
  // Handlers of the subscriber that are queued on the loop still refer to it.
  boost::asio::post(loop_, [kept = std::shared_ptr<Subscriber>(std::move(subscriber_))] {});
  subscribed_index_ = (subscribed_index_ + 1) % sentinels_.size();
  resubscribe_timer_.expires_after(resubscribe_delay);
  resubscribe_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !is_stopped_) {
      subscribe();
    }
  });
}

/// Message format: "service old-host old-port new-host new-port".
void SentinelResolver::handle_switch_master(std::string_view message) {
  std::array<std::string_view, 5> words;
  for (auto& word : words) {
    word = sys::take_until(message, ' ');
  }
  const auto endpoint = endpoint_from(words[3], words[4]);
  if (words[0] == service_ && endpoint) {
    announced_ = endpoint;
    announced_at_ = std::chrono::steady_clock::now();
    set_primary(*endpoint);
  }
}

}  // namespace tenure::backends::redis
