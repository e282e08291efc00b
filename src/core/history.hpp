#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/box.hpp"
#include "core/cow_map.hpp"
#include "core/flat_queue.hpp"
#include "core/ids.hpp"
#include "core/outcome.hpp"
#include "core/usage.hpp"

namespace tenure::core {

/// The request waits in the queue under this ticket.
struct Waiting {
  Revision ticket{};

  friend bool operator==(const Waiting&, const Waiting&) = default;
};

/// The lease has got this ttl.
struct TtlSet {
  ClusterTime ttl{};

  friend bool operator==(const TtlSet&, const TtlSet&) = default;
};

/// Answer to a request, or its wait. A refusal is boxed, because it is rare and large.
using Answer = std::variant<Waiting, Granted, Released, Box<Refused>, Downgraded, TtlSet>;

/// Duplicate detection of one lease (as the client table of Viewstamped Replication): requests and
/// their answers, so that each request is applied exactly once. Requests that wait or hold are
/// never forgotten; finished ones are, oldest first. Ends with the lease.
///
/// A lease may hold 100,000 locks, so the common entry (granted, hold lives) is one token in held_;
/// all others are in compact_. Copies are copy-on-write. Not thread safe.
class History {
 public:
  /// `live`: the request waits, or its hold lives. `over`: its answer may be forgotten.
  enum class Life : std::uint8_t { live, over };

  struct Entry {
    Answer answer;
    Revision since{};  ///< Revision of the last change; the least is forgotten first.
    Life life = Life::live;
    ClusterTime
        finished{};  ///< Time at which it was over. Since version 2; 0 before, and while it lives.

    friend bool operator==(const Entry&, const Entry&) = default;
  };

  /// Entry of a request; nothing if it is new or was forgotten.
  [[nodiscard]] std::optional<Entry> find(RequestId request) const;
  /// Records or replaces the entry of a request.
  void record(RequestId request, Entry entry);
  /// Marks a request as over: its hold has ended.
  void retire(RequestId request, Revision when, ClusterTime finished);
  /// Sets the finish time of all finished requests, for a change of the cluster version.
  void set_finished_times(ClusterTime finished);
  /// Forgets a request; a retry is then a new request.
  void remove(RequestId request) { erase(request); }
  /// Forgets the oldest finished answers, at most `count_max`: all beyond `finished_max`, and those
  /// that finished at `outdated` or before. Returns the number of forgotten answers that were not
  /// outdated.
  struct Forget {
    std::size_t finished_max = 0;
    ClusterTime outdated{};
    std::size_t count_max = std::numeric_limits<std::size_t>::max();
  };
  std::size_t forget(const Forget& what);

  [[nodiscard]] std::size_t size() const noexcept { return held_.size() + compact_.size(); }
  [[nodiscard]] std::size_t finished() const noexcept { return finished_.size(); }
  /// Bytes of the finished answers, by the formula of core/usage.hpp.
  [[nodiscard]] std::size_t finished_bytes() const noexcept {
    return finished_.size() * bytes_per_answer + refusal_bytes_;
  }
  /// Calls visit(request, entry) for all requests, by id.
  template <class Visit>
  void for_each(const Visit& visit) const;
  /// Whether the index of finished requests equals one that is rebuilt. For invariants.
  [[nodiscard]] bool has_sound_index() const;

 private:
  /// Marks an answer that is in refusals_.
  struct IsRefused {};

  /// Entry of a granted request whose hold lives.
  static Entry entry_of(FencingToken token) {
    return {.answer = Granted{.token = token}, .since = Revision{token.get()}};
  }

  /// Trivially copyable entry: each forgotten request moves the entries behind it, which is then a
  /// memmove.
  struct CompactEntry {
    std::variant<Waiting, Granted, Released, IsRefused, Downgraded, TtlSet> answer;
    Revision since{};
    Life life = Life::live;
    ClusterTime finished{};
  };
  static_assert(std::is_trivially_copyable_v<CompactEntry>);

  [[nodiscard]] Entry entry_of(RequestId request, const CompactEntry& compact) const;
  void erase(RequestId request);

  /// Granted requests whose holds live; the token is the whole entry.
  CowMap<RequestId, FencingToken> held_;
  CowMap<RequestId, CompactEntry> compact_;  ///< All other requests.
  CowMap<RequestId, Refused> refusals_;      ///< Refusals of compact_.
  /// Requests of compact_ that are over, in the order of forgetting. Insertions are in this order,
  /// except while a snapshot is read.
  SortedQueue<std::pair<Revision, RequestId>> finished_;
  /// Largest request id that was ever recorded. Most requests are newer, which saves the lookup.
  RequestId newest_{};
  std::size_t refusal_bytes_ = 0;  ///< Bytes of refusals_.
};

template <class Visit>
void History::for_each(const Visit& visit) const {
  auto held = held_.begin();
  for (const auto& [request, compact] : compact_) {
    for (; held != held_.end() && held->first < request; ++held) {
      visit(held->first, entry_of(held->second));
    }
    visit(request, entry_of(request, compact));
  }
  for (; held != held_.end(); ++held) {
    visit(held->first, entry_of(held->second));
  }
}

}  // namespace tenure::core
