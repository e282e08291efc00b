#include "server/rpc/leadership.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "wire/errors.hpp"

namespace tenure::server {
namespace {

/// Whether the text is valid in an HTTP/2 header without encoding.
bool is_plain(const std::string& text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char byte) { return byte > ' ' && byte <= '~'; });
}

}  // namespace

void Leadership::reject(const Error& error, Answer answer) {
  auto status = wire::status_of(error);
  if (status.code != grpc::StatusCode::unavailable) {
    answer(std::move(status));
    return;
  }
  // The leader is read now and not when the error occurred: it may be known only since then.
  store_.peek([this, status = std::move(status),
               answer = std::move(answer)](const Result<View>& view) mutable {
    answer(view ? with_leader(std::move(status), view->log) : std::move(status));
  });
}

grpc::Status Leadership::with_leader(grpc::Status status, const LogPosition& log) const {
  // A stopping leader would redirect clients to itself.
  const bool is_us = log.leader == store_.identity().member;
  if (log.leader == 0 || (is_us && is_stopping_)) {
    return status;
  }
  status.trailers.push_back({"tenure-leader-id", std::to_string(log.leader)});
  // The address comes from the configuration of a member and could contain any bytes.
  if (is_plain(log.leader_address)) {
    status.trailers.push_back({"tenure-leader", log.leader_address});
  }
  return status;
}

void Leadership::role_changed(const LogPosition& log) {
  const bool was_leader = std::exchange(is_leader_, log.is_leader);
  // Only the loss of leadership ends calls; a follower has none that need it.
  if (!was_leader || log.is_leader) {
    return;
  }
  // A copy with shared ownership: ending a call can destroy it or others, which changes calls_.
  std::vector<std::shared_ptr<LeaderBoundCall>> in_progress;
  for (auto* call : calls_) {
    if (auto kept = call->keep_alive()) {
      in_progress.push_back(std::move(kept));
    }
  }
  for (const auto& call : in_progress) {
    call->on_leadership_lost();
  }
}

}  // namespace tenure::server
