#include "simulation/run.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "core/invariants.hpp"
#include "core/snapshot.hpp"
#include "history/check.hpp"
#include "simulation/checker.hpp"
#include "simulation/client.hpp"
#include "simulation/faults.hpp"
#include "simulation/host.hpp"
#include "simulation/network.hpp"
#include "simulation/operators.hpp"
#include "simulation/reader.hpp"
#include "simulation/watcher.hpp"
#include "simulation/world.hpp"

namespace tenure::simulation {

using namespace std::chrono_literals;
using server::raft::MemberId;

namespace {

// Liveness bound: without faults a free lock is granted within an election and the longest retry
// interval of a client, twice.
constexpr VirtualTime bound = 6s;
constexpr const char* behind = "a member is behind";

class Run {
 public:
  Run(const Options& options, std::ostream* trace)
      : world_(options, trace),
        network_(world_, options.members + options.spares + options.clients + options.watchers + 1),
        checker_(world_),
        operators_(world_, directory_) {
    begin_history();
    make_hosts();
    make_clients();
  }

  Outcome finish(history::Events* history) {
    Faults faults(world_, network_, operators_, host_views(), client_views());
    for (auto& host : hosts_) {
      host->boot();
    }
    for (auto& client : clients_) {
      client->begin();
    }
    for (auto& watcher : watchers_) {
      watcher->begin();
    }
    reader_->begin();
    const auto begin = world_.now();
    world_.record({.kind = history::Kind::fault, .why = "chaos"});
    faults.begin();
    world_.run_until(begin + world_.options().length * 3 / 4);
    faults.end();
    world_.run_until(begin + world_.options().length);
    for (auto& client : clients_) {
      client->retire();
    }
    wait_for_the_end();
    operators_.check_liveness();
    wait_for_the_end();
    world_.record({.kind = history::Kind::end});
    auto outcome = check_history();
    outcome.crashes = faults.crashes();
    outcome.faults = faults.total();
    if (history != nullptr) {
      *history = world_.events();
    }
    return outcome;
  }

