#include "core/invariants.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/admission.hpp"
#include "core/deadlock_set.hpp"
#include "core/items_at.hpp"

namespace tenure::core::invariants {
namespace {

std::string named(const Resource& resource) {
  return (resource.kind == ResourceKind::name ? "lock '" : "space '") + std::string(resource.name) +
         "'";
}

/// Subject of a violation. Formatted lazily: a check visits a million records and usually reports
/// none.
struct Subject {
  std::string_view kind{};
  std::uint64_t number = 0;
  const Resource* resource = nullptr;  ///< Resource, if the subject is one.
};

std::string operator+(const std::string& words, const Subject& subject) {
  return words + (subject.resource != nullptr
                      ? named(*subject.resource)
                      : std::string(subject.kind) + std::to_string(subject.number));
}

/// Checks one state and collects its violations.
class Inspection {
 public:
  Inspection(const State& state, Visits& visits) : state_(state), visits_(visits) {}

  std::vector<std::string> run() && {
    // Half of the range is left, so revisions do not wrap within the life of a store.
    expect(state_.revision.get() < 1ULL << 63, "the revision is close to its end");
    check_limit_values();
    check_leases();
    check_holds();
    check_waits();
    for (const auto& [resource, lock] : state_.locks.locks()) {
      check_lock(resource, lock);
    }
    check_owners();
    check_clients();
    check_events();
    check_restoration();
    return std::move(broken_);
  }

 private:
  /// Reports a violation unless `is_true`. Concatenates the words only then.
  template <class... Words>
  void expect(bool is_true, const Words&... words) {
    if (!is_true) {
      broken_.push_back((std::string() + ... + words));
    }
  }

  /// Whether a revision was assigned: not 0 and not beyond the present one.
  [[nodiscard]] bool is_past(Revision revision) const {
    return revision != Revision{} && revision <= state_.revision;
  }

  /// Validates the limits themselves. Counts may exceed them, if SetLimits lowered them.
  void check_limit_values() {
    if (const auto error = core::check(state_.limits)) {
      expect(false, "limits: ", error->detail);
    }
  }

  /// Checks each lease: times, bytes and history; and the number of remembered ended leases.
  void check_leases() {
    expect(state_.leases.has_sound_index(),
           "the index of leases by deadline or by client is wrong");
    for (const auto& [id, shared] : state_.leases.all()) {
      const auto& lease = *shared;
      const Subject name{.kind = "lease ", .number = id.get()};
      expect(id != LeaseId{}, "a lease has the id 0");
      expect(lease.deadline > state_.now, name, " should have expired");
      expect(lease.ttl.count() > 0, name, " has no ttl");
      expect(lease.granted <= lease.last_seen && lease.last_seen <= state_.now, name,
             " was seen before it was granted, or in the future");
      expect(lease.deadline <= state_.now + lease.ttl, name, " lives longer than its ttl");
      expect(is_past(lease.create_revision), name, " is of the future");
      expect(lease.bytes == count_bytes(state_, lease), name, ": its bytes are counted wrong");
      check_history(lease, name);
    }
    expect(state_.leases.ended().size() <= LeaseTable::ended_max(state_.version),
           "too many ended leases are remembered");
  }

  /// Checks that a lease remembers its live requests exactly, and not too many finished ones.
  void check_history(const Lease& lease, const Subject& name) {
    const auto& history = lease.history;
    const auto& owned = state_.locks.owned(lease.id);
    expect(history.has_sound_index(), name, ": the index of its answers is wrong");
    expect(history.finished() <= state_.limits.answers_per_lease_max, name,
           " remembers too many answers");
    expect(history.size() - history.finished() == owned.waits.size() + owned.holds.size(), name,
           ": its live requests are not its waits and holds");
    history.for_each([&](RequestId request, const History::Entry& entry) {
      expect(request != RequestId{}, name, " remembers a request without an id");
      expect(entry.since <= state_.revision, name, " remembers the future");
      if (const auto* waiting = std::get_if<Waiting>(&entry.answer)) {
        const auto* wait = state_.locks.find(waiting->ticket);
        expect(entry.life == History::Life::live && wait != nullptr && wait->lease == lease.id &&
                   wait->request == request,
               name, " remembers a wait that is over");
      }
    });
  }

