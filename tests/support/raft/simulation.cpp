#include "support/raft/simulation.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

namespace tenure::test {
namespace {

using namespace server::raft;
using std::chrono::milliseconds;

constexpr std::size_t member_count = 3;
constexpr std::uint64_t snapshot_every = 12;

class World;

struct DurableState {  // What survives a crash.
  Term term{};
  MemberId voted_for{};
  Snapshot snapshot{};
  Index first{1};
  std::vector<Entry> entries;

  [[nodiscard]] Index last() const { return Index{first.get() + entries.size() - 1}; }
  void promise(Term in, MemberId vote) { std::tie(term, voted_for) = std::tie(in, vote); }
  void append(Index index, const Entry& entry) {
    if (entries.empty() || index < first || index > next(last())) {
      entries.clear();
      first = index;
    }
    entries.resize(index.get() - first.get());
    entries.push_back(entry);
  }
  void cut(Index end) {
    while (!entries.empty() && first <= end) {
      entries.erase(entries.begin());
      first = next(first);
    }
  }
  /// As it is read: a snapshot wins over a log that does not contain its last entry.
  void settle() {
    const auto mark = snapshot.mark;
    if (mark.index == Index{}) {
      return;
    }
    const bool is_inside = !entries.empty() && first <= mark.index && last() >= mark.index;
    const bool agrees = is_inside && entries[mark.index.get() - first.get()].term == mark.term;
    if (!agrees && (entries.empty() || first != next(mark.index))) {
      entries.clear();
      first = next(mark.index);
    }
  }
};

/// One write to the disk that is not durable yet.
struct Write {
  std::optional<Snapshot> install;
  Index first{};
  std::vector<Entry> entries;
};

std::uint64_t mixed(std::uint64_t left, std::uint64_t right) {
  left ^= right + 0x9E3779B97F4A7C15U + (left << 6) + (left >> 2);
  left *= 0xFF51AFD7ED558CCDU;
  return left ^ (left >> 33);
}

class Server {
 public:
  Server(World& world, std::size_t slot) : world_(world), slot_(slot) {}

  void boot();
  void crash();
  void propose();
  void write_done();
  void snapshot_done(const SnapshotMark& mark, const Bytes& body);
  void consider_snapshot();
  [[nodiscard]] bool is_up() const { return replica_ != nullptr; }
  [[nodiscard]] bool leads() const { return is_up() && replica_->role() == Role::leader; }
  [[nodiscard]] const Replica& replica() { return *replica_; }
  void receive(MemberId sender, const Message& message) {
    enter([&] { replica_->receive(sender, message); });
    consider_snapshot();
  }
  void timeout() {
    enter([this] { replica_->timeout(); });
  }
  [[nodiscard]] std::uint64_t life() const { return life_; }
  [[nodiscard]] MemberId id() const { return MemberId{slot_ + 1}; }
  [[nodiscard]] DurableState& durable() { return durable_; }

 private:
  /// Calls the replica and carries out its actions.
  void enter(const std::function<void()>& event);
  void carry_out(const SaveVote& action) { durable_.promise(action.term, action.voted_for); }
  void carry_out(WriteEntries& action);
  void carry_out(const WriteSnapshot& action);
  void carry_out(SendMessage& action) { send(action.peer, std::move(action.message)); }
  void carry_out(const SendSnapshot& action) {
    send(action.peer, InstallSnapshot{.term = action.term, .snapshot = durable_.snapshot});
  }
  void carry_out(const ApplyEntry& action);
  void carry_out(const RestoreState& action) { restore(action.snapshot); }
  void carry_out(const ChangeRole& action);
  void carry_out(const ChangeMembers& /*action*/) {}
  void carry_out(const Fail& action);
  void send(MemberId peer, Message message);
  void restore(const Snapshot& snapshot);
  void schedule_write(Write write);
  void persist(const Write& write);

  World& world_;
  std::size_t slot_;
  std::uint64_t life_ = 0;
  DurableState durable_;
  std::deque<Write> writes_;
  milliseconds last_write_{};
  std::unique_ptr<Replica> replica_;
  Index applied_{};
  std::uint64_t chain_ = 0;  ///< Of everything applied: the state.
  std::map<Index, std::uint64_t> proposed_;
  bool is_taking_snapshot_ = false;
};

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {
    drop_percent_ = below(3) * 5;
    is_wild_ = below(2) == 0;
    const std::string members =
        encode_members({{.id = MemberId{1}}, {.id = MemberId{2}}, {.id = MemberId{3}}});
    for (std::size_t slot = 0; slot < member_count; ++slot) {
      servers_.push_back(std::make_unique<Server>(*this, slot));
      auto& durable = servers_.back()->durable();
      durable.term = Term{1};
      durable.entries.push_back({.term = Term{1},
                                 .type = EntryType::change,
                                 .payload = std::make_shared<const std::string>(members)});
    }
  }

