#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/zookeeper/connection.hpp"

namespace tenure::backends::zookeeper {

/// Delete batcher. A server's cost is mostly per request, so only a few deletions are in flight;
/// further ones are queued and sent together as one transaction.
///
/// Not thread safe: all calls run on the strand.
class DeleteBatcher {
 public:
  explicit DeleteBatcher(Connection& connection) : connection_(connection) {}

  /// Deletes a node. `on_reply` gets the result for this node, once.
  void add(std::string path, ReplyCallback on_reply);

 private:
  /// One node to delete.
  struct Deletion {
    std::string path;
    ReplyCallback on_reply;
  };

  /// Sends a batch as one transaction.
  void send(std::vector<Deletion> batch);
  /// Sends one deletion.
  void send_single(Deletion one);
  /// Counts a finished request and sends the next batch. Fails all queued deletions if the session
  /// has ended.
  void send_next(const Reply& reply);

  Connection& connection_;
  /// Queued deletions, oldest first.
  std::vector<Deletion> waiting_;
  /// Number of requests without a reply.
  std::size_t in_flight_ = 0;
};

}  // namespace tenure::backends::zookeeper