  /// Checks that holds and waits share.
  template <class Record>
  void check_record(const Record& record, const Subject& name) {
    const auto* lease = state_.leases.find(record.lease);
    expect(lease != nullptr, name, " has no live lease");
    const auto entry = lease == nullptr ? std::nullopt : lease->history.find(record.request);
    expect(entry && entry->life == History::Life::live, name, " is not remembered by its lease");
    const auto unordered = [](const Item& left, const Item& right) {
      return !comes_before(left, right);
    };
    expect(std::ranges::adjacent_find(record.items, unordered) == record.items.end(), name,
           ": its items are not in order");
  }

  /// Checks each hold, its entry in each of its locks, and the counters by mode.
  void check_holds() {
    LockTable::Counts held{};
    for (const auto& [token, shared] : state_.locks.holds()) {
      const auto& hold = *shared;
      const Subject name{.kind = "hold ", .number = token.get()};
      check_record(hold, name);
      expect(is_past(Revision{token.get()}), name, " is of the future");
      expect(is_past(hold.create_revision) && hold.create_revision.get() <= token.get(), name,
             " was created after it was granted");
      expect(hold.count > 0, name, " is held zero times");
      expect(hold.count == 1 || hold.items.size() == 1, name, ": several items, entered again");
      for (const auto& item : hold.items) {
        const auto* lock = state_.locks.find(item.resource_view());
        // Not by expect(), which would build the name of the resource for each of a million items.
        if (lock == nullptr || !lock->has_holder(token)) {
          expect(false, name, " is not known to ", named(item.resource()));
        }
        ++held[kind_of(item.claim)];
      }
    }
    expect(held == state_.locks.held(), "what is held in each mode is counted wrong");
  }

  /// Checks each wait, its entry in each of its queues, and that it is blocked.
  void check_waits() {
    std::vector<const Wait*> waits;
    for (const auto& [ticket, shared] : state_.locks.waits()) {
      const auto& wait = *shared;
      const Subject name{.kind = "wait ", .number = ticket.get()};
      check_record(wait, name);
      expect(is_past(ticket), name, " is of the future");
      const auto* lease = state_.leases.find(wait.lease);
      const auto entry = lease == nullptr ? std::nullopt : lease->history.find(wait.request);
      expect(entry && entry->answer == Answer(Waiting{ticket}), name,
             " is not remembered as a wait");
      for (const auto& item : wait.items) {
        const auto* lock = state_.locks.find(item.resource());
        expect(lock != nullptr && lock->queue().contains(wait.turn()), name,
               " is not in the queue of ", named(item.resource()));
      }
      if (check_upgrade(wait, name)) {
        waits.push_back(&wait);
      }
    }
    // During a restoration nothing is granted, so admissible waits are correct.
    if (!state_.restoration.is_active()) {
      check_blockers(std::move(waits));
    }
  }

  /// Visits waits by turn, so that one Admission reads each queue once.
  void check_blockers(std::vector<const Wait*> waits) {
    std::ranges::sort(waits, {}, &Wait::turn);
    Admission admission(state_.locks, visits_);
    for (const auto* wait : waits) {
      expect(!admission.admits(*wait), Subject{.kind = "wait ", .number = wait->ticket.get()},
             " waits for nothing");
    }
  }

  /// Checks the hold that a wait upgrades. Returns false if Admission cannot evaluate the wait.
  bool check_upgrade(const Wait& wait, const Subject& name) {
    const auto* hold = wait.upgrades ? state_.locks.find(*wait.upgrades) : nullptr;
    if (hold == nullptr) {
      return true;
    }
    const bool fits = hold->lease == wait.lease && hold->items.size() == 1 &&
                      wait.items.size() == 1 &&
                      hold->items.front().resource() == wait.items.front().resource() &&
                      hold->items.front().claim.index() == wait.items.front().claim.index();
    expect(fits, name, " upgrades a hold that does not fit");
    return fits;
  }

