#pragma once

#include <cstddef>
#include <utility>
#include <variant>

#include <absl/container/btree_map.h>

#include "core/box.hpp"
#include "core/flat_queue.hpp"
#include "core/ids.hpp"
#include "core/outcome.hpp"

namespace tenure::core {

/// Still in the queue, under this ticket.
struct Waiting {
  Revision ticket{};

  friend bool operator==(const Waiting&, const Waiting&) = default;
};

/// What a request was told, or where it waits. Refusals are rare, and large.
using Answer = std::variant<Waiting, Granted, Released, Box<Refused>, Downgraded>;

/// The requests of one lease and their answers, so that each is applied exactly once. What waits
/// or holds is never forgotten; of the finished, only the latest are kept. Ends with the lease.
class History {
 public:
  /// `live`: it waits, or its hold lives. `over`: may be forgotten when others come after it.
  enum class Life : std::uint8_t { live, over };

  struct Entry {
    Answer answer;
    Revision since{};  ///< When it got into this state; the least is forgotten first.
    Life life = Life::live;

    friend bool operator==(const Entry&, const Entry&) = default;
  };

  [[nodiscard]] const Entry* find(RequestId request) const;
  void note(RequestId request, Entry entry);
  /// The hold of this request has ended.
  void retire(RequestId request, Revision when);
  void forget_beyond(std::size_t finished_max);

  using Entries = absl::btree_map<RequestId, Entry>;
  [[nodiscard]] const Entries& entries() const noexcept { return entries_; }
  [[nodiscard]] std::size_t finished() const noexcept { return finished_.size(); }
  [[nodiscard]] bool has_sound_index() const;

 private:
  Entries entries_;
  /// Of entries_, those that are over. They come in this order, but for a snapshot.
  SortedQueue<std::pair<Revision, RequestId>> finished_;
};

}  // namespace tenure::core
