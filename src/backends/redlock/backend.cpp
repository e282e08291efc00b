#include "backends/redlock/backend.hpp"

#include <algorithm>
#include <utility>

namespace tenure::backends::redlock {
namespace {

/// Grace period for the other servers once a majority is connected, so that usually all of them
/// vote from the beginning and errors of a single server are reported as warnings.
constexpr std::chrono::milliseconds grace{100};

}  // namespace

RedlockBackend::RedlockBackend(Deployment deployment, std::chrono::milliseconds timeout)
    : deployment_(std::move(deployment)),
      timeout_(timeout),
      timer_(loop()),
      timers_(loop()),
      quorum_(loop(), voters_, timers_),
      locks_({.deployment = deployment_, .timeout = timeout}, voters_, quorum_, timers_,
             CommandEncoder(deployment_.servers.front().name_space, redis::new_client_id())) {
  if (auto warning = warning_about(deployment_)) {
    warnings_.push_back(*std::move(warning));
  }
  make_voters();
}

void RedlockBackend::make_voters() {
  for (const auto& server : deployment_.servers) {
    voters_.push_back(std::make_unique<Voter>(
        loop(), server, locks_.encoder().channel(),
        Voter::Callbacks{.changed = [this] { voter_changed(); },
                         .message =
                             [this](std::string_view message) {
                               locks_.handle_message(message);
                               quorum_.flush_soon();
                             },
                         .idle = [this] { signal_if_drained(); },
                         .warning =
                             [this](std::string warning) {
                               if (std::ranges::find(warnings_, warning) == warnings_.end()) {
                                 warnings_.push_back(std::move(warning));
                               }
                             }}));
  }
}

Result<std::unique_ptr<RedlockBackend>> RedlockBackend::open(Deployment deployment,
                                                             std::chrono::milliseconds timeout) {
  auto backend = std::make_unique<RedlockBackend>(std::move(deployment), timeout);
  backend->do_now([raw = backend.get()] {
    for (const auto& voter : raw->voters_) {
      voter->start();
    }
  });
  backend->parker().wait(backend->opened_, std::chrono::steady_clock::now() + timeout);
  if (!backend->opened_.is_signalled()) {
    return fail(Errc::unavailable, "no majority of the servers replied in time");
  }
  if (!*backend->open_result_) {
    return std::unexpected(backend->open_result_->error());
  }
  return backend;
}

RedlockBackend::~RedlockBackend() {
  do_now([this] {
    is_ending_ = true;
    listener_ = nullptr;
    locks_.end();
    // Servers that do not respond are not waited for longer than this.
    timer_.expires_after(std::min(timeout_, 2 * deployment_.node_timeout));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        parker().signal(drained_);
      }
    });
    signal_if_drained();
  });
  parker().wait(drained_, std::nullopt);
  do_now([this] {
    timer_.cancel();
    timers_.clear();
    for (const auto& voter : voters_) {
      voter->stop({.code = Errc::unavailable, .detail = "the client is closing"});
    }
  });
  stop();
}

std::vector<std::string> RedlockBackend::warnings() {
  return warnings_;
}

/// Unresponsive servers are not waited for: their votes expire.
void RedlockBackend::signal_if_drained() {
  const bool is_idle = std::ranges::all_of(
      voters_, [](const auto& voter) { return voter->is_idle() || !voter->is_responsive(); });
  if (is_ending_ && is_idle) {
    parker().signal(drained_);
  }
}

void RedlockBackend::voter_changed() {
  const auto ready =
      std::ranges::count_if(voters_, [](const auto& voter) { return voter->is_ready(); });
  const bool is_connected = static_cast<std::size_t>(ready) >= deployment_.quorum();
  if (!open_result_) {
    open_result_ = opening_result();
    if (open_result_) {
      timer_.cancel();
      parker().signal(opened_);
    }
  }
  if (listener_ != nullptr && is_reported_connected_ != is_connected) {
    is_reported_connected_ = is_connected;
    listener_->connection_changed(is_connected, is_connected ? "" : "no majority of the servers");
  }
  signal_if_drained();
}

std::optional<Result<void>> RedlockBackend::opening_result() {
  if (auto duplicate = find_duplicate_server()) {
    return std::unexpected(*std::move(duplicate));
  }
  std::size_t ready = 0;
  std::size_t failed = 0;
  std::string why;
  Errc code = Errc::unavailable;
  for (const auto& voter : voters_) {
    if (voter->is_ready()) {
      ++ready;
    } else if (voter->last_error()) {
      ++failed;
      why += (why.empty() ? "" : "; ") + voter->last_error()->detail;
      code = voter->last_error()->code == Errc::unavailable ? code : voter->last_error()->code;
    }
  }
  if (deployment_.servers.size() - failed < deployment_.quorum()) {
    return fail(code, "no majority of " + std::to_string(deployment_.quorum()) + " of " +
                          std::to_string(voters_.size()) + " servers: " + why);
  }
  if (ready < deployment_.quorum()) {
    return std::nullopt;
  }
  if (ready + failed < voters_.size() && !is_grace_over_) {
    timer_.expires_after(grace);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error && !open_result_) {
        is_grace_over_ = true;
        voter_changed();
      }
    });
    return std::nullopt;
  }
  for (const auto& voter : voters_) {
    if (!voter->is_ready()) {
      warnings_.push_back(voter->last_error() ? voter->last_error()->detail
                                              : voter->where() + ": no reply");
    }
  }
  return Result<void>();
}

std::optional<Error> RedlockBackend::find_duplicate_server() const {
  for (auto it = voters_.begin(); it != voters_.end(); ++it) {
    const auto duplicate = std::find_if(std::next(it), voters_.end(), [&](const auto& other) {
      return !(*it)->run_id().empty() && (*it)->run_id() == other->run_id();
    });
    if (duplicate != voters_.end()) {
      return Error{.code = Errc::invalid_argument,
                   .detail = (*it)->where() + " and " + (*duplicate)->where() +
                             " are the same server; each has one vote"};
    }
  }
  return std::nullopt;
}

Capabilities RedlockBackend::capabilities() const noexcept {
  return {Capability::fencing,   Capability::new_ttl,          Capability::barging,
          Capability::one_lease, Capability::outlives_process, Capability::failover};
}

void RedlockBackend::start(Listener& listener) {
  post([this, &listener] {
    listener_ = &listener;
    locks_.listen(&listener);
    voter_changed();
  });
}

}  // namespace tenure::backends::redlock
