#include "backends/zookeeper/removals.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/faults.hpp"

namespace tenure::backends::zookeeper {
namespace {

/// Fewer would keep a handful of clients waiting for each other; more would leave one by one.
constexpr std::size_t requests_at_once = 4;
constexpr std::size_t nodes_at_once = 64;

}  // namespace

void Removals::add(std::string path, Answer answer) {
  One one{.path = std::move(path), .answer = std::move(answer)};
  if (under_way_ >= requests_at_once) {
    waiting_.push_back(std::move(one));
    return;
  }
  send_alone(std::move(one));
}

void Removals::send(std::vector<One> several) {
  if (several.size() == 1) {
    send_alone(std::move(several.front()));
    return;
  }
  ++under_way_;
  std::vector<std::string> paths;
  for (const auto& one : several) {
    paths.push_back(one.path);
  }
  link_.remove_all(paths, [this, several = std::move(several)](const Reply& reply) mutable {
    const bool is_refused = reply.code != ZOK && !is_lost(reply.code) && !is_over(reply.code);
    if (is_refused) {
      // One was not there, so none was deleted: each for itself.
      --under_way_;
      for (auto& one : several) {
        send_alone(std::move(one));
      }
      return;
    }
    go_on(reply);
    for (auto& one : several) {
      one.answer(reply);
    }
  });
}

void Removals::send_alone(One one) {
  ++under_way_;
  const auto path = std::move(one.path);
  link_.remove(path, [this, answer = std::move(one.answer)](const Reply& reply) mutable {
    go_on(reply);
    answer(reply);
  });
}

/// The next ones go, before anybody hears of the last: who hears of it may have something to add.
void Removals::go_on(const Reply& reply) {
  --under_way_;
  if (is_over(reply.code)) {
    for (auto& one : std::exchange(waiting_, {})) {
      one.answer(reply);
    }
    return;
  }
  if (waiting_.empty() || under_way_ >= requests_at_once) {
    return;
  }
  const auto count = static_cast<std::ptrdiff_t>(std::min(waiting_.size(), nodes_at_once));
  std::vector<One> next(std::make_move_iterator(waiting_.begin()),
                        std::make_move_iterator(waiting_.begin() + count));
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  send(std::move(next));
}

}  // namespace tenure::backends::zookeeper
