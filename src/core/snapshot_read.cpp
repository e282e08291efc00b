#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include "core/bytes.hpp"
#include "core/invariants.hpp"
#include "core/snapshot.hpp"
#include "core/snapshot_format.hpp"

namespace tenure::core {
namespace {

constexpr std::uint64_t u32_max = std::numeric_limits<std::uint32_t>::max();
// Beyond what a stamp can set; the sum of two of them stays within 63 bits.
constexpr std::uint64_t time_max = (1ULL << 62) - 1;
constexpr std::uint64_t code_max = static_cast<std::uint64_t>(Errc::resource_exhausted);

/// Reads a body. Numbers are checked as they come; what they mean together, by
/// invariants::check().
class Decoder {
 public:
  explicit Decoder(std::string_view body) : in_(body) {}

  Result<State> run() {
    State state;
    get(state.limits);
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
    if (in_.ok() && in_.left() > 0) {
      in_.complain("there is something behind the end");
    }
    if (!in_.ok()) {
      return fail(Errc::invalid_argument, "snapshot: " + in_.complaint());
    }
    if (const auto broken = invariants::check(state); !broken.empty()) {
      return fail(Errc::invalid_argument, "snapshot: " + broken.front());
    }
    return state;
  }

 private:
  template <class Id>
  Id id() {
    return Id{in_.number()};
  }
  ClusterTime time() {
    return ClusterTime{static_cast<std::int64_t>(in_.number_up_to(time_max, "a time"))};
  }
  std::uint32_t count32(std::string_view what) {
    return static_cast<std::uint32_t>(in_.number_up_to(u32_max, what));
  }
  template <class Enum>
  Enum one_of(Enum last, std::string_view what) {
    return static_cast<Enum>(
        in_.number_up_to(static_cast<std::uint64_t>(std::to_underlying(last)), what));
  }

  /// Calls read() as often as the next number says, while all is well.
  template <class Read>
  void repeat(const Read& read) {
    // Each takes at least a byte, so a wild number runs into the end soon.
    for (auto left = in_.number(); left > 0 && in_.ok(); --left) {
      read();
    }
  }

  /// Records come in strictly ascending order; this makes the bytes canonical.
  template <class Id>
  bool follows(std::optional<Id>& last, const Id& next) {
    if (in_.ok() && last && !(*last < next)) {
      in_.complain("records are not in ascending order");
    }
    last = next;
    return in_.ok();
  }

  void get(Limits& limits) {
    for_each_limit(limits, [this](auto& value) {
      using Value = std::remove_cvref_t<decltype(value)>;
      if constexpr (std::is_same_v<Value, ClusterTime>) {
        value = time();
      } else {
        value = static_cast<Value>(in_.number_up_to(std::numeric_limits<Value>::max(), "a limit"));
      }
    });
  }

  Place place() {
    auto name = in_.text();
    return {.name = std::move(name), .kind = one_of(PlaceKind::space, "the kind of a place")};
  }

  LockMode mode() { return one_of(LockMode::exclusive, "a mode"); }

  Item item() {
    Item item{.name = in_.text(), .claim = Whole{}};
    switch (in_.number_up_to(2, "the kind of an item")) {
      case 0: item.claim = Whole{.mode = mode()}; break;
      case 1: {
        const auto capacity = count32("a capacity");
        item.claim = Permits{.capacity = capacity, .wanted = count32("a number of permits")};
        break;
      }
      default: item.claim = keys(); break;
    }
    return item;
  }

  Keys keys() {
    const auto held = mode();
    const auto start = in_.text();
    if (in_.number_up_to(1, "the end of a range") == 0) {
      return {.range = BytesRange::at_least(start), .mode = held};
    }
    const auto range = BytesRange::half_open(start, in_.text());
    if (!range) {
      in_.complain("a range is empty");
    }
    return {.range = range.value_or(BytesRange::all()), .mode = held};
  }

