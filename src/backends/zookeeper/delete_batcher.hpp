#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/zookeeper/connection.hpp"

namespace tenure::backends::zookeeper {

/// Nodes on their way out. What a request costs a server is by the request for the most part: so a
/// few are under way at a time, and what comes meanwhile leaves together when one is answered. All
/// at the desk.
class DeleteBatcher {
 public:
  explicit DeleteBatcher(Connection& link) : connection_(link) {}

  /// `answer` is told what became of this node, once.
  void add(std::string path, ReplyCallback on_reply);

 private:
  struct Deletion {
    std::string path;
    ReplyCallback on_reply;
  };

  void send(std::vector<Deletion> batch);
  void send_single(Deletion one);
  void send_next(const Reply& reply);

  Connection& connection_;
  std::vector<Deletion> waiting_;
  std::size_t in_flight_ = 0;
};

}  // namespace tenure::backends::zookeeper
