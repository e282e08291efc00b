#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "core/version.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/time.hpp"

namespace tenure::server::raft {

/// Cluster versions of one member. Members announce them to each other when they connect.
struct Versions {
  core::ClusterVersion newest{};  ///< Newest version that the member's program reads.
  /// Newest version that the member agrees to use: `newest`, or less to prepare a downgrade.
  /// INVARIANT: at most `newest`.
  core::ClusterVersion wanted{};

  friend bool operator==(const Versions&, const Versions&) = default;
};

/// Versions of this program without a downgrade in preparation.
[[nodiscard]] inline Versions newest_versions() {
  return {.newest = core::newest_version, .wanted = core::newest_version};
}

struct MemberVersions {
  MemberRole role = MemberRole::voter;
  std::optional<Versions> announced{};  ///< Empty: the member is not connected.
};

/// The version that a leader proposes when the cluster uses `present`; empty: none. `members` are
/// all members, the leader included.
///
/// It is raised when all members are connected and want a newer version, to the lowest that one of
/// them wants. It is lowered when a voter wants an older one; a voter that cannot read the present
/// version is ignored, because it cannot read the command either.
[[nodiscard]] std::optional<core::ClusterVersion> next_version(
    core::ClusterVersion present, std::span<const MemberVersions> members);

/// Agreement on the cluster version, as its leader drives it: chooses the version to propose
/// (next_version()) and lets one proposal at a time be in flight. Proposes nothing itself. Not
/// thread safe.
class VersionAgreement {
 public:
  /// `retry`: pause between two proposals. The state machine may refuse one for a while.
  explicit VersionAgreement(std::chrono::milliseconds retry) : retry_(retry) {}

  /// Whether a version may be chosen now.
  [[nodiscard]] bool may_choose(Time now) const {
    return !chosen_.has_value() && !is_in_flight_ && (!again_at_.has_value() || now >= *again_at_);
  }
  /// Chooses the version to propose; false: the present one stays. REQUIRES: may_choose().
  [[nodiscard]] bool choose(core::ClusterVersion present, std::span<const MemberVersions> members) {
    chosen_ = next_version(present, members);
    return chosen_.has_value();
  }
  [[nodiscard]] bool has_chosen() const noexcept { return chosen_.has_value(); }
  /// The chosen version, whose proposal is in flight from now on. REQUIRES: has_chosen().
  [[nodiscard]] core::ClusterVersion begin_proposal(Time now);
  /// No other entry may be submitted during that, so that every entry is written in the version of
  /// the state to which it is applied.
  [[nodiscard]] bool is_in_flight() const noexcept { return is_in_flight_; }
  /// The proposal is decided or given up.
  void end_proposal() { is_in_flight_ = false; }
  /// Ends everything that only a leader does. A proposal in flight ends with end_proposal().
  void cease_to_lead();

 private:
  const std::chrono::milliseconds retry_;
  std::optional<core::ClusterVersion> chosen_;
  bool is_in_flight_ = false;
  std::optional<Time> again_at_;  ///< Earliest time of the next proposal.
};

/// Whether a program with these versions cannot read entries of the cluster version `present`.
/// Unknown versions (no connection) do not count as too old.
[[nodiscard]] bool is_too_old(const std::optional<Versions>& versions,
                              core::ClusterVersion present);

/// Diagnostic for a member that is too old.
[[nodiscard]] std::string too_old_text(MemberId member, const std::optional<Versions>& versions,
                                       core::ClusterVersion present);

}  // namespace tenure::server::raft