  SimulationResult run(milliseconds length) {
    for (auto& server : servers_) {
      server->boot();
    }
    const auto end = now_ + length;
    at(now_, [this] { misbehave(); });
    run_until(end);
    heal();
    for (int round = 0; round < 600 && result_.failure.empty() && !is_settled(); ++round) {
      run_until(now_ + milliseconds(100));
    }
    if (result_.failure.empty() && !is_settled()) {
      fail("no agreement a minute after the last fault");
    }
    return result_;
  }

  [[nodiscard]] std::uint64_t below(std::uint64_t end) { return random_() % end; }
  [[nodiscard]] milliseconds now() const { return now_; }
  void at(milliseconds when, std::function<void()> what) {
    events_.push({.when = when, .order = ++events_made_, .what = std::move(what)});
  }
  void fail(const std::string& why) {
    if (result_.failure.empty()) {
      result_.failure = "at " + std::to_string(now_.count()) + " ms: " + why;
    }
  }
  void deliver(MemberId from, MemberId peer, Message message);
  void watch_timer(Server& server);

  SimulationResult result_;
  // What the members agreed on, as seen by the first who applied it.
  struct Agreed {
    Term term{};
    std::string payload;
    std::uint64_t chain = 0;
    Term committed{};  ///< Not before: the entry may be older, and leaders in between lack it.
  };
  std::map<Index, Agreed> agreed_;
  std::map<Term, MemberId> leaders_;
  std::set<std::uint64_t> applied_numbers_;
  std::set<std::uint64_t> acknowledged_;
  std::uint64_t last_number_ = 0;
  milliseconds disk_delay_{5};

 private:
  struct Event {
    milliseconds when{};
    std::uint64_t order = 0;
    std::function<void()> what;

    friend bool operator<(const Event& left, const Event& right) {
      return std::pair(left.when, left.order) > std::pair(right.when, right.order);
    }
  };

  void run_until(milliseconds end) {
    while (result_.failure.empty() && !events_.empty() && events_.top().when <= end) {
      const auto event = events_.top();
      events_.pop();
      now_ = std::max(now_, event.when);
      event.what();
    }
    now_ = std::max(now_, end);
  }

  void misbehave() {
    if (is_healed_) {
      return;
    }
    auto& server = *servers_[below(member_count)];
    const auto dice = below(100);
    if (dice < 2) {
      cut_off_ = below(2) == 0 ? std::nullopt : std::optional(server.id());
    } else if (dice < 4) {
      network_delay_ = milliseconds(1 + below(below(5) == 0 ? 400 : 60));
    } else if (dice < 6) {
      disk_delay_ = milliseconds(1 + below(below(4) == 0 ? 900 : 40));
    } else if (dice < 8 && server.is_up()) {
      ++result_.crashes;
      server.crash();
    } else if (dice < 14 && !server.is_up()) {
      server.boot();
    } else if (dice < 50) {
      propose();
    }
    at(now_ + milliseconds(1 + below(30)), [this] { misbehave(); });
  }

  void propose() {
    for (auto& server : servers_) {
      if (server->leads()) {
        server->propose();
      }
    }
  }

  void heal() {
    is_healed_ = true;
    cut_off_.reset();
    network_delay_ = disk_delay_ = milliseconds(5);
    for (auto& server : servers_) {
      if (!server->is_up()) {
        server->boot();
      }
    }
    acknowledged_before_ = acknowledged_.size();
  }

  // A leader answers, and all have applied the same.
  bool is_settled() {
    if (acknowledged_.size() == acknowledged_before_) {
      propose();
      return false;
    }
    const auto applied = servers_.front()->replica().applied();
    return std::ranges::all_of(
        servers_, [&](const auto& server) { return server->replica().applied() == applied; });
  }

