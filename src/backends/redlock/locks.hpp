#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include "backends/backend.hpp"
#include "backends/redlock/ballots.hpp"
#include "backends/redlock/commands.hpp"
#include "backends/redlock/servers.hpp"
#include "net/backoff.hpp"
#include "net/timer_queue.hpp"
#include "sys/boot_clock.hpp"

namespace tenure::backends::redlock {

/// What is asked of the locks on all servers: leases, holds and waits. Those of one client who want
/// the same lock stand in line, and only the first of them asks the servers; so a client does not
/// outvote itself. All on the loop's thread.
class Locks {
 public:
  /// What the servers are, and how long an answer may take before it is `unavailable`.
  struct Terms {
    const Servers& servers;
    std::chrono::milliseconds patience{};
  };

  Locks(Terms terms, const Ballots::Nodes& nodes, Ballots& ballots, net::TimerQueue& timers,
        Commands commands);
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  ~Locks() = default;

  [[nodiscard]] const Commands& commands() const noexcept { return commands_; }
  void listen(Listener* listener) noexcept { listener_ = listener; }

  void grant_lease(const LeaseRequest& request) { leases_[request.id].ttl = request.ttl; }
  void renew(const std::vector<LeaseId>& leases, Backend::Done<Renewed> done);
  void set_ttl(const TtlRequest& request, Backend::Done<void> done);
  void revoke(LeaseId lease, Backend::Done<void> done);
  void acquire(AcquireRequest request, Backend::Done<Granted> done);
  void abandon(LeaseId lease, RequestId request);
  void release(const ReleaseRequest& request, Backend::Done<void> done);
  void holders(const std::string& name, Backend::Done<std::vector<Holder>> done);

  /// A message of one server's: a lock came free, or a hold was taken away.
  void heard(std::string_view message);
  /// Ends all waits and gives back all that is held, as far as the servers can be told.
  void end();

 private:
  /// One question for votes, and what came of it.
  struct Attempt {
    struct Slot {
      bool is_asked = false;
      bool is_refused = false;  ///< By another's vote, so there is none of ours.
      bool is_yes = false;
      bool is_young = false;  ///< So its word does not count.
      std::uint64_t token = 0;
    };
    RequestKey key{};
    std::shared_ptr<const Ask> ask{};
    std::string member{};
    std::chrono::milliseconds ttl{};
    std::vector<Slot> slots{};
    std::uint64_t proposed = 0;  ///< As the token.
    std::chrono::milliseconds voted_ttl{};
    sys::BootTime fresh{};  ///< Our votes have a whole ttl from then on at least.
    FencingToken token{};
    std::chrono::milliseconds left{-1};     ///< Until the first of the others' votes ends.
    std::chrono::milliseconds ttl_told{0};  ///< The longest of theirs.
    std::optional<Error> refusal{};         ///< To ask again would not help,
    std::size_t refusals = 0;               ///< say so many.
  };
  struct Wait {
    AcquireRequest request{};
    Backend::Done<Granted> done{};
    std::shared_ptr<Attempt> attempt{};             ///< Under way; null: none is.
    std::shared_ptr<Attempt> last{};                ///< That failed: servers may mean to wake us.
    std::uint32_t refused = 0;                      ///< Attempts that came to nothing.
    net::Backoff backoff{net::Backoff::Options{}};  ///< Delays between its attempts.
  };
  /// Those here who want, or have, the same lock.
  struct Contest {
    std::deque<RequestKey> line{};
    std::size_t held = 0;
    bool is_asking = false;         ///< The first of the line.
    std::uint64_t pause = 0;        ///< Its number; 0: no pause.
    std::size_t free_heard = 0;     ///< Servers that said so since it began.
    bool shall_let_others = false;  ///< Somebody elsewhere waits, and we were the last to have it.
    std::optional<sys::BootTime> unreachable{};  ///< No quorum since then.
  };
  struct Held {
    std::shared_ptr<const Ask> ask{};
    std::string member{};
    FencingToken token{};
    std::chrono::milliseconds ttl{};  ///< That was voted for.
    bool was_refused = false;         ///< At first: servers may mean to wake us.
    std::size_t taken_heard = 0;      ///< Servers where an operator took it away.
  };
  struct Lease {
    std::chrono::milliseconds ttl{};
    sys::BootTime touched{};  ///< Somebody believes in a whole ttl from then on.
    absl::btree_map<RequestId, Held> holds{};
    std::vector<RequestId> waits{};
  };
  enum class Extended : std::uint8_t { yes, lost, doubtful };
  struct Extension;
  struct Renewal;

  // locks.cpp: acquiring.
  [[nodiscard]] std::optional<Error> refuse_at_once(const AcquireRequest& request);
  void go_on(const std::string& name);
  void ask(const RequestKey& key);
  [[nodiscard]] Verdict voted(Attempt& attempt, std::size_t server,
                              const Result<Ballots::Answer>& answer);
  void vote_ended(const std::shared_ptr<Attempt>& attempt, const VoteCount& count);
  void agree_on_token(const std::shared_ptr<Attempt>& attempt);
  void finish(const std::shared_ptr<Attempt>& attempt);
  void attempt_failed(const std::shared_ptr<Attempt>& attempt, bool is_quorum_there);
  void pause(const std::string& name, std::chrono::microseconds length);
  void end_pause(const std::string& name);
  void settle(const RequestKey& key, Result<Granted> answer);
  void undo(const Attempt& attempt, Commands::Waits waits);
  void leave(const Wait& wait);
  [[nodiscard]] bool is_under_way(const Attempt& attempt) const;
  [[nodiscard]] bool has_old_quorum(const Attempt& attempt) const;
  [[nodiscard]] bool is_in_time(const Attempt& attempt) const;
  [[nodiscard]] std::chrono::milliseconds limit_for(std::chrono::milliseconds ttl) const;
  [[nodiscard]] std::uint64_t propose_token(sys::BootTime now) const;
  [[nodiscard]] std::string vote_for(std::size_t server, std::string command,
                                     std::chrono::milliseconds ttl) const;
  /// How long a server must have run to be believed.
  [[nodiscard]] std::chrono::milliseconds age_for(const Attempt& attempt) const;
  /// Which servers do not answer, and which are younger than this.
  [[nodiscard]] Error unreachable(std::chrono::milliseconds age = {}) const;

  // locks_leases.cpp: having and giving back.
  void extend(const Held& held, std::chrono::milliseconds ttl, RequestId change,
              std::move_only_function<void(Extended)> done);
  void refill(const Extension& extension, std::size_t server);
  void give_back(const Held& held, Commands::Waits waits, Backend::Done<void> done);
  void no_longer_held(const std::string& name);
  void taken(std::string_view member);

  const Terms terms_;
  const net::Backoff::Options retry_;  ///< Delays between the attempts of a wait.
  const Ballots::Nodes& nodes_;
  Ballots& ballots_;
  net::TimerQueue& timers_;
  const Commands commands_;
  Listener* listener_ = nullptr;
  absl::flat_hash_map<LeaseId, Lease> leases_;
  absl::flat_hash_map<RequestKey, Wait> waits_;
  absl::flat_hash_map<std::string, Contest> contests_;
  std::uint64_t last_pause_ = 0;
  bool is_ending_ = false;
};

}  // namespace tenure::backends::redlock
