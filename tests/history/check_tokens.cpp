#include <algorithm>
#include <map>
#include <vector>

#include "history/check.hpp"

namespace tenure::history {
namespace {

std::vector<const Request*> granted(const std::vector<Use>& uses) {
  std::vector<const Request*> all;
  for (const auto& use : uses) {
    if (use.request->is_granted() && (all.empty() || all.back() != use.request)) {
      all.push_back(use.request);
    }
  }
  return all;
}

/// Whether the request shares the token of an earlier request of the same owner.
bool shares(const Request& request, const Request& earlier) {
  return request.policy == WaitPolicy::reenter && request.owner == earlier.owner &&
         request.token() == earlier.token();
}

void check_growth(const std::string& place, const std::vector<const Request*>& by_asking,
                  Findings& findings) {
  auto by_answer = by_asking;
  std::ranges::stable_sort(by_answer, {},
                           [](const Request* request) { return *request->answered; });
  const Request* greatest = nullptr;
  auto next = by_answer.begin();
  for (const auto* request : by_asking) {
    for (; next != by_answer.end() && *(*next)->answered < request->invoked; ++next) {
      if (greatest == nullptr || (*next)->token() > greatest->token()) {
        greatest = *next;
      }
    }
    if (greatest != nullptr && request->policy != WaitPolicy::reenter &&
        request->token() <= greatest->token()) {
      findings.add('T', place + ": " + describe(*request) + " asked at " +
                            std::to_string(request->invoked) + ", after " + describe(*greatest) +
                            " was answered at " + std::to_string(*greatest->answered));
    }
  }
}

void check_unique(const std::string& place, const std::vector<Use>& uses, Findings& findings) {
  std::map<Token, Use> known;
  for (const auto& use : uses) {
    if (!use.request->is_granted()) {
      continue;
    }
    const auto [it, is_new] = known.try_emplace(use.request->token(), use);
    const auto& other = it->second;
    const bool is_exclusive =
        is_new || tenure::is_exclusive(use.item->mode) || tenure::is_exclusive(other.item->mode);
    if (!is_new && is_exclusive && other.request != use.request &&
        !shares(*use.request, *other.request) && !shares(*other.request, *use.request)) {
      findings.add('T', place + ": " + describe(*use.request) + " and " + describe(*other.request) +
                            " have the same token");
    }
  }
}

}  // namespace

void check_tokens(const History& history, Findings& findings) {
  for (const auto& [place, uses] : history.places) {
    check_growth(place, granted(uses), findings);
    check_unique(place, uses, findings);
  }
}

std::size_t check_storage(const History& history, Findings& findings) {
  std::size_t refused = 0;
  for (const auto& [resource, writes] : history.writes) {
    Token greatest = 0;
    for (const auto& write : writes) {
      refused += write.is_accepted ? 0 : 1;
      if (write.is_accepted && write.token < greatest) {
        findings.add('S', resource + " accepted token " + std::to_string(write.token) + " at " +
                              std::to_string(write.at) + " after token " +
                              std::to_string(greatest));
      }
      greatest = write.is_accepted ? std::max(greatest, write.token) : greatest;
    }
  }
  return refused;
}

void check_once(const History& history, Findings& findings) {
  for (const auto& [id, request] : history.requests) {
    if (request.tokens.size() > 1) {
      findings.add('X', id + " got token " + std::to_string(request.tokens[0]) + " and token " +
                            std::to_string(request.tokens[1]));
    }
    if (request.is_granted() && request.is_refused()) {
      findings.add('X', describe(request) + " was granted, and failed with '" + request.why + "'");
    }
  }
}

}  // namespace tenure::history
