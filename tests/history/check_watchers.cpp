#include <algorithm>
#include <set>

#include "history/check.hpp"

namespace tenure::history {
namespace {

/// Events that one watcher received about one name.
class Feed {
 public:
  Feed(const History& history, const std::string& watcher, const std::string& name)
      : history_(history), name_(name), title_(watcher + " on " + name + ": ") {
    for (const auto* suffix : {"", " (keys)"}) {
      if (const auto it = history.places.find(name + suffix); it != history.places.end()) {
        uses_.insert(uses_.end(), it->second.begin(), it->second.end());
      }
    }
  }

  void check(const Watcher& watcher, Findings& findings) {
    for (const auto& event : watcher.events) {
      if (event.name == name_) {
        check_event(event, findings);
      }
    }
    check_gaps(watcher, findings);
  }

 private:
  void check_event(const Watched& event, Findings& findings) {
    if (event.token <= last_ && !is_shared(event.token)) {
      findings.add('E', title_ + "token " + std::to_string(event.token) + " at " +
                            std::to_string(event.at) + " after token " + std::to_string(last_));
    }
    last_ = std::max(last_, event.token);
    first_ = seen_.empty() ? event.token : std::min(first_, event.token);
    seen_.insert(event.token);
    if (!is_known(event)) {
      findings.add(
          'E', title_ + "token " + std::to_string(event.token) + " was not granted to any request");
    }
  }

  // Re-entered holds share a token.
  bool is_shared(Token token) const {
    return std::ranges::any_of(uses_, [&](const Use& use) {
      return use.request->policy == WaitPolicy::reenter && use.request->token() == token;
    });
  }

  // An upgrade is reported under the original request or under the upgrading one.
  bool is_known(const Watched& event) const {
    return std::ranges::any_of(uses_, [&](const Use& use) {
      const auto& request = *use.request;
      const bool is_meant = event.request.empty() || event.request == request.id ||
                            request.policy == WaitPolicy::reenter;
      return is_meant && request.invoked <= event.at &&
             (request.is_granted() ? request.token() == event.token : !request.is_refused());
    });
  }

  void check_gaps(const Watcher& watcher, Findings& findings) {
    const bool is_complete = watcher.is_alive && history_.end.has_value() && history_.bound > 0 &&
                             history_.healed != never;
    const auto due_before =
        is_complete ? *history_.end - history_.bound : std::numeric_limits<Time>::min();
    for (const auto& use : uses_) {
      const auto& request = *use.request;
      if (!request.is_granted() || request.policy == WaitPolicy::reenter ||
          seen_.contains(request.token())) {
        continue;
      }
      const bool is_between = !seen_.empty() && first_ < request.token() && request.token() < last_;
      const bool is_overdue = request.invoked > watcher.since && *request.answered < due_before &&
                              history_.healed < due_before;
      if (is_between || is_overdue) {
        findings.add('E', title_ + "no event for " + describe(request));
      }
    }
  }

  const History& history_;
  const std::string& name_;
  std::string title_;
  std::vector<Use> uses_;
  std::set<Token> seen_;
  Token first_ = 0;
  Token last_ = 0;
};

}  // namespace

void check_watchers(const History& history, Findings& findings) {
  for (const auto& [id, watcher] : history.watchers) {
    for (const auto& name : watcher.names) {
      Feed(history, id, name).check(watcher, findings);
    }
  }
}

}  // namespace tenure::history
