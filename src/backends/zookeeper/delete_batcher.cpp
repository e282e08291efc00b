#include "backends/zookeeper/delete_batcher.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/errors.hpp"

namespace tenure::backends::zookeeper {
namespace {

/// With fewer, a handful of clients would wait for each other; with more, no batches would form.
constexpr std::size_t requests_max = 4;
/// Maximum number of deletions in one transaction.
constexpr std::size_t batch_max = 64;

}  // namespace

void DeleteBatcher::add(std::string path, ReplyCallback on_reply) {
  Deletion one{.path = std::move(path), .on_reply = std::move(on_reply)};
  if (in_flight_ >= requests_max) {
    waiting_.push_back(std::move(one));
    return;
  }
  send_single(std::move(one));
}

void DeleteBatcher::send(std::vector<Deletion> batch) {
  if (batch.size() == 1) {
    send_single(std::move(batch.front()));
    return;
  }
  ++in_flight_;
  std::vector<std::string> paths;
  for (const auto& one : batch) {
    paths.push_back(one.path);
  }
  connection_.remove_all(paths, [this, batch = std::move(batch)](const Reply& reply) mutable {
    const bool is_refused =
        reply.code != ZOK && !is_connection_lost(reply.code) && !is_session_over(reply.code);
    if (is_refused) {
      // One node was missing, so the transaction deleted none: send each deletion alone.
      --in_flight_;
      for (auto& one : batch) {
        send_single(std::move(one));
      }
      return;
    }
    send_next(reply);
    for (auto& one : batch) {
      one.on_reply(reply);
    }
  });
}

void DeleteBatcher::send_single(Deletion one) {
  ++in_flight_;
  const auto path = std::move(one.path);
  connection_.remove(path, [this, on_reply = std::move(one.on_reply)](const Reply& reply) mutable {
    send_next(reply);
    on_reply(reply);
  });
}

/// Sends the next batch before the callbacks of the previous one, which may add deletions.
void DeleteBatcher::send_next(const Reply& reply) {
  --in_flight_;
  if (is_session_over(reply.code)) {
    for (auto& one : std::exchange(waiting_, {})) {
      one.on_reply(reply);
    }
    return;
  }
  if (waiting_.empty() || in_flight_ >= requests_max) {
    return;
  }
  const auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), batch_max));
  std::vector<Deletion> next(std::make_move_iterator(waiting_.begin()),
                             std::make_move_iterator(waiting_.begin() + count));
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  send(std::move(next));
}

}  // namespace tenure::backends::zookeeper
