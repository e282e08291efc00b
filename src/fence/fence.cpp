#include <tenure/fence.hpp>

#include "fence/question.hpp"

namespace tenure {

Admission Fence::admit(std::string_view resource, FencingToken token) {
  return decide({.resource = resource, .token = token, .equal = fence::Equal::admit});
}

Admission Fence::admit_once(std::string_view resource, FencingToken token) {
  return decide({.resource = resource, .token = token, .equal = fence::Equal::refuse});
}

FencingToken Fence::highest(std::string_view resource) const {
  const auto found = highest_.find(resource);
  return found == highest_.end() ? FencingToken{} : found->second;
}

Admission Fence::decide(const fence::Question& question) {
  if (auto why = complaint(question)) {
    return not_checked(question, *std::move(why));
  }
  const auto found = highest_.find(question.resource);
  if (found != highest_.end()) {
    auto admission = judge(question, found->second);
    if (admission) {
      found->second = question.token;
    }
    return admission;
  }
  if (highest_.size() >= options_.resources_max) {
    return not_checked(question,
                       {.code = Errc::resource_exhausted,
                        .detail = "the fence remembers " + std::to_string(options_.resources_max) +
                                  " resources already; raise resources_max"});
  }
  highest_.emplace(question.resource, question.token);
  return {};
}

}  // namespace tenure
