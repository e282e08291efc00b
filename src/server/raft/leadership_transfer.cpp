#include "server/raft/leadership_transfer.hpp"

#include <string>
#include <utility>

namespace tenure::server::raft {

MemberId best_successor(std::span<const TransferCandidate> candidates) {
  const auto rank = [](const TransferCandidate& candidate) {
    // A live member with a shorter log can catch up; a dead one with a longer log cannot lead.
    return std::pair(candidate.was_heard_lately, candidate.match);
  };
  const TransferCandidate* best = nullptr;
  for (const auto& candidate : candidates) {
    if (best == nullptr || rank(candidate) > rank(*best)) {
      best = &candidate;
    }
  }
  return best == nullptr ? MemberId{} : best->id;
}

void LeadershipTransfer::begin(MemberId to, Done done, Time now) {
  transfer_ = Transfer{.to = to, .done = std::move(done), .until = now + timeout_};
}

void LeadershipTransfer::also_notify(Done done) {
  transfer_->done = [first = std::move(transfer_->done),
                     second = std::move(done)](const Result<void>& result) mutable {
    first(result);
    second(result);
  };
}

void LeadershipTransfer::cease_to_lead() {
  if (transfer_.has_value()) {
    transfer_->has_succeeded = true;
  }
}

void LeadershipTransfer::complete(Time now) {
  if (!transfer_.has_value()) {
    return;
  }
  if (transfer_->has_succeeded) {
    end({});
  } else if (transfer_->until <= now) {
    end(tenure::fail(Errc::timed_out, "member " + std::to_string(transfer_->to.get()) +
                                          " did not take over in time; this member remains the "
                                          "leader"));
  }
}

void LeadershipTransfer::fail(const Error& error) {
  end(std::unexpected(error));
}

void LeadershipTransfer::end(Result<void> result) {
  if (auto transfer = std::exchange(transfer_, std::nullopt)) {
    transfer->done(std::move(result));
  }
}

std::optional<Time> LeadershipTransfer::deadline() const {
  return transfer_.has_value() ? std::optional(transfer_->until) : std::nullopt;
}

}  // namespace tenure::server::raft
