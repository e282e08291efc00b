#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "core/version.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/time.hpp"
#include "server/raft/versions.hpp"

namespace tenure::server::raft {

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
