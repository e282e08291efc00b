#include "backends/zookeeper/queue_view.hpp"

#include <set>
#include <utility>

namespace tenure::backends::zookeeper {

template <class Predicate>
void QueueView::drop_if(Predicate is_gone) {
  for (auto it = contenders_.begin(); it != contenders_.end();) {
    if (is_gone(it->second)) {
      order_.erase(&it->second);
      it = contenders_.erase(it);
    } else {
      ++it;
    }
  }
}

bool QueueView::covers(Sequence sequence) const noexcept {
  return covered_ && !precedes(*covered_, sequence);
}

void QueueView::add(const Contender& contender) {
  const auto sequence = contender.ticket.sequence;
  if (covered_ && sequence == after(*covered_)) {
    // Nobody came in between.
    covered_ = sequence;
  }
  if (ours_++ == 0) {
    look_from(sequence);
  }
  const auto [it, is_new] = contenders_.try_emplace(contender.node, contender);
  if (is_new) {
    order_.insert(&it->second);
  } else {
    it->second.ours = contender.ours;  // Listed before its creation was answered.
  }
}

void QueueView::replace(const std::vector<std::string_view>& names) {
  const std::set<std::string_view> there(names.begin(), names.end());
  drop_if([&](const Contender& one) {
    // One of ours that is missing may be newer than the list; it has its own ways to hear.
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
      order_.insert(&it->second);
    } else if (known->second.ours != ClaimId{} && !covers(ticket->sequence)) {
      covered_ = ticket->sequence;
    }
  }
}

/// Orders all anew.
void QueueView::look_from(Sequence origin) {
  decltype(order_) order(Earlier{.origin = origin});
  for (const auto& [node, contender] : contenders_) {
    order.insert(&contender);
  }
  order_ = std::move(order);
}

bool QueueView::remove(std::string_view node) {
  const auto it = contenders_.find(node);
  if (it == contenders_.end()) {
    return false;
  }
  order_.erase(&it->second);
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
  const bool wants_all = is_exclusive(one.ticket.kind);
  for (auto it = order_.find(&one); it != order_.begin();) {
    --it;
    if (wants_all || is_exclusive((*it)->ticket.kind)) {
      return *it;
    }
  }
  return nullptr;
}

const QueueView::Contender* QueueView::in_the_way_of(Kind kind) const {
  for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
    if (is_exclusive(kind) || is_exclusive((*it)->ticket.kind)) {
      return *it;
    }
  }
  return nullptr;
}

std::size_t QueueView::position_of(const Contender& one) const {
  std::size_t before = 0;
  std::size_t holding = 0;
  bool is_front = true;
  for (const auto* other : order_) {
    if (other == &one) {
      break;
    }
    ++before;
    const bool holds = is_front && (before == 1 || !is_exclusive(other->ticket.kind));
    holding += holds ? 1 : 0;
    is_front = holds && !is_exclusive(other->ticket.kind);
  }
  return before - holding + 1;
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

std::vector<ClaimId> QueueView::behind(const Ticket& ticket) const {
  std::vector<ClaimId> found;
  for (auto it = order_.upper_bound(ticket.sequence); it != order_.end(); ++it) {
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
