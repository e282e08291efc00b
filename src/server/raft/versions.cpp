#include "server/raft/versions.hpp"

#include <algorithm>
#include <utility>

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

core::ClusterVersion VersionAgreement::begin_proposal(Time now) {
  again_at_ = now + retry_;
  is_in_flight_ = true;
  return *std::exchange(chosen_, std::nullopt);
}

void VersionAgreement::cease_to_lead() {
  chosen_.reset();
  again_at_.reset();
}

bool is_too_old(const std::optional<Versions>& versions, core::ClusterVersion present) {
  return versions.has_value() && versions->newest < present;
}

std::string too_old_text(MemberId member, const std::optional<Versions>& versions,
                         core::ClusterVersion present) {
  const auto newest = versions.value_or(Versions{}).newest;
  return "member " + std::to_string(member.get()) +
         " runs a program whose newest cluster version is " + std::to_string(newest.get()) +
         ", but the cluster uses version " + std::to_string(present.get()) +
         ": start the member with a newer program";
}

}  // namespace tenure::server::raft