  std::vector<Item> items() {
    std::vector<Item> all;
    repeat([&] { all.push_back(item()); });
    if (all.empty()) {
      in_.complain("a request without items");
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
      lease.client = in_.text();
      lease.address = in_.text();
      lease.last_seen = time();
      std::optional<RequestId> last_request;
      repeat([&] {
        const auto request = id<RequestId>();
        History::Entry entry;
        entry.since = id<Revision>();
        entry.life = one_of(History::Life::over, "the life of a request");
        entry.answer = answer();
        if (follows(last_request, request)) {
          lease.history.note(request, std::move(entry));
        }
      });
      if (follows(last, lease.id)) {
        state.leases.add(std::move(lease));
      }
    });
  }

  Answer answer() {
    switch (in_.number_up_to(3, "the kind of an answer")) {
      case 0: return Waiting{id<Revision>()};
      case 1: {
        const auto token = id<FencingToken>();
        return Granted{.token = token, .count = count32("a count")};
      }
      case 2: return Released{.count_left = count32("a count")};
      default: return refused();
    }
  }

  Refused refused() {
    Refused refused;
    const auto code = in_.number_up_to(code_max, "an error code");
    if (code == 0) {
      in_.complain("an error code is out of range");
    }
    refused.error.code = static_cast<Errc>(code);
    refused.error.detail = in_.text();
    repeat([&] {
      CycleStep step;
      step.lease = id<LeaseId>();
      step.request = id<RequestId>();
      step.owner = in_.text();
      step.place = place();
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
      hold.items = items();
      hold.owner = in_.text();
      hold.metadata = in_.text();
      hold.acquired = time();
      hold.count = count32("a count");
      if (follows(last, hold.token)) {
        state.locks.add(std::move(hold), {});
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
      wait.items = items();
      wait.owner = in_.text();
      wait.metadata = in_.text();
      wait.since = time();
      const auto upgrades = id<FencingToken>();
      wait.upgrades = upgrades == FencingToken{} ? std::nullopt : std::optional(upgrades);
      if (follows(last, wait.ticket)) {
        state.locks.add(std::move(wait));
      }
    });
  }

  void get_counters(State& state) {
    std::optional<Place> last;
    std::size_t count = 0;
    repeat([&] {
      auto where = place();
      Lock counters;
      counters.create_revision = id<Revision>();
      counters.mod_revision = id<Revision>();
      counters.version = in_.number();
      ++count;
      if (!follows(last, where)) {
        return;
      }
      if (state.locks.find(where) == nullptr) {
        in_.complain("a lock that nobody holds or waits for");
        return;
      }
      state.locks.set_counters(where, counters);
    });
    if (count != state.locks.locks().size()) {
      in_.complain("a lock without a record");
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
      event.owner = in_.text();
      event.metadata = in_.text();
      if (is_first ? event.revision <= last : event.revision < last) {
        in_.complain("events are not in order");
      }
      if (in_.ok()) {
        last = event.revision;
        is_first = false;
        state.events.append(std::move(event));
      }
    });
  }

  ByteReader in_;
};

}  // namespace

Result<State> decode(std::string_view bytes) {
  if (bytes.size() < snapshot_head_bytes + snapshot_tail_bytes) {
    return fail(Errc::invalid_argument, "snapshot: too short to be one");
  }
  if (!bytes.starts_with(snapshot_magic)) {
    return fail(Errc::invalid_argument, "snapshot: it does not begin with TENURESN");
  }
  ByteReader head(bytes.substr(snapshot_magic.size()));
  const auto version = head.fixed32();
  if (version != snapshot_version) {
    return fail(Errc::invalid_argument, "snapshot: version " + std::to_string(version) +
                                            " is not known here; this program reads version " +
                                            std::to_string(snapshot_version));
  }
  const auto body_bytes = head.fixed64();
  if (body_bytes != bytes.size() - snapshot_head_bytes - snapshot_tail_bytes) {
    return fail(Errc::invalid_argument, "snapshot: the body should have " +
                                            std::to_string(body_bytes) +
                                            " bytes; it is cut off or something was appended");
  }
  const auto covered = bytes.substr(0, bytes.size() - snapshot_tail_bytes);
  if (ByteReader(bytes.substr(covered.size())).fixed32() != crc32c(covered)) {
    return fail(Errc::invalid_argument, "snapshot: the checksum does not fit; bytes were changed");
  }
  return Decoder(covered.substr(snapshot_head_bytes)).run();
}

}  // namespace tenure::core
