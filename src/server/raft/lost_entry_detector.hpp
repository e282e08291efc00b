#pragma once

#include <chrono>
#include <map>

#include "server/raft/entry.hpp"
#include "server/raft/message.hpp"
#include "server/raft/time.hpp"

namespace tenure::server::raft {

/// Detects followers whose disk lost entries that they had acknowledged. A single rejection below
/// the acknowledged index may be late (R4); repeated ones without an accepted message in between
/// prove the loss. Not thread safe.
class LostEntryDetector {
 public:
  struct Options {
    /// Time of repeated rejections after which the loss is certain.
    std::chrono::milliseconds confirm_after{600};
    /// Time after which a member that still rejects is detected again.
    std::chrono::milliseconds repeat_after{2400};
  };

  explicit LostEntryDetector(const Options& options) : options_(options) {}

  /// Observes an answer in the leader's term, of a member that had acknowledged `match`. True: the
  /// member has lost entries.
  [[nodiscard]] bool observe(MemberId sender, const AppendResult& result, Index match, Time now);
  /// Whether the last answer of the member was such a rejection.
  [[nodiscard]] bool is_suspect(MemberId member) const { return suspects_.contains(member); }

 private:
  const Options options_;
  std::map<MemberId, Time> suspects_;  ///< Time from which rejections are counted.
};

}  // namespace tenure::server::raft
