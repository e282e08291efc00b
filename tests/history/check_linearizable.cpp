#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "history/check.hpp"

namespace tenure::history {
namespace {

/// Operation on one name that takes effect at a moment between `begin` and `end`. Grants and their
/// ends are adjacent: the end of operation i is operation i + 1.
struct Operation {
  enum class Type : std::uint8_t { grant, end, refusal, read };

  Type type = Type::grant;
  Time begin{};
  Time end = never;
  bool must_happen = true;
  Use use{};
  const Read* read{};
};

/// Depth-first search for a linearization that explains every reply (Wing and Gong, "Testing and
/// Verifying Concurrent Objects", 1993). The set of completed operations determines the state, so
/// each set is visited once (Lowe, "Testing for Linearizability", 2016).
class Search {
 public:
  static constexpr std::size_t operations_max = 60;
  static constexpr std::size_t visits_max = 20'000;
  enum class Outcome : std::uint8_t { explained, impossible, limit_reached };

  explicit Search(std::vector<Operation> operations) : operations_(std::move(operations)) {}

  Outcome run() {
    const bool is_found = extend(0);
    if (is_found) {
      return Outcome::explained;
    }
    return visited_.size() >= visits_max ? Outcome::limit_reached : Outcome::impossible;
  }

 private:
  using Done = std::uint64_t;

  [[nodiscard]] static bool has(Done done, std::size_t i) { return ((done >> i) & 1U) != 0; }

  bool extend(Done done) {
    if (visited_.size() >= visits_max || !visited_.insert(done).second) {
      return false;
    }
    Time latest = never;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if (!has(done, i) && operations_[i].must_happen) {
        latest = std::min(latest, operations_[i].end);
      }
    }
    if (latest == never) {
      return true;  // The remaining operations may take effect after the end.
    }
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if (!has(done, i) && operations_[i].begin <= latest && is_legal(done, i) &&
          extend(done | (Done{1} << i))) {
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] bool is_legal(Done done, std::size_t i) const {
    const auto& operation = operations_[i];
    switch (operation.type) {
      case Operation::Type::grant: return may_be_granted(done, operation.use);
      case Operation::Type::end: return has(done, i - 1);
      case Operation::Type::refusal: return may_be_refused(done, operation.use);
      case Operation::Type::read: return shows(done, *operation.read);
    }
    return false;
  }

  [[nodiscard]] bool is_held(Done done, std::size_t i) const {
    return operations_[i].type == Operation::Type::grant && has(done, i) && !has(done, i + 1);
  }

  [[nodiscard]] bool may_be_granted(Done done, const Use& use) const {
    std::uint32_t permits = 0;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const auto& other = operations_[i];
      if (other.type != Operation::Type::grant || !has(done, i)) {
        continue;
      }
      const bool is_later = use.request->is_granted() && other.use.request->is_granted() &&
                            other.use.request->token() >= use.request->token();
      if (is_later || (is_held(done, i) && conflict(*use.item, *other.use.item))) {
        return false;
      }
      if (is_held(done, i) && other.use.item->permits.has_value()) {
        permits += other.use.item->permits->wanted;
      }
    }
    const auto& wanted = use.item->permits;
    return !wanted.has_value() || permits + wanted->wanted <= wanted->capacity;
  }

  // Another request may block this one: it holds the lock, or was invoked and not completed before.
  [[nodiscard]] bool may_be_refused(Done done, const Use& use) const {
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      const auto& other = operations_[i];
      if (other.type != Operation::Type::grant) {
        continue;
      }
      const auto& request = *other.use.request;
      const bool waits = request.policy == WaitPolicy::wait &&
                         request.invoked <= *use.request->failed &&
                         (!request.answered || *request.answered >= use.request->invoked);
      if (is_held(done, i) || waits) {
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] bool shows(Done done, const Read& read) const {
    std::size_t unknown = 0;
    std::size_t known = 0;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if (!is_held(done, i)) {
        continue;
      }
      if (!operations_[i].use.request->is_granted()) {
        ++unknown;
      } else if (std::ranges::find(read.holders, operations_[i].use.request->token()) ==
                 read.holders.end()) {
        return false;
      } else {
        ++known;
      }
    }
    return known + unknown == read.holders.size();
  }