 private:
  void begin_history() {
    const auto& options = world_.options();
    world_.record({.kind = history::Kind::history,
                   .properties = options.has_honest_clocks() ? "MTSFREXWQL" : "TSREX",
                   .bound = bound.count(),
                   .ttl_max = VirtualTime(options.ttl_max).count() * 11 / 10 + 10'000});
  }

  HostClock make_clock(bool is_member) {
    auto& random = world_.random();
    const auto ppm = world_.options().drift_ppm;
    const auto offset = std::chrono::nanoseconds(random.below(1'000'000'000'000));
    if (is_member && world_.options().mutant == Mutant::clock_too_fast) {
      return {offset, 60'000};
    }
    // The bounds more often than values in between.
    const auto drift =
        random.one_in(2)
            ? random.one_of<std::int64_t>({-ppm, ppm})
            : static_cast<std::int64_t>(random.below(2 * static_cast<std::uint64_t>(ppm) + 1)) -
                  ppm;
    return {offset, drift};
  }

  void make_hosts() {
    const auto& options = world_.options();
    std::vector<server::raft::Member> members;
    for (std::size_t i = 0; i < options.members; ++i) {
      members.push_back({.id = MemberId{i + 1}, .peer = address(i), .client = address(i)});
    }
    const server::raft::Entry first{
        .term = server::raft::Term{1},
        .type = server::raft::EntryType::change,
        .payload = std::make_shared<const std::string>(server::raft::encode_members(members))};
    const Host::Context context{
        .world = world_, .network = network_, .checker = checker_, .directory = directory_};
    for (std::size_t i = 0; i < options.members + options.spares; ++i) {
      hosts_.push_back(std::make_unique<Host>(context, i, make_clock(true)));
      directory_.hosts.push_back(hosts_.back().get());
      if (i < options.members) {
        hosts_.back()->disk().bootstrap(first);
      }
    }
  }

  static std::string address(std::size_t host) {
    return "10.0.0." + std::to_string(host + 1) + ":1";
  }

  void make_clients() {
    const auto& options = world_.options();
    const auto first = hosts_.size();
    const Client::Context context{.world = world_,
                                  .network = network_,
                                  .checker = checker_,
                                  .directory = directory_,
                                  .storage = storage_};
    for (std::size_t i = 0; i < options.clients; ++i) {
      clients_.push_back(std::make_unique<Client>(context, first + i, make_clock(false)));
      directory_.requesters[first + i] = clients_.back().get();
    }
    for (std::size_t i = 0; i < options.watchers; ++i) {
      const auto endpoint = first + options.clients + i;
      watchers_.push_back(std::make_unique<Watcher>(world_, network_, directory_, endpoint));
      directory_.requesters[endpoint] = watchers_.back().get();
    }
    const auto last = first + options.clients + options.watchers;
    reader_ = std::make_unique<Reader>(world_, network_, checker_, directory_, last);
    directory_.requesters[last] = reader_.get();
  }

  std::vector<Host*> host_views() { return directory_.hosts; }
  std::vector<Client*> client_views() {
    std::vector<Client*> views;
    for (auto& client : clients_) {
      views.push_back(client.get());
    }
    return views;
  }

  // Liveness: every waiter is granted and releases, and all members agree.
  void wait_for_the_end() {
    std::string missing;
    constexpr int rounds = 600;
    for (int round = 0; round < rounds && !world_.has_failed(); ++round) {
      missing = what_is_missing();
      if (missing.empty()) {
        compare_states();
        return;
      }
      if (missing == behind && round > rounds / 2) {
        // Followers learn of the last commit by the next entry, and renewals always produce one.
        // Clients end only now, because operator actions have to work with active clients.
        for (const auto& client : clients_) {
          client->end_lease();
        }
      }
      world_.run_until(world_.now() + 100ms);
    }
    world_.fail("a minute after the last fault: " + missing);
  }

  std::string what_is_missing() const {
    for (const auto& client : clients_) {
      if (!client->is_idle()) {
        return client->status() + " is not served";
      }
    }
    const auto leader =
        std::ranges::find_if(hosts_, [](const auto& host) { return host->leads(); });
    if (leader == hosts_.end()) {
      return "no member leads";
    }
    const auto applied = (*leader)->store().replica().applied();
    if (applied < checker_.last_agreed()) {
      return "the leader has not applied an entry that another member has applied";
    }
    for (const auto* host : members()) {
      if (host->store().replica().applied() != applied) {
        return behind;
      }
    }
    if ((*leader)->store().state().revision < checker_.acknowledged()) {
      return "an acknowledged revision is lost";
    }
    return {};
  }

  /// Members in the configuration of the leader.
  std::vector<const Host*> members() const {
    std::vector<const Host*> found;
    for (const auto& host : hosts_) {
      if (!host->leads()) {
        continue;
      }
      for (const auto& member : host->store().members()) {
        if (member.id >= 1 && member.id <= hosts_.size()) {
          found.push_back(hosts_[member.id - 1].get());
        }
      }
      break;
    }
    return found;
  }

  void compare_states() {
    std::string first;
    for (const auto* host : members()) {
      const auto& state = host->store().state();
      auto bytes = core::encode(state);
      if (first.empty()) {
        first = std::move(bytes);
        for (const auto& sentence : core::invariants::check(state)) {
          world_.fail("the state is broken: " + sentence);
        }
        if (!core::decode(first)) {
          world_.fail("the last state cannot be restored");
        }
      } else if (bytes != first) {
        world_.fail("two members ended with different states");
      }
    }
  }

  Outcome check_history() {
    Outcome outcome;
    outcome.failure = world_.failure();
    const auto assembled = history::assemble(world_.events());
    const auto result = history::check(assembled);
    if (!result.is_valid()) {
      std::string text;
      for (const auto& violation : result.findings.reported()) {
        text += std::string(text.empty() ? "" : "; ") + violation.property + ": " + violation.what;
      }
      outcome.failure += (outcome.failure.empty() ? "" : "; ") + text;
    }
    outcome.commands = checker_.applied_total();
    outcome.terms = checker_.terms();
    outcome.reads = checker_.reads();
    outcome.events = world_.events().size();
    outcome.stale_writes = result.stale_writes;
    outcome.names_searched = result.names_searched;
    for (const auto& client : clients_) {
      outcome.grants += client->grants();
    }
    for (const auto& watcher : watchers_) {
      outcome.watched += watcher->seen();
    }
    return outcome;
  }

  World world_;
  Network network_;
  Checker checker_;
  Directory directory_;
  Operators operators_;
  Storage storage_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Watcher>> watchers_;
  std::unique_ptr<Reader> reader_;
};

}  // namespace

Outcome run(const Options& options, std::ostream* trace, history::Events* history) {
  return Run(options, trace).finish(history);
}

}  // namespace tenure::simulation
