#include "server/raft/lost_entry_detector.hpp"

namespace tenure::server::raft {

bool LostEntryDetector::observe(MemberId sender, const AppendResult& result, Index match,
                                Time now) {
  if (result.rejected == Index{} || result.last >= match) {
    suspects_.erase(sender);
    return false;
  }
  auto& since = suspects_.try_emplace(sender, now).first->second;
  if (now - since < options_.confirm_after) {
    return false;
  }
  since = now + options_.repeat_after - options_.confirm_after;
  return true;
}

}  // namespace tenure::server::raft
