#include "server/raft/versions.hpp"

#include <algorithm>

namespace tenure::server::raft {

std::optional<core::ClusterVersion> next_version(core::ClusterVersion present,
                                                 std::span<const MemberVersions> members) {
  std::optional<core::ClusterVersion> lowest;
  bool may_raise = true;
  for (const auto& member : members) {
    if (!member.announced.has_value()) {
      may_raise = false;
      continue;
    }
    const auto [newest, wanted] = *member.announced;
    may_raise = may_raise && wanted > present;
    const bool may_lower = member.role == MemberRole::voter && newest >= present;
    if (wanted > present || may_lower) {
      lowest = std::min(lowest.value_or(wanted), wanted);
    }
  }
  if (!lowest.has_value() || *lowest == present || (*lowest > present && !may_raise)) {
    return std::nullopt;
  }
  return lowest;
}

}  // namespace tenure::server::raft
