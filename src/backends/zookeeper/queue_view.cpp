#include "backends/zookeeper/queue_view.hpp"

#include <iterator>
#include <utility>

#include <absl/container/flat_hash_set.h>

namespace tenure::backends::zookeeper {

template <class Predicate>
void QueueView::drop_if(Predicate is_gone) {
  for (auto it = contenders_.begin(); it != contenders_.end();) {
    if (is_gone(it->second)) {
      dequeue(it->second);
      it = contenders_.erase(it);
    } else {
      ++it;
    }
  }
}

bool QueueView::covers(Sequence sequence) const noexcept {
  return covered_ && !precedes(*covered_, sequence);
}

// The counter of the folder assigned the number, so a direct successor of `covered_` extends the
// view.
void QueueView::add(const Contender& contender) {
  const auto sequence = contender.ticket.sequence;
  if (covered_ && sequence == after(*covered_)) {
    // No other node was created in between.
    covered_ = sequence;
  }
  if (ours_++ == 0) {
    reorder_from(sequence);
  }
  const auto [it, is_new] = contenders_.try_emplace(contender.node, contender);
  if (is_new) {
    enqueue(it->second);
  } else {
    it->second.ours = contender.ours;  // Listed before the reply to its creation arrived.
  }
}

// Own nodes stay: a list can be older than the reply to their creation.
void QueueView::replace(const std::vector<std::string_view>& names) {
  const absl::flat_hash_set<std::string_view> there(names.begin(), names.end());
  drop_if([&](const Contender& one) {
    // A missing own node may be newer than the list; its own watch reports a deletion.
    return one.ours == ClaimId{} && !there.contains(one.node);
  });
  for (const auto name : names) {
    const auto ticket = ticket_of(name);
    if (!ticket || ticket->kind == Kind::lease) {
      continue;
    }
    const auto known = contenders_.find(name);
    if (known == contenders_.end()) {
      const std::string node(name);
      const auto it =
          contenders_.try_emplace(node, Contender{.node = node, .ticket = *ticket}).first;
      enqueue(it->second);
    } else if (known->second.ours != ClaimId{} && !covers(ticket->sequence)) {
      covered_ = ticket->sequence;
    }
  }
}

/// Rebuilds the order from a new origin.
void QueueView::reorder_from(Sequence origin) {
  order_ = Order(Earlier{.origin = origin});
  exclusive_ = Order(Earlier{.origin = origin});
  for (const auto& [node, contender] : contenders_) {
    enqueue(contender);
  }
}

void QueueView::enqueue(const Contender& one) {
  order_.insert(&one);
  if (is_exclusive(one.ticket.kind)) {
    exclusive_.insert(&one);
  }
}

void QueueView::dequeue(const Contender& one) {
  order_.erase(&one);
  exclusive_.erase(&one);
}

bool QueueView::remove(std::string_view node) {
  const auto it = contenders_.find(node);
  if (it == contenders_.end()) {
    return false;
  }
  dequeue(it->second);
  ours_ -= it->second.ours != ClaimId{} ? 1 : 0;
  contenders_.erase(it);
  return true;
}

void QueueView::forget() {
  covered_.reset();
  drop_if([](const Contender& one) { return one.ours == ClaimId{}; });
}

const QueueView::Contender* QueueView::find(std::string_view node) const {
  const auto it = contenders_.find(node);
  return it == contenders_.end() ? nullptr : &it->second;
}

const QueueView::Contender* QueueView::blocker_of(const Contender& one) const {
  const auto& those = is_exclusive(one.ticket.kind) ? order_ : exclusive_;
  const auto it = those.lower_bound(&one);
  return it == those.begin() ? nullptr : *std::prev(it);
}

const QueueView::Contender* QueueView::conflicting_with(Kind kind) const {
  const auto& those = is_exclusive(kind) ? order_ : exclusive_;
  return those.empty() ? nullptr : *those.rbegin();
}

// Counts from both ends, because most queries concern the newest nodes and few nodes hold the lock.
std::size_t QueueView::position_of(const Contender& one) const {
  const auto self = order_.find(&one);
  const auto waiting = exclusive_.empty() ? order_.end() : order_.find(*exclusive_.begin());
  const auto holding = static_cast<std::size_t>(std::distance(order_.begin(), waiting));
  const auto waiters_of = static_cast<std::size_t>(std::distance(self, order_.end())) - 1;
  const auto before = order_.size() - waiters_of - 1;
  if (before <= holding) {
    return 1;
  }
  // The first node holds the lock if it is exclusive.
  return before - (holding == 0 ? 1 : holding) + 1;
}

std::vector<ClaimId> QueueView::ours() const {
  std::vector<ClaimId> found;
  for (const auto* one : order_) {
    if (one->ours != ClaimId{}) {
      found.push_back(one->ours);
    }
  }
  return found;
}

std::vector<ClaimId> QueueView::waiters_of(const Ticket& ticket) const {
  const auto& those = is_exclusive(ticket.kind) ? order_ : exclusive_;
  std::vector<ClaimId> found;
  for (auto it = those.upper_bound(ticket.sequence); it != those.end(); ++it) {
    if ((*it)->ours != ClaimId{}) {
      found.push_back((*it)->ours);
    }
    if (is_exclusive((*it)->ticket.kind)) {
      break;
    }
  }
  return found;
}

}  // namespace tenure::backends::zookeeper
