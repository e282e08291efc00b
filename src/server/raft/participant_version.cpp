#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/raft/participant.hpp"

namespace tenure::server::raft {

// A change of the members decides who has to agree, so it comes first.
void Participant::adopt_version() {
  const bool is_busy = version_to_set_.has_value() || is_version_on_its_way_ ||
                       change_.has_value() || replica_.is_changing();
  const bool is_too_soon = version_again_at_.has_value() && now_ < *version_again_at_;
  if (!is_ready_ || is_stopping_ || is_busy || is_too_soon) {
    return;
  }
  std::vector<MemberVersions> all;
  all.reserve(members_.size());
  for (const auto& member : members_) {
    all.push_back({.part = member.part, .announced = versions_of(member.id)});
  }
  version_to_set_ = next_version(machine_.state().version, all);
  if (version_to_set_.has_value()) {
    surroundings_.drain_soon();
  }
}

void Participant::submit_version() {
  const auto version = *std::exchange(version_to_set_, std::nullopt);
  // The state machine may refuse it for a while.
  version_again_at_ = now_ + 10 * options_.election_timeout;
  is_version_on_its_way_ = true;
  is_draining_paused_ = true;
  Flight flight;
  flight.proposed = now_;
  flight.batch.version = version;
  flight.batch.commands.emplace_back(core::SetClusterVersion{version});
  flight.decisions.emplace_back(
      [this](const Result<Decided>& decided) { version_decided(decided); });
  submit(std::move(flight));
}

void Participant::version_decided(const Result<Decided>& decided) {
  is_version_on_its_way_ = false;
  if (!is_ready_ || !decided) {
    return;
  }
  if (const auto* refused = std::get_if<core::Refused>(&decided->outcome)) {
    surroundings_.report(Severity::warning, "the cluster version stays " +
                                                std::to_string(machine_.state().version.get()) +
                                                ": " + refused->error.detail);
  }
  adopt_limits();
}

// The log still has entries of the newer version. A snapshot stands for them, so that a program
// that cannot read them can take over the folder.
void Participant::version_applied(core::ClusterVersion before, Index index) {
  const auto version = machine_.state().version;
  if (version == before) {
    return;
  }
  const auto number = std::to_string(version.get());
  surroundings_.report(Severity::note, "the cluster version is " + number + " now.");
  if (version > before) {
    return;
  }
  wishes_.push_back({.wanted = index, .done = [this, number](const Result<std::uint64_t>& taken) {
                       if (taken) {
                         surroundings_.report(
                             Severity::note, "a program whose newest cluster version is " + number +
                                                 " can take over the folder of this member.");
                       }
                     }});
}

std::optional<Versions> Participant::versions_of(MemberId member) const {
  return member == options_.id ? options_.versions : surroundings_.versions_of(member);
}

bool Participant::is_too_old(MemberId member) const {
  const auto versions = versions_of(member);
  return versions.has_value() && versions->newest < machine_.state().version;
}

bool Participant::must_not_read(MemberId member) {
  if (!is_too_old(member)) {
    too_old_.erase(member);
    return false;
  }
  if (too_old_.insert(member).second) {
    surroundings_.report(Severity::error,
                         complaint_about_version(member) + ". It gets no entries until then.");
  }
  return true;
}

std::string Participant::complaint_about_version(MemberId member) const {
  const auto newest = versions_of(member).value_or(Versions{}).newest;
  return "member " + std::to_string(member.get()) +
         " runs a program whose newest cluster version is " + std::to_string(newest.get()) +
         ", and the cluster uses version " + std::to_string(machine_.state().version.get()) +
         ": start the member with a newer program";
}

}  // namespace tenure::server::raft