  std::vector<Operation> operations_;
  std::unordered_set<Done> visited_;
};

/// End of a hold: its release, or the end of its lease, which is never before the end of the
/// client's validity.
Operation end_of(const Use& use) {
  const auto& request = *use.request;
  const auto earliest = request.is_granted()
                            ? std::min(request.release.value_or(never), request.belief.last())
                            : request.invoked;
  return {.type = Operation::Type::end,
          .begin = std::max(earliest, request.invoked),
          .end = request.released.value_or(never),
          .must_happen = request.released.has_value(),
          .use = use};
}

/// Empty if the name has more than `operations_max` operations, or unsupported ones.
std::vector<Operation> operations_of(const History& history, const std::string& place,
                                     const std::vector<Use>& uses) {
  std::vector<Operation> operations;
  for (const auto& use : uses) {
    const auto& request = *use.request;
    if (request.policy == WaitPolicy::reenter || !request.downgrades.empty() ||
        request.items.size() > 1 || use.item->range.has_value() ||
        operations.size() + 2 > Search::operations_max) {
      return {};
    }
    if (request.is_refused()) {
      if (request.why == "would_block") {
        operations.push_back({.type = Operation::Type::refusal,
                              .begin = request.invoked,
                              .end = *request.failed,
                              .use = use});
      }
      continue;
    }
    operations.push_back({.type = Operation::Type::grant,
                          .begin = request.invoked,
                          .end = request.answered.value_or(never),
                          .must_happen = request.is_granted(),
                          .use = use});
    operations.push_back(end_of(use));
  }
  for (const auto& read : history.reads) {
    if (read.name == place) {
      operations.push_back({.type = Operation::Type::read,
                            .begin = read.since,
                            .end = read.at,
                            .use = {},
                            .read = &read});
    }
  }
  return operations.size() > Search::operations_max ? std::vector<Operation>{} : operations;
}

/// The owner upgraded the hold, which may have changed its token.
bool is_reentered(const std::vector<Use>& uses, const Request& request, Time before) {
  return std::ranges::any_of(uses, [&](const Use& use) {
    return use.request->policy == WaitPolicy::reenter && use.request->owner == request.owner &&
           use.request->invoked < before;
  });
}

// However many there are: what was held for the whole time of a read is in it, and what was given
// back before it is not.
void check_read(const History& history, const Read& read, Findings& findings) {
  const auto uses = history.places.find(read.name);
  if (uses == history.places.end()) {
    return;
  }
  for (const auto& use : uses->second) {
    const auto& request = *use.request;
    if (!request.is_granted() || is_reentered(uses->second, request, read.at)) {
      continue;
    }
    const bool is_shown = std::ranges::find(read.holders, request.token()) != read.holders.end();
    const bool is_held =
        *request.answered < read.since && request.belief.covers(read.since, read.at);
    const bool is_over = request.released.has_value() && *request.released < read.since;
    if (is_held && !is_shown) {
      findings.add('L', "a read of " + read.name + " from " + std::to_string(read.since) + " to " +
                            std::to_string(read.at) + " does not show " + describe(request));
    }
    if (is_over && is_shown) {
      findings.add('L', "a read of " + read.name + " at " + std::to_string(read.since) + " shows " +
                            describe(request) + ", which was released at " +
                            std::to_string(*request.released));
    }
  }
}

}  // namespace

std::size_t check_linearizable(const History& history, Findings& findings) {
  for (const auto& read : history.reads) {
    check_read(history, read, findings);
  }
  std::size_t searched = 0;
  for (const auto& [place, uses] : history.places) {
    auto operations = operations_of(history, place, uses);
    if (operations.empty()) {
      continue;
    }
    const auto answer = Search(std::move(operations)).run();
    searched += answer == Search::Outcome::limit_reached ? 0 : 1;
    if (answer == Search::Outcome::impossible) {
      findings.add('L', "no linearization explains the replies about " + place);
    }
  }
  return searched;
}

}  // namespace tenure::history
