#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <tenure/error.hpp>

#include "core/version.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/membership.hpp"
#include "server/raft/replica.hpp"
#include "server/raft/time.hpp"
#include "server/raft/versions.hpp"
#include "server/store/store.hpp"

namespace tenure::server::raft {

/// A membership change in progress, at most one. State machine of single-server changes (Ongaro's
/// thesis, 4.2): an added member is a learner first, catches up with the log, and then becomes a
/// voter; a removed one leaves in one step. Returns steps, which the owner carries out and reports
/// back. Not thread safe.
///
///     idle -> waiting -> adding -> catching_up -> promoting -> idle
///                     -> removing -> idle
///                     -> handing_over -> idle
class MembershipChange {
 public:
  using Done = std::move_only_function<void(Result<void>)>;

  struct Options {
    MemberId self{};
    /// Time for which a phase waits for members that may be down.
    std::chrono::milliseconds timeout{3000};
  };

  /// State of the group on which the next step depends.
  struct Group {
    const Membership& members;
    Index applied{};                      ///< Last applied entry.
    Index last{};                         ///< Last entry of the log.
    bool has_committed_own_term = false;  ///< An entry of the leader's term is committed.
    bool is_changing = false;             ///< A configuration in the log is not committed.
    bool is_transferring = false;         ///< The leadership is being transferred.
    Index subject_match{};                ///< Last entry that the changed member acknowledged.
    Index fresh_voter_match{};            ///< Last entry that the newest voter acknowledged.
    CatchUp catch_up = CatchUp::none;     ///< Progress of the changed member.
    std::optional<Versions> subject_versions{};  ///< Versions of the changed member, if connected.
    core::ClusterVersion version{};              ///< Version that the cluster uses.
  };

  // Steps. After CommitOwnTerm the change waits; the others make the next step possible.

  /// An entry of the leader's own term has to be committed, if there is none in the log.
  struct CommitOwnTerm {};
  /// Submits a configuration; submitted() gets its index or the error.
  struct SubmitMembers {
    std::vector<Member> members;
  };
  /// Begins to watch a learner; catching_up() gets the result.
  struct WatchLearner {
    MemberId id{};
  };
  /// The leader itself is to be removed: transfers the leadership. Its loss ends the change; end()
  /// gets the error of a transfer that fails.
  struct HandOver {};
  using Step = std::variant<CommitOwnTerm, SubmitMembers, WatchLearner, HandOver>;

  explicit MembershipChange(const Options& options) : options_(options) {}
  MembershipChange(const MembershipChange&) = delete;
  MembershipChange& operator=(const MembershipChange&) = delete;

  [[nodiscard]] bool is_active() const noexcept { return change_.has_value(); }
  /// Refuses a change that is not possible with these members.
  [[nodiscard]] static Result<void> check(const MemberChange& change, const Membership& members);
  /// `done` gets the result. REQUIRES: !is_active(), and check() has passed.
  void begin(MemberChange change, Done done, Time now);
  /// The member that is added or removed. REQUIRES: is_active().
  [[nodiscard]] MemberId subject() const;

  /// The next step; empty: the change waits, or has ended.
  [[nodiscard]] std::optional<Step> next_step(const Group& group, Time now);
  void submitted(const Result<Index>& index, Time now);
  void catching_up(const Result<void>& begun);
  /// Ends the change, if there is one, and calls its callback.
  void end(Result<void> result);

  /// Time at which a phase has waited long enough.
  [[nodiscard]] std::optional<Time> deadline(Time now) const;

 private:
  enum class Phase : std::uint8_t {
    /// For the commit of an entry of the leader's term, the end of the last change, and the
    /// acknowledgement of the voter that it made (R8).
    waiting,
    handing_over,  ///< The subject is this member: another leader has to remove it.
    adding,        ///< The learner is in the log, not committed.
    catching_up,   ///< The learner receives the log.
    promoting,     ///< Its vote is in the log, and it has to acknowledge that.
    removing,      ///< The shorter configuration is in the log, not committed.
  };
  struct Change {
    MemberChange what;
    Done done;
    Phase phase = Phase::waiting;
    Phase submitting = Phase::waiting;  ///< Phase after submitted().
    Index index{};                      ///< Index of the entry that the phase waits for.
    Time until;                         ///< Time until which the phase waits for other members.
  };

  /// Whether a configuration may be submitted now without a risk for the quorum.
  [[nodiscard]] bool may_begin(const Group& group) const;
  /// First step of an addition or a removal.
  [[nodiscard]] std::optional<Step> begin_step(const Group& group, Time now);
  /// Step after the learner is committed: watch it, or promote it if it has the whole log.
  [[nodiscard]] std::optional<Step> catch_up_step(const Group& group, Time now);
  /// Step while the learner catches up.
  [[nodiscard]] std::optional<Step> watch_step(const Group& group);
  /// Step that makes the learner a voter.
  [[nodiscard]] std::optional<Step> promote_step(const Group& group);
  /// Remembers the phase that follows the submission, and returns the step.
  [[nodiscard]] Step submit(std::vector<Member> members, Phase phase);

  const Options options_;
  std::optional<Change> change_;
};

}  // namespace tenure::server::raft