  std::mt19937_64 random_;
  std::priority_queue<Event> events_;
  std::uint64_t events_made_ = 0;
  milliseconds now_{1000};
  std::vector<std::unique_ptr<Server>> servers_;
  std::uint64_t drop_percent_ = 0;
  bool is_wild_ = false;  ///< Messages overtake each other and come twice.
  bool is_healed_ = false;
  std::optional<MemberId> cut_off_;
  milliseconds network_delay_{5};
  std::map<std::pair<MemberId, MemberId>, milliseconds> last_delivery_;
  std::size_t acknowledged_before_ = 0;
};

void World::deliver(MemberId from, MemberId peer, Message message) {
  if (cut_off_ == from || cut_off_ == peer || (!is_healed_ && below(100) < drop_percent_)) {
    return;
  }
  const auto shared = std::make_shared<const Message>(std::move(message));
  for (auto copies = is_wild_ && !is_healed_ && below(20) == 0 ? 2 : 1; copies > 0; --copies) {
    auto when = now_ + milliseconds(1 + below(static_cast<std::uint64_t>(network_delay_.count())));
    if (is_wild_ && !is_healed_) {
      when += milliseconds(below(30) == 0 ? below(2000) : 0);
    } else {
      auto& last = last_delivery_[{from, peer}];
      when = last = std::max(last, when);
    }
    at(when, [this, from, peer, shared] {
      auto& server = *servers_[peer.get() - 1];
      if (server.is_up()) {
        server.receive(from, *shared);
      }
    });
  }
}

void World::watch_timer(Server& server) {
  const auto life = server.life();
  const auto due = std::max(server.replica().deadline(), now_ + milliseconds(1));
  at(due, [this, &server, life] {
    if (!server.is_up() || server.life() != life) {
      return;
    }
    if (server.replica().deadline() <= now_) {
      server.timeout();
    }
    watch_timer(server);
  });
}

void Server::boot() {
  ++life_;
  durable_.settle();
  applied_ = Index{};
  chain_ = 0;
  is_taking_snapshot_ = false;
  last_write_ = world_.now();
  // Half of the time fewer than are in flight, against the advice: R5 has to work.
  replica_ = std::make_unique<Replica>(
      ReplicaOptions{.id = id(),
                     .seed = static_cast<std::uint32_t>(world_.below(1U << 31)),
                     .entries_in_flight_max = 64,
                     .trailing = world_.below(2) == 0 ? 4U : 100U});
  Recovered recovered{.term = durable_.term,
                      .voted_for = durable_.voted_for,
                      .snapshot = std::nullopt,
                      .first = durable_.first,
                      .entries = durable_.entries};
  if (durable_.snapshot.mark.index != Index{}) {
    restore(durable_.snapshot);
    recovered.snapshot = durable_.snapshot.mark;
  }
  enter([&] { replica_->start(std::move(recovered)); });
  world_.watch_timer(*this);
}

// Of what was on its way to the disk any beginning may have arrived.
void Server::crash() {
  replica_.reset();
  ++life_;
  proposed_.clear();
  auto arrived = world_.below(writes_.size() + 1);
  for (const auto& write : writes_) {
    if (arrived-- == 0) {
      auto torn = write;
      if (!torn.install.has_value()) {
        torn.entries.resize(world_.below(torn.entries.size()));
        persist(torn);
      }
      break;
    }
    persist(write);
  }
  writes_.clear();
}

void Server::propose() {
  const auto number = ++world_.last_number_;
  const auto index = next(replica_->log().last());
  proposed_[index] = number;
  enter([&] {
    if (!replica_->submit(std::make_shared<const std::string>(std::to_string(number)))) {
      proposed_.erase(index);
    }
  });
}

void Server::enter(const std::function<void()>& event) {
  replica_->set_time(world_.now());
  event();
  while (auto action = replica_->next_action()) {
    std::visit([this](auto& what) { carry_out(what); }, *action);
  }
}

void Server::carry_out(WriteEntries& action) {
  schedule_write(
      {.install = std::nullopt, .first = action.first, .entries = std::move(action.entries)});
}

void Server::carry_out(const WriteSnapshot& action) {
  ++world_.result_.installs;
  schedule_write({.install = action.snapshot, .first = {}, .entries = {}});
}

void Server::schedule_write(Write write) {
  writes_.push_back(std::move(write));
  const auto delay = world_.below(static_cast<std::uint64_t>(world_.disk_delay_.count()));
  last_write_ = std::max(last_write_, world_.now() + milliseconds(1 + delay));
  world_.at(last_write_, [this, life = life_] {
    if (life == life_) {
      write_done();
    }
  });
}

void Server::write_done() {
  persist(writes_.front());
  writes_.pop_front();
  enter([this] { replica_->disk_done(1); });
  consider_snapshot();
}

void Server::persist(const Write& write) {
  if (write.install.has_value()) {
    if (write.install->mark.index > durable_.snapshot.mark.index) {
      durable_.snapshot = *write.install;
    }
    durable_.entries.clear();
    durable_.first = next(write.install->mark.index);
    return;
  }
  for (std::size_t i = 0; i < write.entries.size(); ++i) {
    durable_.append(next(write.first, i), write.entries[i]);
  }
}

void Server::consider_snapshot() {
  const auto mark = replica_->next_snapshot();
  if (is_taking_snapshot_ || !mark.has_value() ||
      mark->index.get() < replica_->snapshot().index.get() + snapshot_every) {
    return;
  }
  is_taking_snapshot_ = true;
  const auto body = std::make_shared<const std::string>(std::to_string(chain_));
  world_.at(world_.now() + milliseconds(1 + world_.below(200)),
            [this, life = life_, mark = *mark, body] {
              if (life == life_) {
                snapshot_done(mark, body);
              }
            });
}

void Server::snapshot_done(const SnapshotMark& mark, const Bytes& body) {
  is_taking_snapshot_ = false;
  ++world_.result_.snapshots;
  if (mark.index > durable_.snapshot.mark.index) {
    durable_.snapshot = {.mark = mark, .body = body};
  }
  enter([&] { replica_->snapshot_taken(mark); });
  durable_.cut(Index{replica_->log().first().get() - 1});
}

void Server::send(MemberId peer, Message message) {
  world_.deliver(id(), peer, std::move(message));
}

void Server::carry_out(const ApplyEntry& action) {
  const auto& [index, entry] = action;
  if (index != next(applied_)) {
    world_.fail("member " + std::to_string(id().get()) + " left out an entry");
  }
  applied_ = index;
  chain_ = mixed(mixed(chain_, entry.term.get()), std::hash<std::string>()(*entry.payload));
  const auto [agreed, is_first] = world_.agreed_.try_emplace(
      index, World::Agreed{entry.term, *entry.payload, chain_, replica_->term()});
  if (agreed->second.term != entry.term || agreed->second.payload != *entry.payload ||
      agreed->second.chain != chain_) {
    world_.fail("two members applied different entries at " + std::to_string(index.get()));
  }
  if (entry.type != EntryType::command) {
    return;
  }
  const auto number = std::stoull(*entry.payload);
  if (is_first && !world_.applied_numbers_.insert(number).second) {
    world_.fail("command " + std::to_string(number) + " was applied twice");
  }
  const auto proposed = proposed_.find(index);
  if (proposed != proposed_.end() && proposed->second == number) {
    world_.acknowledged_.insert(number);
    world_.result_.acknowledged = world_.acknowledged_.size();
  }
}

void Server::restore(const Snapshot& snapshot) {
  applied_ = snapshot.mark.index;
  chain_ = std::stoull(*snapshot.body);
  const auto agreed = world_.agreed_.find(applied_);
  if (agreed == world_.agreed_.end() || agreed->second.chain != chain_) {
    world_.fail("a snapshot has another state than the log at " + std::to_string(applied_.get()));
  }
}

void Server::carry_out(const ChangeRole& action) {
  if (action.role != Role::leader) {
    proposed_.clear();
    return;
  }
  const auto [leader, is_first] = world_.leaders_.try_emplace(action.term, id());
  if (!is_first && leader->second != id()) {
    world_.fail("two members lead in term " + std::to_string(action.term.get()));
  }
  for (const auto& [index, agreed] : world_.agreed_) {
    const auto* entry = replica_->log().find(index);
    if (agreed.committed < replica_->term() &&
        (index > replica_->log().last() || (entry != nullptr && entry->term != agreed.term))) {
      world_.fail("a new leader lacks the committed entry " + std::to_string(index.get()));
    }
  }
}

void Server::carry_out(const Fail& action) {
  world_.fail("member " + std::to_string(id().get()) + ": " + action.why);
}

}  // namespace

SimulationResult simulate(std::uint64_t seed, milliseconds length) {
  return World(seed).run(length);
}

}  // namespace tenure::test
