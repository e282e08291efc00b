#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "core/bytes.hpp"
#include "core/invariants.hpp"
#include "core/snapshot.hpp"
#include "core/snapshot_format.hpp"
#include "core/validate.hpp"
#include "core/value_reader.hpp"

namespace tenure::core {
namespace {

/// Oldest format: without ended leases.
constexpr std::uint32_t without_ended = 1;

constexpr ClusterVersion version_of(std::uint32_t format) {
  return format <= snapshot_format(version_1) ? version_1 : ClusterVersion{format - 1};
}

// Largest error code of a remembered refusal: the state machine remembers none of the later codes.
constexpr std::uint64_t code_max = static_cast<std::uint64_t>(Errc::resource_exhausted);

/// Decoder of a snapshot body. Checks each value for itself; invariants::check() checks the state.
class Decoder : private ValueReader {
 public:
  Decoder(std::string_view body, std::uint32_t format)
      : ValueReader(body), format_(format), version_(version_of(format)) {}

  Result<State> run() {
    State state;
    state.version = version_;
    state.limits = limits(version_);
    state.revision = id<Revision>();
    state.now = time();
    state.leases.set_last_id(id<LeaseId>());
    const auto compacted = id<Revision>();
    get_leases(state);
    get_holds(state);
    get_waits(state);
    get_counters(state);
    state.events.compact(compacted);
    get_events(state);
    if (format_ > without_ended) {
      get_ended(state);
    }
    if (version_ >= version_2) {
      get_restoration(state);
    }
    expect_end();
    if (!ok()) {
      return fail(Errc::invalid_argument, "snapshot: " + error());
    }
    recount_bytes(state);
    if (const auto broken = invariants::check(state); !broken.empty()) {
      return fail(Errc::invalid_argument, "snapshot: " + broken.front());
    }
    // A deadlock ends in the step that closes it, so only a forged snapshot contains one. Later
    // steps search for cycles through their own lease only and would never end it.
    if (const auto deadlocked = invariants::check_no_deadlock(state); !deadlocked.empty()) {
      return fail(Errc::invalid_argument,
                  "snapshot: it contains a deadlock: " + deadlocked.front());
    }
    return state;
  }

 private:
  /// Checks that records are in strictly ascending order, which makes the encoding canonical.
  template <class Id>
  bool follows(std::optional<Id>& last, const Id& next) {
    if (ok() && last && !(*last < next)) {
      set_error("records are not in ascending order");
    }
    last = next;
    return ok();
  }

  Items some_items() {
    Items all;
    repeat([&] { all.push_back(item()); });
    if (all.empty()) {
      set_error("a request without items");
    }
    // An index of ranges contains each range of a hold once.
    if (have_overlap(all)) {
      set_error("two items of a request overlap");
      all.resize(1);
    }
    return all;
  }

  void get_leases(State& state) {
    std::optional<LeaseId> last;
    repeat([&] {
      Lease lease;
      lease.id = id<LeaseId>();
      lease.ttl = time();
      lease.deadline = time();
      lease.granted = time();
      lease.create_revision = id<Revision>();
      lease.request = id<RequestId>();
      lease.client = text_view();
      lease.address = text_view();
      lease.last_seen = time();
      if (version_ >= version_2) {
        lease.user = text_view();
      }
      std::optional<RequestId> last_request;
      std::vector<std::pair<RequestId, History::Entry>> finished;
      repeat([&] {
        const auto request = id<RequestId>();
        History::Entry entry;
        entry.since = id<Revision>();
        entry.life = one_of(History::Life::over, "the life of a request");
        if (version_ >= version_2) {
          entry.finished = time();
        }
        entry.answer = answer();
        if (!follows(last_request, request)) {
          return;
        }
        if (entry.life == History::Life::live) {
          lease.history.record(request, std::move(entry));
        } else {
          finished.emplace_back(request, std::move(entry));
        }
      });
      note_all(std::move(finished), lease.history);
      if (follows(last, lease.id)) {
        state.leases.add(std::move(lease));
      }
    });
  }

  static_assert(std::variant_size_v<Answer> == 6, "a new answer is read here, too");

  /// Records entries by revision: History inserts ascending revisions in O(1).
  static void note_all(std::vector<std::pair<RequestId, History::Entry>> entries,
                       History& history) {
    std::ranges::sort(entries, {},
                      [](const auto& entry) { return std::pair(entry.second.since, entry.first); });
    for (auto& [request, entry] : entries) {
      history.record(request, std::move(entry));
    }
  }

  Answer answer() {
    switch (up_to(std::variant_size_v<Answer> - 1, "the kind of an answer")) {
      case 0: return Waiting{id<Revision>()};
      case 1: {
        const auto token = id<FencingToken>();
        return Granted{.token = token, .count = count32("a count")};
      }
      case 2: return Released{.count_left = count32("a count")};
      case 4: return Downgraded{.mode = mode()};
      case 5: return TtlSet{time()};
      default: return Box(refused());
    }
  }

  Refused refused() {
    Refused refused;
    const auto code = up_to(code_max, "an error code");
    if (code == 0) {
      set_error("an error code is out of range");
    }
    refused.error.code = static_cast<Errc>(code);
    refused.error.detail = text();
    repeat([&] {
      CycleStep step;
      step.lease = id<LeaseId>();
      step.request = id<RequestId>();
      step.owner = text();
      step.resource = resource();
      refused.cycle.push_back(std::move(step));
    });
    return refused;
  }