  /// Checks the record of a resource: its revisions, and its counters against the holds and waits.
  void check_lock(const Resource& resource, const Lock& lock) {
    const Subject name{.resource = &resource};
    expect(!lock.holds().empty() || !lock.queue().empty(), name, " is free and has a record");
    expect(lock.create_revision() <= lock.mod_revision() && is_past(lock.mod_revision()), name,
           ": its revisions are not in order");
    expect(lock.holds().empty() || lock.version() > 0, name, " is held in version 0");
    Load held;
    for (const auto token : lock.holds()) {
      const auto* hold = state_.locks.find(token);
      expect(hold != nullptr, name, " has a holder that is not known");
      if (hold != nullptr) {
        add_items(resource, lock, hold->items, held);
      }
    }
    Load queued;
    for (const auto& turn : lock.queue()) {
      const auto* wait = state_.locks.find(turn.ticket);
      expect(wait != nullptr, name, " has a waiter that is not known");
      if (wait != nullptr) {
        add_items(resource, lock, wait->items, queued);
      }
    }
    expect(held == lock.held(), name, " counts its holders wrong");
    expect(queued == lock.queued(), name, " counts its waiters wrong");
    check_holders(resource, lock);
  }

  /// Adds the items of a record at this resource to a load, and checks their permits. Each record
  /// that a lock lists has at least one.
  void add_items(const Resource& resource, const Lock& lock, std::span<const Item> items,
                 Load& load) {
    const auto here = items_at(items, resource);
    for (const auto& item : here) {
      const auto* permits = std::get_if<Permits>(&item.claim);
      const Subject name{.resource = &resource};
      expect((permits == nullptr ? 0 : permits->capacity) == lock.capacity(), name,
             ": capacities differ");
      expect(permits == nullptr || (permits->wanted > 0 && permits->wanted <= permits->capacity),
             name, ": a number of permits that cannot be");
      load.add(item.claim);
    }
    expect(!here.empty(), Subject{.resource = &resource}, " lists a claim that does not exist");
  }

  /// Checks that the holders are compatible: by counters for a name, by overlap for ranges.
  void check_holders(const Resource& resource, const Lock& lock) {
    const Subject name{.resource = &resource};
    const auto held = lock.held();
    expect(lock.capacity() == 0 || held.permits <= lock.capacity(), name,
           ": more permits are held than there are");
    for (const auto mode : all_lock_modes) {
      auto others = held;
      // A holder is compatible with all others: removes one of its mode and asks for admission
      // again.
      auto& same = others.modes[static_cast<std::size_t>(mode)];
      if (same > 0) {
        --same;
        expect(others.admits(mode), name, ": holders are not compatible");
      }
    }
    if (resource.kind == ResourceKind::space) {
      check_space(resource, lock);
    }
  }

  /// Entry of an index of ranges, as the holds or waits have it.
  template <class Entry>
  struct Listed {
    const Keys* keys = nullptr;
    Entry entry{};
  };

  /// Checks the held ranges of a space, and that its index lists exactly those of the holds and
  /// waits.
  void check_space(const Resource& resource, const Lock& lock) {
    std::vector<Listed<RangeIndex::Held>> held;
    for (const auto token : lock.holds()) {
      const auto* hold = state_.locks.find(token);
      for_each_range(resource, hold == nullptr ? nullptr : &hold->items, [&](const Keys& keys) {
        held.push_back({.keys = &keys, .entry = {.token = token, .mode = keys.mode}});
      });
    }
    std::vector<Listed<RangeIndex::Queued>> queued;
    for (const auto& turn : lock.queue()) {
      const auto* wait = state_.locks.find(turn.ticket);
      for_each_range(resource, wait == nullptr ? nullptr : &wait->items, [&](const Keys& keys) {
        queued.push_back({.keys = &keys, .entry = {.turn = turn, .mode = keys.mode}});
      });
    }
    const Subject name{.resource = &resource};
    expect(lists_exactly(lock.ranges().held, held), name, ": its index of held ranges is wrong");
    expect(lists_exactly(lock.ranges().queued, queued), name,
           ": its index of wanted ranges is wrong");
    expect(are_compatible(held), name, ": holders are not compatible");
  }

