#include "backends/redlock/redlock_backend.hpp"

#include <algorithm>
#include <utility>

namespace tenure::backends::redlock {
namespace {

/// A majority is connected: for so long the others are waited for, so that all vote from the
/// beginning, and what is wrong with one of them is told.
constexpr std::chrono::milliseconds grace{100};

}  // namespace

RedlockBackend::RedlockBackend(Servers servers, std::chrono::milliseconds patience)
    : servers_(std::move(servers)),
      patience_(patience),
      timer_(loop()),
      timers_(loop()),
      ballots_(loop(), nodes_, timers_),
      locks_({.servers = servers_, .patience = patience}, nodes_, ballots_, timers_,
             Commands(servers_.addresses.front().name_space, redis::fresh_client())) {
  if (auto doubt = doubt_about(servers_)) {
    doubts_.push_back(*std::move(doubt));
  }
  make_nodes();
}

void RedlockBackend::make_nodes() {
  for (const auto& address : servers_.addresses) {
    nodes_.push_back(std::make_unique<Node>(
        loop(), address, locks_.commands().channel(),
        Node::Calls{.changed = [this] { node_changed(); },
                    .heard =
                        [this](std::string_view message) {
                          locks_.heard(message);
                          ballots_.flush_soon();
                        },
                    .idle = [this] { end_if_idle(); },
                    .doubtful =
                        [this](std::string doubt) {
                          if (std::ranges::find(doubts_, doubt) == doubts_.end()) {
                            doubts_.push_back(std::move(doubt));
                          }
                        }}));
  }
}

Result<std::unique_ptr<RedlockBackend>> RedlockBackend::open(Servers servers,
                                                             std::chrono::milliseconds patience) {
  auto backend = std::make_unique<RedlockBackend>(std::move(servers), patience);
  backend->do_now([raw = backend.get()] {
    for (const auto& node : raw->nodes_) {
      node->start();
    }
  });
  backend->parker().wait(backend->opened_, std::chrono::steady_clock::now() + patience);
  if (!backend->opened_.is_signalled()) {
    return fail(Errc::unavailable, "no majority of the servers answers");
  }
  if (!*backend->first_) {
    return std::unexpected(backend->first_->error());
  }
  return backend;
}

RedlockBackend::~RedlockBackend() {
  do_now([this] {
    is_ending_ = true;
    listener_ = nullptr;
    locks_.end();
    // Longer than that nobody waits for a server that does not answer.
    timer_.expires_after(std::min(patience_, 2 * servers_.node_timeout));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        parker().signal(ended_);
      }
    });
    end_if_idle();
  });
  parker().wait(ended_, std::nullopt);
  // What is on its way ends with the lines.
  do_now([this] {
    timer_.cancel();
    timers_.clear();
    for (const auto& node : nodes_) {
      node->stop({.code = Errc::unavailable, .detail = "the client ends"});
    }
  });
  stop();
}

std::vector<std::string> RedlockBackend::doubts() {
  return doubts_;
}

/// Nobody waits for one that does not answer: what it had of ours ends by itself.
void RedlockBackend::end_if_idle() {
  const bool is_idle = std::ranges::all_of(
      nodes_, [](const auto& node) { return node->is_idle() || !node->answers(); });
  if (is_ending_ && is_idle) {
    parker().signal(ended_);
  }
}

void RedlockBackend::node_changed() {
  const auto ready =
      std::ranges::count_if(nodes_, [](const auto& node) { return node->is_ready(); });
  const bool is_connected = static_cast<std::size_t>(ready) >= servers_.quorum();
  if (!first_) {
    first_ = judge_opening();
    if (first_) {
      timer_.cancel();
      parker().signal(opened_);
    }
  }
  if (listener_ != nullptr && is_told_connected_ != is_connected) {
    is_told_connected_ = is_connected;
    listener_->connection_changed(is_connected, is_connected ? "" : "no majority of the servers");
  }
  end_if_idle();
}

/// Nothing: it is too early to say.
std::optional<Result<void>> RedlockBackend::judge_opening() {
  if (auto twins = find_twins()) {
    return std::unexpected(*std::move(twins));
  }
  std::size_t ready = 0;
  std::size_t failed = 0;
  std::string why;
  Errc code = Errc::unavailable;
  for (const auto& node : nodes_) {
    if (node->is_ready()) {
      ++ready;
    } else if (node->fault()) {
      ++failed;
      why += (why.empty() ? "" : "; ") + node->fault()->detail;
      code = node->fault()->code == Errc::unavailable ? code : node->fault()->code;
    }
  }
  if (servers_.addresses.size() - failed < servers_.quorum()) {
    return fail(code, "no majority of " + std::to_string(servers_.quorum()) + " of " +
                          std::to_string(nodes_.size()) + " servers: " + why);
  }
  if (ready < servers_.quorum()) {
    return std::nullopt;
  }
  if (ready + failed < nodes_.size() && !is_grace_over_) {
    timer_.expires_after(grace);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error && !first_) {
        is_grace_over_ = true;
        node_changed();
      }
    });
    return std::nullopt;
  }
  for (const auto& node : nodes_) {
    if (!node->is_ready()) {
      doubts_.push_back(node->fault() ? node->fault()->detail
                                      : node->where() + ": it does not answer");
    }
  }
  return Result<void>();
}

/// One server under two names would have two votes.
std::optional<Error> RedlockBackend::find_twins() const {
  for (auto it = nodes_.begin(); it != nodes_.end(); ++it) {
    const auto twin = std::find_if(std::next(it), nodes_.end(), [&](const auto& other) {
      return !(*it)->run_id().empty() && (*it)->run_id() == other->run_id();
    });
    if (twin != nodes_.end()) {
      return Error{.code = Errc::invalid_argument,
                   .detail = (*it)->where() + " and " + (*twin)->where() +
                             " are the same server; each has one vote"};
    }
  }
  return std::nullopt;
}

Promises RedlockBackend::promises() const noexcept {
  return {Promise::fencing,   Promise::new_ttl,          Promise::barging,
          Promise::one_lease, Promise::outlives_process, Promise::failover};
}

void RedlockBackend::start(Listener& listener) {
  post([this, &listener] {
    listener_ = &listener;
    locks_.listen(&listener);
    node_changed();
  });
}

}  // namespace tenure::backends::redlock
