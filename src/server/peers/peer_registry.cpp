#include "server/peers/peer_registry.hpp"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <system_error>
#include <utility>

#include "server/raft/file.hpp"

namespace tenure::server::peers {
namespace {

constexpr std::string_view first_line = "tenure peers 1";
/// Bound on remembered incarnations: non-members can connect with any number of ids.
constexpr std::size_t seen_max = 64;

std::string line_of(raft::MemberId member, raft::Incarnation incarnation) {
  std::string text(64, '\0');
  text.resize(static_cast<std::size_t>(
      std::snprintf(text.data(), text.size(), "member %" PRIu64 " incarnation %016" PRIx64 "\n",
                    member.get(), incarnation.get())));
  return text;
}

}  // namespace

Result<PeerRegistry> PeerRegistry::open(std::filesystem::path path, raft::Report report) {
  PeerRegistry known;
  known.file_ = std::move(path);
  known.report_ = std::move(report);
  std::error_code error;
  // A new data directory: nothing is recorded yet.
  if (!std::filesystem::exists(known.file_, error)) {
    return known;
  }
  const auto file = raft::File::open(known.file_, raft::File::Mode::read);
  const auto text = file ? file->read_all() : Result<std::string>(std::unexpected(file.error()));
  if (!text) {
    return std::unexpected(text.error());
  }
  std::istringstream lines(*text);
  std::string line;
  bool is_good = std::getline(lines, line) && line == first_line;
  while (is_good && std::getline(lines, line)) {
    std::uint64_t member = 0;
    std::uint64_t incarnation = 0;
    is_good = std::sscanf(line.c_str(), "member %" SCNu64 " incarnation %" SCNx64, &member,
                          &incarnation) == 2;
    known.recorded_[raft::MemberId{member}] = raft::Incarnation{incarnation};
  }
  if (!is_good) {
    return fail(Errc::invalid_argument,
                "the file " + known.file_.string() +
                    " is damaged: restore it from a backup. Delete it only if no member lost its "
                    "data directory: without it such a member is not detected.");
  }
  return known;
}

void PeerRegistry::set_members(const std::vector<raft::Member>& members) {
  if (members.empty()) {
    return;  // The log of this member is not read yet, or the member is joining.
  }
  const bool is_first = members_.empty();
  const auto before = std::exchange(voters_, {});
  members_.clear();
  for (const auto& member : members) {
    members_.insert(member.id);
    if (member.role == raft::MemberRole::voter) {
      voters_.insert(member.id);
    }
  }
  for (const auto voter : voters_) {
    const auto seen = seen_.find(voter);
    // The first list after a start promotes no member: recorded incarnations of its voters stay.
    const bool is_new = !is_first && !before.contains(voter);
    if (seen != seen_.end() && (is_new || !recorded_.contains(voter))) {
      record(voter, seen->second);
    }
  }
}

std::string PeerRegistry::incarnation_error(raft::MemberId member,
                                            raft::Incarnation incarnation) const {
  const auto known = recorded_.find(member);
  if (!voters_.contains(member) || known == recorded_.end() || known->second == incarnation) {
    return {};
  }
  const auto id = std::to_string(member.get());
  return "member " + id +
         " has a new incarnation: its data directory was replaced. It may have voted and "
         "acknowledged entries before, so it must not rejoin as member " +
         id + ". Join it under an unused id (--join with an empty directory, then add it), and " +
         "remove member " + id;
}

std::string PeerRegistry::verify(raft::MemberId member, raft::Incarnation incarnation) {
  if (auto error = incarnation_error(member, incarnation); !error.empty()) {
    return error;
  }
  // Members are never dropped: their number is bounded by the configuration.
  if (seen_.size() >= seen_max) {
    std::erase_if(seen_, [this](const auto& one) { return !members_.contains(one.first); });
  }
  seen_[member] = incarnation;
  if (voters_.contains(member)) {
    record(member, incarnation);
  }
  return {};
}

void PeerRegistry::record(raft::MemberId member, raft::Incarnation incarnation) {
  if (incarnation == raft::Incarnation{}) {
    return;  // A program of an earlier version announces no incarnation.
  }
  const auto [it, is_new] = recorded_.try_emplace(member, incarnation);
  if (is_new || it->second != incarnation) {
    it->second = incarnation;
    save();
  }
}

void PeerRegistry::sweep() {
  if (!is_saved_) {
    save();
  }
}

// A failed write is not fatal: on a full disk the registry in memory still protects the group. A
// wiped voter goes undetected only if this member restarts before the write succeeds.
void PeerRegistry::save() {
  if (file_.empty()) {
    return;
  }
  std::erase_if(recorded_, [this](const auto& one) { return !members_.contains(one.first); });
  std::string text(first_line);
  text += '\n';
  for (const auto& [member, incarnation] : recorded_) {
    text += line_of(member, incarnation);
  }
  const auto saved = raft::replace_file(file_, text);
  if (!saved && is_saved_) {
    report_(log::Level::warning, "peer_registry_write_failed", {{"error", saved.error().detail}});
  }
  is_saved_ = saved.has_value();
}

}  // namespace tenure::server::peers