  /// Calls visit(keys) for the ranges of a record in this space; nothing for a null record.
  template <class Visit>
  static void for_each_range(const Resource& resource, const Items* items, const Visit& visit) {
    for (const auto& item :
         items == nullptr ? std::span<const Item>() : items_at(*items, resource)) {
      visit(std::get<Keys>(item.claim));
    }
  }

  /// Whether the index has these entries and no others. Sorts them in the order of the index.
  template <class Tree, class Entry>
  bool lists_exactly(const Tree& tree, std::vector<Listed<Entry>>& listed) {
    visits_.add(listed.size());
    std::ranges::sort(listed, [](const Listed<Entry>& left, const Listed<Entry>& right) {
      const auto order = left.keys->range.start() <=> right.keys->range.start();
      return order < 0 || (order == 0 && left.entry < right.entry);
    });
    auto it = listed.begin();
    bool is_same = tree.size() == listed.size();
    tree.visit_ranges([&](const auto& start, const auto& end, const Entry& entry) {
      is_same = is_same && it != listed.end() && it->entry == entry &&
                it->keys->range.start() == start && it->keys->range.end() == end;
      it += is_same ? 1 : 0;
    });
    return is_same;
  }

  /// Whether no two of these ranges overlap in incompatible modes. REQUIRES: they are in the order
  /// of their starts.
  bool are_compatible(const std::vector<Listed<RangeIndex::Held>>& held) {
    visits_.add(held.size());
    // A range overlaps one that starts before it if that one ends behind its start, so for each
    // mode the range that reaches furthest decides.
    std::array<const Keys*, all_lock_modes.size()> furthest{};
    for (const auto& [keys, entry] : held) {
      for (const auto mode : all_lock_modes) {
        const auto* other = furthest[index_of(mode)];
        if (other != nullptr && conflict(*other, *keys)) {
          return false;
        }
      }
      auto& longest = furthest[index_of(keys->mode)];
      if (longest == nullptr ||
          (longest->range.end() &&
           (!keys->range.end() || *longest->range.end() < *keys->range.end()))) {
        longest = keys;
      }
    }
    return true;
  }

  /// Checks that each owned record exists with this owner, and that each record is owned.
  void check_owners() {
    std::size_t holds = 0;
    std::size_t waits = 0;
    for (const auto& [lease, owned] : state_.locks.owners()) {
      std::size_t items = 0;
      std::size_t bytes = 0;
      const auto is_its = [&items, &bytes, owner = lease](const auto* record) {
        items += record == nullptr ? 0 : record->items.size();
        bytes += record == nullptr ? 0 : bytes_of(*record);
        return record != nullptr && record->lease == owner;
      };
      const bool is_sound =
          std::ranges::all_of(owned.holds,
                              [&](auto token) { return is_its(state_.locks.find(token)); }) &&
          std::ranges::all_of(owned.waits,
                              [&](auto ticket) { return is_its(state_.locks.find(ticket)); });
      expect(is_sound && items == owned.items && bytes == owned.bytes && items > 0,
             "the index of what leases own is wrong");
      holds += owned.holds.size();
      waits += owned.waits.size();
    }
    expect(holds == state_.locks.holds().size() && waits == state_.locks.waits().size(),
           "the index of what leases own is not complete");
  }

  /// Recounts the waits by client and compares them with the counters of LeaseTable.
  void check_clients() {
    std::map<std::string_view, std::size_t> waits;
    for (const auto& [ticket, shared] : state_.locks.waits()) {
      const auto* lease = state_.leases.find(shared->lease);
      if (lease != nullptr && !lease->client.empty()) {
        ++waits[lease->client.view()];
      }
    }
    const bool is_sound = std::ranges::all_of(waits, [&](const auto& client) {
      return state_.leases.waits_of_client(client.first) == client.second;
    });
    expect(is_sound && waits.size() == state_.leases.waiting_clients(),
           "the waits of a client are counted wrong");
  }

