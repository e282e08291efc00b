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

/// Still in the queue, under this ticket.
struct Waiting {
  Revision ticket{};

  friend bool operator==(const Waiting&, const Waiting&) = default;
};

/// The lease was given this ttl.
struct TtlSet {
  ClusterTime ttl{};

  friend bool operator==(const TtlSet&, const TtlSet&) = default;
};

/// What a request was told, or where it waits. Refusals are rare, and large.
using Answer = std::variant<Waiting, Granted, Released, Box<Refused>, Downgraded, TtlSet>;

/// The requests of one lease and their answers, so that each is applied exactly once. What waits
/// or holds is never forgotten; the finished are, after a while. Ends with the lease.
class History {
 public:
  /// `live`: it waits, or its hold lives. `over`: may be forgotten when others come after it.
  enum class Life : std::uint8_t { live, over };

  struct Entry {
    Answer answer;
    Revision since{};  ///< When it got into this state; the least is forgotten first.
    Life life = Life::live;
    ClusterTime finished{};  ///< When it was over. Since version 2; 0 before, and while it lives.

    friend bool operator==(const Entry&, const Entry&) = default;
  };

  [[nodiscard]] std::optional<Entry> find(RequestId request) const;
  void note(RequestId request, Entry entry);
  /// The hold of this request has ended.
  void retire(RequestId request, Revision when, ClusterTime finished);
  void set_finished_times(ClusterTime finished);
  /// As if it had never been asked.
  void remove(RequestId request) { erase(request); }
  /// Forgets the oldest finished answers, not more than `count_max` of them: all beyond
  /// `finished_max`, and those that finished at `outdated` or before. Returns how many were
  /// forgotten that were not outdated.
  struct Forget {
    std::size_t finished_max = 0;
    ClusterTime outdated{};
    std::size_t count_max = std::numeric_limits<std::size_t>::max();
  };
  std::size_t forget(const Forget& what);

  [[nodiscard]] std::size_t size() const noexcept { return held_.size() + lines_.size(); }
  [[nodiscard]] std::size_t finished() const noexcept { return finished_.size(); }
  /// By the formula of core/usage.hpp.
  [[nodiscard]] std::size_t finished_bytes() const noexcept {
    return finished_.size() * bytes_per_answer + refusal_bytes_;
  }
  /// Calls visit(request, entry) for all, by request.
  template <class Visit>
  void for_each(const Visit& visit) const;
  [[nodiscard]] bool has_sound_index() const;

 private:
  /// The answer is among refusals_.
  struct IsRefused {};

  /// The entry of a request that was granted at once or after a wait, and whose hold lives.
  static Entry entry_of(FencingToken token) {
    return {.answer = Granted{.token = token}, .since = Revision{token.get()}};
  }

  /// An entry without its refusal, so that rows of them move as plain bytes: each request that is
  /// forgotten moves those behind it.
  struct Line {
    std::variant<Waiting, Granted, Released, IsRefused, Downgraded, TtlSet> answer;
    Revision since{};
    Life life = Life::live;
    ClusterTime finished{};
  };
  static_assert(std::is_trivially_copyable_v<Line>);

  [[nodiscard]] Entry entry_of(RequestId request, const Line& line) const;
  void erase(RequestId request);

  /// Nearly all that live: the token they were granted says everything.
  CowMap<RequestId, FencingToken> held_;
  CowMap<RequestId, Line> lines_;        ///< All others,
  CowMap<RequestId, Refused> refusals_;  ///< and why, of those that were refused.
  /// Of lines_, those that are over. They come in this order, but for a snapshot.
  SortedQueue<std::pair<Revision, RequestId>> finished_;
  /// No request after this one was ever noted: most are new, and need not be looked for.
  RequestId newest_{};
  std::size_t refusal_bytes_ = 0;  ///< Of refusals_.
};

template <class Visit>
void History::for_each(const Visit& visit) const {
  auto held = held_.begin();
  for (const auto& [request, line] : lines_) {
    for (; held != held_.end() && held->first < request; ++held) {
      visit(held->first, entry_of(held->second));
    }
    visit(request, entry_of(request, line));
  }
  for (; held != held_.end(); ++held) {
    visit(held->first, entry_of(held->second));
  }
}

}  // namespace tenure::core
