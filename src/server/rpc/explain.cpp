#include "server/rpc/explain.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/items_at.hpp"
#include "wire/answers.hpp"
#include "wire/items.hpp"

namespace tenure::server {
namespace {

// Rows of a reply: enough for an operator, small enough for one message.
constexpr std::size_t holders_shown_max = 100;
constexpr std::size_t waiters_shown_max = 100;
constexpr int blockers_shown_max = 16;
/// Bounds for the compared pairs of items and the visited waits of holders per reply: a few
/// milliseconds of the store's thread. Blockers and waits beyond them are omitted.
constexpr std::size_t comparisons_max = 100'000;
constexpr std::size_t waits_looked_at_max = 10'000;

/// Whether one must wait for the other on this resource. Permits are counted, so every holder of
/// permits blocks every request for permits.
template <class Record>
bool blocks(const Record& other, const core::Wait& wait, const core::Resource& resource) {
  const auto theirs = core::items_at(other.items, resource);
  return std::ranges::any_of(core::items_at(wait.items, resource), [&](const core::Item& mine) {
    return std::ranges::any_of(theirs, [&](const core::Item& item) {
      return std::holds_alternative<core::Permits>(mine.claim) ||
             core::conflict(mine.claim, item.claim);
    });
  });
}

/// `comparisons` counts the compared pairs of the whole reply.
void write_blockers(const core::Wait& wait, const core::Resource& resource, const View& view,
                    std::size_t& comparisons, v1::Waiter& out) {
  // Charged before the comparison: one wait with many items must not exceed the bound.
  const auto is_full = [&](std::size_t items) {
    comparisons += items * wait.items.size();
    return out.blockers_size() >= blockers_shown_max || comparisons > comparisons_max;
  };
  const auto& lock = *view.state.locks.find(resource);
  for (const auto token : lock.holds()) {
    const auto& hold = *view.state.locks.find(token);
    if (is_full(hold.items.size())) {
      return;
    }
    // An upgrade does not wait for the hold that it upgrades.
    if (wait.upgrades != token && blocks(hold, wait, resource)) {
      auto& blocker = *out.add_blockers();
      blocker.set_lease_id(hold.lease.get());
      blocker.set_owner(std::string(hold.owner));
      blocker.set_fencing_token(token.get());
    }
  }
  // Waits ahead block too: the queue is FIFO, and no request overtakes a conflicting one.
  for (const auto turn : lock.queue()) {
    const auto& ahead = *view.state.locks.find(turn.ticket);
    // The queue is sorted by turn, so the first wait that is not ahead ends the search.
    if (!(turn < wait.turn()) || is_full(ahead.items.size())) {
      return;
    }
    if (blocks(ahead, wait, resource)) {
      auto& blocker = *out.add_blockers();
      blocker.set_lease_id(ahead.lease.get());
      blocker.set_owner(ahead.owner);
      blocker.set_ticket(turn.ticket.get());
    }
  }
}

/// Authenticated user of a lease. REQUIRES: the lease is alive.
std::string user_of(const View& view, core::LeaseId lease) {
  return std::string(view.state.leases.find(lease)->user);
}

void write_queue(const core::Resource& resource, const View& view, v1::ExplainResponse& out) {
  std::size_t comparisons = 0;
  std::size_t position = 0;
  core::Revision predecessor{};
  for (const auto turn : view.state.locks.find(resource)->queue()) {
    if (++position > waiters_shown_max) {
      break;
    }
    const auto& wait = *view.state.locks.find(turn.ticket);
    auto& waiter = *out.add_queue();
    wire::write(core::items_at(wait.items, resource).front(), *waiter.mutable_item());
    waiter.set_lease_id(wait.lease.get());
    waiter.set_request_id(wait.request.get());
    waiter.set_ticket(wait.ticket.get());
    waiter.set_owner(wait.owner);
    waiter.set_metadata(wait.metadata);
    waiter.set_user(user_of(view, wait.lease));
    waiter.set_waited_ms(wire::milliseconds(view.now - wait.since));
    waiter.set_position(position);
    waiter.set_predecessor(std::exchange(predecessor, turn.ticket).get());
    waiter.set_is_upgrade(wait.upgrades.has_value());
    write_blockers(wait, resource, view, comparisons, waiter);
  }
}

/// Waits of the holders for other locks, which explain why they do not release this one.
void write_waits_of_holders(const core::Lock& lock, const View& view, const auth::Access& access,
                            v1::ExplainResponse& out) {
  std::size_t looked_at = 0;
  for (const auto token : lock.holds()) {
    // Holders without waits count too, because visiting them costs time.
    if (++looked_at > waits_looked_at_max) {
      return;
    }
    const auto& hold = *view.state.locks.find(token);
    for (const auto ticket : view.state.locks.owned(hold.lease).waits) {
      if (static_cast<std::size_t>(out.waits_of_holders_size()) >= waiters_shown_max ||
          ++looked_at > waits_looked_at_max) {
        return;
      }
      const auto& wait = *view.state.locks.find(ticket);
      if (!access.may(auth::Verb::read, wait.items.front().name.view())) {
        continue;
      }
      auto& elsewhere = *out.add_waits_of_holders();
      elsewhere.set_lease_id(wait.lease.get());
      elsewhere.set_owner(wait.owner);
      elsewhere.set_name(wait.items.front().name);
      elsewhere.set_is_space(wait.items.front().kind() == core::ResourceKind::space);
      elsewhere.set_waited_ms(wire::milliseconds(view.now - wait.since));
    }
  }
}

/// Owner and lease for the summary; the owner is a free text and may be empty.
std::string who(const std::string& owner, std::uint64_t lease) {
  return (owner.empty() ? std::string("unnamed owner") : owner) + " (lease " +
         std::to_string(lease) + ")";
}

/// Built from the reply, so it contains only what the client may read.
std::string summary_of(const v1::ExplainResponse& explained, const std::string& name) {
  const auto& lock = explained.lock();
  if (lock.holder_count() == 0 && lock.waiter_count() == 0) {
    return name + " is free.";
  }
  std::string text = name;
  if (lock.holder_count() == 0) {
    // An acquire request for several locks is granted atomically, so it can wait at a free lock.
    text += " is free, but its waiters also wait for other locks";
  } else {
    const auto& first = lock.holders(0);
    text += " is held by " + who(first.owner(), first.lease_id()) + " for " +
            std::to_string(first.held_for_ms()) + " ms";
    if (lock.holder_count() > 1) {
      text += " and " + std::to_string(lock.holder_count() - 1) + " more";
    }
  }
  text += "; " + std::to_string(lock.waiter_count()) + " wait";
  if (explained.queue_size() > 0) {
    const auto& next = explained.queue(0);
    text += ", next is " + who(next.owner(), next.lease_id()) + " after " +
            std::to_string(next.waited_ms()) + " ms";
  }
  text += ".";
  if (explained.waits_of_holders_size() > 0) {
    const auto& elsewhere = explained.waits_of_holders(0);
    text += " " + who(elsewhere.owner(), elsewhere.lease_id()) + " also waits for " +
            elsewhere.name() + ".";
  }
  return text;
}

}  // namespace

void write_holder(const core::Hold& hold, const core::Item& item, const View& view,
                  v1::Holder& out) {
  wire::write(item, *out.mutable_item());
  out.set_lease_id(hold.lease.get());
  out.set_request_id(hold.request.get());
  out.set_fencing_token(hold.token.get());
  out.set_owner(std::string(hold.owner));
  out.set_metadata(std::string(hold.metadata));
  out.set_held_for_ms(wire::milliseconds(view.now - hold.acquired));
  out.set_count(hold.count);
  out.set_create_revision(hold.create_revision.get());
  out.set_user(user_of(view, hold.lease));
}

void write(const core::Resource& resource, const core::Lock& lock, const View& view,
           v1::LockStatus& out) {
  out.set_name(resource.name);
  out.set_is_space(resource.kind == core::ResourceKind::space);
  out.set_capacity(lock.capacity());
  out.set_create_revision(lock.create_revision().get());
  out.set_mod_revision(lock.mod_revision().get());
  out.set_version(lock.version());
  out.set_holder_count(lock.holds().size());
  out.set_waiter_count(lock.queue().size());
  for (const auto token : lock.holds()) {
    if (static_cast<std::size_t>(out.holders_size()) >= holders_shown_max) {
      break;
    }
    const auto& hold = *view.state.locks.find(token);
    for (const auto& item : core::items_at(hold.items, resource)) {
      write_holder(hold, item, view, *out.add_holders());
    }
  }
}

void explain(const core::Resource& resource, const View& view, const auth::Access& access,
             v1::ExplainResponse& out) {
  if (const auto* lock = view.state.locks.find(resource)) {
    write(resource, *lock, view, *out.mutable_lock());
    write_queue(resource, view, out);
    write_waits_of_holders(*lock, view, access, out);
  } else {
    out.mutable_lock()->set_name(resource.name);
    out.mutable_lock()->set_is_space(resource.kind == core::ResourceKind::space);
  }
  out.set_summary(summary_of(out, resource.name));
}

}  // namespace tenure::server