  /// Checks the order of events, and that none is of a compacted or future revision.
  void check_events() {
    const auto& events = state_.events.all();
    expect(events.size() <= state_.limits.events_max, "there are too many events");
    expect(std::ranges::is_sorted(events.in_order(), {}, &Event::revision),
           "events are not in order");
    expect(state_.events.compact_revision() <= state_.revision, "the future is compacted");
    expect(events.empty() || (events.front().revision > state_.events.compact_revision() &&
                              events.back().revision <= state_.revision),
           "there are events of the future, or of what was compacted");
  }

  /// Checks that the grace period is not over, and that all unconfirmed leases are live.
  void check_restoration() {
    const auto& restoration = state_.restoration;
    expect(!restoration.is_active() || restoration.until > state_.now,
           "the restoration should be over");
    expect(restoration.is_active() || restoration.unconfirmed.empty(),
           "leases are unconfirmed though the state is not being restored");
    expect(std::ranges::all_of(restoration.unconfirmed,
                               [&](LeaseId id) { return state_.leases.find(id) != nullptr; }),
           "an unconfirmed lease does not live");
  }

  const State& state_;
  Visits& visits_;
  std::vector<std::string> broken_;
};

/// Whether the hold gained an item or a stronger mode.
bool has_grown(const Hold& before, const Hold& after) {
  return !std::ranges::all_of(after.items, [&](const Item& item) {
    return std::ranges::any_of(before.items, [&](const Item& old) {
      if (old == item) {
        return true;
      }
      if (old.name != item.name || old.claim.index() != item.claim.index() ||
          std::holds_alternative<Permits>(item.claim)) {
        return false;
      }
      auto weaker = old;
      set_mode(weaker, mode_of(item));
      return weaker == item && covers(mode_of(old), mode_of(item));
    });
  });
}

}  // namespace

std::vector<std::string> check(const State& state) {
  Visits visits;
  return check(state, visits);
}

std::vector<std::string> check(const State& state, Visits& visits) {
  return Inspection(state, visits).run();
}

std::vector<std::string> check_no_deadlock(const State& state) {
  std::vector<std::string> broken;
  for (const auto lease : find_deadlocked(state.locks).leases) {
    broken.push_back("lease " + std::to_string(lease.get()) + " can never go on");
  }
  return broken;
}

std::vector<std::string> check_step(const State& before, const State& after) {
  std::vector<std::string> broken;
  if (after.revision <= before.revision) {
    broken.emplace_back("the revision did not grow");
  }
  if (after.now < before.now) {
    broken.emplace_back("time went back");
  }
  if (after.events.compact_revision() < before.events.compact_revision()) {
    broken.emplace_back("what was compacted came back");
  }
  for (const auto& [resource, lock] : after.locks.locks()) {
    const auto* old = before.locks.find(resource);
    if (old != nullptr && (lock.mod_revision() < old->mod_revision() ||
                           lock.create_revision() < old->create_revision())) {
      broken.push_back(named(resource) + ": its revisions went back");
    }
    // The same create_revision: the lock was not free in between, so its version only grows.
    const bool is_same = old != nullptr && lock.create_revision() == old->create_revision();
    if (is_same &&
        (std::ranges::equal(old->holds(), lock.holds()) ? lock.version() < old->version()
                                                        : lock.version() <= old->version())) {
      broken.push_back(named(resource) + ": its version does not count its changes");
    }
  }
  for (const auto& [token, shared] : after.locks.holds()) {
    const auto& hold = *shared;
    const auto* old = before.locks.find(token);
    if (old == nullptr && token.get() <= before.revision.get()) {
      broken.push_back("token " + std::to_string(token.get()) + " is not new");
    }
    if (old != nullptr && has_grown(*old, hold)) {
      broken.push_back("hold " + std::to_string(token.get()) + " got stronger without a new token");
    }
  }
  return broken;
}

}  // namespace tenure::core::invariants
