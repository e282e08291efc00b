#include <tenure/fence.hpp>

#include "fence/token_check.hpp"

namespace tenure {

FenceResult Fence::admit(std::string_view resource, FencingToken token) {
  return decide({.resource = resource, .token = token, .repeated = fence::Repeated::admit});
}

FenceResult Fence::admit_once(std::string_view resource, FencingToken token) {
  return decide({.resource = resource, .token = token, .repeated = fence::Repeated::reject});
}

FencingToken Fence::highest(std::string_view resource) const {
  const auto found = highest_.find(resource);
  return found == highest_.end() ? FencingToken{} : found->second;
}

FenceResult Fence::decide(const fence::TokenCheck& check) {
  if (auto why = validate(check)) {
    return not_checked(check, *std::move(why));
  }
  const auto found = highest_.find(check.resource);
  if (found != highest_.end()) {
    // The decision and the update are one step only because the caller serializes all calls.
    auto result = fence::decide(check, found->second);
    if (result) {
      found->second = check.token;
    }
    return result;
  }
  if (highest_.size() >= options_.resources_max) {
    return not_checked(check, {.code = Errc::resource_exhausted,
                               .detail = "the fence has " + std::to_string(options_.resources_max) +
                                         " resources, its limit; raise resources_max"});
  }
  highest_.emplace(check.resource, check.token);
  return {};
}

}  // namespace tenure