  void get_holds(State& state) {
    std::optional<FencingToken> last;
    repeat([&] {
      Hold hold;
      hold.token = id<FencingToken>();
      hold.create_revision = id<Revision>();
      hold.lease = id<LeaseId>();
      hold.request = id<RequestId>();
      hold.items = some_items();
      hold.owner = text_view();
      hold.metadata = text_view();
      hold.acquired = time();
      hold.count = count32("a count");
      if (follows(last, hold.token)) {
        const Revision granted{hold.token.get()};
        state.locks.add(std::move(hold), granted);
      }
    });
  }

  void get_waits(State& state) {
    std::optional<Revision> last;
    repeat([&] {
      Wait wait;
      wait.ticket = id<Revision>();
      wait.lease = id<LeaseId>();
      wait.request = id<RequestId>();
      wait.items = some_items();
      wait.owner = text_view();
      wait.metadata = text_view();
      wait.since = time();
      const auto upgrades = id<FencingToken>();
      wait.upgrades = upgrades == FencingToken{} ? std::nullopt : std::optional(upgrades);
      if (follows(last, wait.ticket)) {
        state.leases.count_wait(wait.lease);
        state.locks.add(std::move(wait));
      }
    });
  }

  /// Reads the counters of the locks. Holds and waits were read before, so the records exist, and
  /// both sequences are in the same order.
  void get_counters(State& state) {
    std::vector<std::pair<Resource, Lock::Counters>> unusual;
    const auto& locks = state.locks.locks();
    auto it = locks.begin();
    repeat([&] {
      const auto where = resource_view();
      Lock::Counters counters;
      counters.create_revision = id<Revision>();
      counters.mod_revision = id<Revision>();
      counters.version = number();
      if (!ok()) {
        return;
      }
      if (it == locks.end() || ResourceView(it->first) != where) {
        set_error("the locks are not those that are held and waited for, in ascending order");
        return;
      }
      if (it->second.counters() != counters) {
        unusual.emplace_back(it->first, counters);
      }
      ++it;
    });
    if (ok() && it != locks.end()) {
      set_error("a lock without a record");
    }
    for (const auto& [resource, counters] : unusual) {
      state.locks.set_counters(resource, counters);
    }
  }

  void get_events(State& state) {
    auto last = state.events.compact_revision();
    bool is_first = true;
    repeat([&] {
      Event event;
      event.revision = id<Revision>();
      event.time = time();
      event.type = one_of(last_event_type, "the type of an event");
      event.item = item();
      event.lease = id<LeaseId>();
      event.request = id<RequestId>();
      event.token = id<FencingToken>();
      event.owner = text_view();
      event.metadata = text_view();
      if (version_ >= version_2) {
        event.user = text_view();
        event.operator_name = text_view();
        event.reason = text_view();
      }
      if (is_first ? event.revision <= last : event.revision < last) {
        set_error("events are not in order");
      }
      if (ok()) {
        last = event.revision;
        is_first = false;
        state.events.append(std::move(event));
      }
    });
  }

  void get_ended(State& state) {
    repeat([&] {
      LeaseOrigin origin{.id = id<LeaseId>(), .request = id<RequestId>()};
      if (version_ >= version_2) {
        origin.ended = time();
      }
      if (origin.request == RequestId{} ||
          state.leases.ended().size() == LeaseTable::ended_max(version_)) {
        set_error("an ended lease that would not be remembered");
      }
      state.leases.remember_ended(origin);
    });
  }

  void get_restoration(State& state) {
    state.restoration.until = time();
    std::optional<LeaseId> last;
    repeat([&] {
      const auto lease = id<LeaseId>();
      if (follows(last, lease)) {
        state.restoration.unconfirmed.insert(lease);
      }
    });
  }

  std::uint32_t format_;
  ClusterVersion version_;
};

}  // namespace

// Checks the frame (magic, format, length, checksum) before it reads the body, so that damage is
// reported as such and not as an invalid state.
Result<State> decode(std::string_view bytes) {
  if (bytes.size() < snapshot_head_bytes + snapshot_tail_bytes) {
    return fail(Errc::invalid_argument, "snapshot: too short to be one");
  }
  if (!bytes.starts_with(snapshot_magic)) {
    return fail(Errc::invalid_argument, "snapshot: it does not begin with TENURESN");
  }
  ByteReader head(bytes.substr(snapshot_magic.size()));
  const auto format = head.fixed32();
  if (const auto newest = snapshot_format(newest_version);
      format < without_ended || format > newest) {
    return fail(format > newest ? Errc::unsupported : Errc::invalid_argument,
                "snapshot: version " + std::to_string(format) +
                    " is not known here; this program reads versions " +
                    std::to_string(without_ended) + " to " + std::to_string(newest));
  }
  const auto body_bytes = head.fixed64();
  if (body_bytes != bytes.size() - snapshot_head_bytes - snapshot_tail_bytes) {
    return fail(Errc::invalid_argument, "snapshot: the body should have " +
                                            std::to_string(body_bytes) +
                                            " bytes; it is cut off or something was appended");
  }
  const auto covered = bytes.substr(0, bytes.size() - snapshot_tail_bytes);
  if (ByteReader(bytes.substr(covered.size())).fixed32() != crc32c(covered)) {
    return fail(Errc::invalid_argument, "snapshot: checksum mismatch; bytes were changed");
  }
  return Decoder(covered.substr(snapshot_head_bytes), format).run();
}

}  // namespace tenure::core
