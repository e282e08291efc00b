#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/zookeeper/link.hpp"

namespace tenure::backends::zookeeper {

/// Nodes on their way out. What a request costs a server is by the request for the most part: so a
/// few are under way at a time, and what comes meanwhile leaves together when one is answered. All
/// at the desk.
class Removals {
 public:
  explicit Removals(Link& link) : link_(link) {}

  /// `answer` is told what became of this node, once.
  void add(std::string path, Answer answer);

 private:
  struct One {
    std::string path;
    Answer answer;
  };

  void send(std::vector<One> several);
  void send_alone(One one);
  void go_on(const Reply& reply);

  Link& link_;
  std::vector<One> waiting_;
  std::size_t under_way_ = 0;
};

}  // namespace tenure::backends::zookeeper
