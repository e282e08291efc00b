#include "backends/redis/cluster_router.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <boost/asio/post.hpp>

#include "sys/jitter.hpp"
#include "sys/random.hpp"

namespace tenure::backends::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Minimum interval between two queries of the slot table.
constexpr milliseconds refresh_interval_min{100};
/// Delay of the query after a MOVED redirect. The moved slot is known from the redirect; other
/// slots may be moving at the same time.
constexpr milliseconds refresh_delay_after_move{1000};
/// Minimum and maximum delay before parked commands are retried.
constexpr milliseconds park_min{10};
constexpr milliseconds park_max{500};

/// Owner of a slot; null: none.
const SlotTable::Owner* owner_in(const SlotTable& table, std::size_t slot) {
  const auto index = table.owner_of[slot];
  return index == SlotTable::unassigned ? nullptr : &table.owners[index];
}

/// Flag for each slot whose owner has changed; empty if there are none.
std::vector<bool> changes(const SlotTable& before, const SlotTable& after) {
  std::vector<bool> changed(slots_count);
  bool is_one = false;
  for (std::size_t slot = 0; slot < slots_count; ++slot) {
    const auto* const old = owner_in(before, slot);
    const auto* const now = owner_in(after, slot);
    changed[slot] = (old == nullptr || now == nullptr) ? old != now : *old != *now;
    is_one = is_one || changed[slot];
  }
  return is_one ? changed : std::vector<bool>();
}

}  // namespace

ClusterRouter::ClusterRouter(boost::asio::io_context& loop, std::vector<Endpoint> seeds,
                             ServerOptions server, std::string channel, Callbacks callbacks)
    : loop_(loop),
      seeds_(std::move(seeds)),
      server_(std::move(server)),
      channel_(std::move(channel)),
      callbacks_(std::move(callbacks)),
      park_timer_(loop),
      refresh_timer_(loop) {}

ClusterRouter::~ClusterRouter() = default;

void ClusterRouter::start() {
  refresh();
}

void ClusterRouter::stop(const Error& why) {
  is_stopped_ = true;
  park_timer_.cancel();
  refresh_timer_.cancel();
  if (query_) {
    query_->stop();
  }
  for (const auto& node : nodes_) {
    node.connections->stop(why);
  }
  for (auto& command : std::exchange(parked_, {})) {
    command.complete(std::unexpected(why));
  }
}

bool ClusterRouter::is_ready() const {
  return table_ && !nodes_.empty() &&
         std::ranges::all_of(nodes_, [](const auto& node) { return node.connections->is_ready(); });
}

bool ClusterRouter::reaches(std::string_view key) const {
  const auto* const node = find_node(slot_of(key));
  return node != nullptr && node->is_connected();
}

bool ClusterRouter::is_idle() const {
  return parked_.empty() &&
         std::ranges::all_of(nodes_, [](const auto& node) { return node.connections->is_idle(); });
}

// Routing.

void ClusterRouter::run(Command&& command) {
  if (is_stopped_ || (command.was_sent && command.retry == Command::Retry::never)) {
    command.complete(
        fail(Errc::unavailable,
             is_stopped_ ? "the client is closing"
                         : "connection to the cluster node lost; the command is not repeated"));
    return;
  }
  const auto key = first_key_of(command.encoded);
  auto* const node = node_of(slot_of(key.value_or("")));
  if (node == nullptr) {
    park(std::move(command), "no cluster node serves the slot");
  } else {
    node->run(std::move(command));
  }
}

void ClusterRouter::flush() {
  for (const auto& node : nodes_) {
    node.connections->flush();
  }
}

ServerConnections* ClusterRouter::find_node(Slot slot) const {
  const auto index = table_ ? table_->owner_of[slot] : SlotTable::unassigned;
  if (index == SlotTable::unassigned) {
    return nullptr;
  }
  const auto found =
      std::ranges::find(nodes_, table_->owners[index], [](const auto& node) { return node.owner; });
  return found == nodes_.end() ? nullptr : found->connections.get();
}

ServerConnections* ClusterRouter::node_of(Slot slot) {
  if (auto* const found = find_node(slot)) {
    return found;
  }
  const auto index = table_ ? table_->owner_of[slot] : SlotTable::unassigned;
  return index == SlotTable::unassigned ? nullptr : &make_node(table_->owners[index]);
}

// PUBLISH reaches the subscribers of all nodes, but returns only the number of those on the
// publishing node. A channel for each node makes this number reliable: a client subscribes to it at
// that node only.
ServerConnections& ClusterRouter::make_node(const SlotTable::Owner& owner) {
  auto server = server_;
  server.endpoint = owner.endpoint;
  server.role = ServerRole::cluster_primary;
  ServerConnections::Callbacks callbacks{
      .ready = [this, owner] { ready(owner); },
      .disconnected = [this](const Error& why) { disconnected(why); },
      .idle = [this] { callbacks_.idle(); },
      .warning = callbacks_.warning,
      .message = callbacks_.message,
      .redirected = [this, host = owner.endpoint.host](
                        Command command,
                        std::string_view words) { redirected(std::move(command), words, host); }};
  auto connections = std::make_shared<ServerConnections>(
      loop_, std::move(server), channel_ + ":" + owner.id, std::move(callbacks));
  nodes_.push_back({.owner = owner, .connections = connections});
  connections->start();
  return *connections;
}

// Events of the nodes.

void ClusterRouter::ready(const SlotTable::Owner& owner) {
  if (is_stopped_) {
    return;
  }
  callbacks_.ready(keys_in_slots([this, owner](Slot slot) {
    const auto index = table_->owner_of[slot];
    return index != SlotTable::unassigned && table_->owners[index] == owner;
  }));
  if (is_ready() && std::exchange(was_disconnected_, false)) {
    callbacks_.recovered();
  }
}

void ClusterRouter::disconnected(const Error& why) {
  was_disconnected_ = true;
  callbacks_.disconnected(why);
  refresh_soon(milliseconds::zero());
}

KeyFilter ClusterRouter::keys_in_slots(std::function<bool(Slot)> slots) const {
  return [slots = std::move(slots)](std::string_view key) { return slots(slot_of(key)); };
}

void ClusterRouter::redirected(Command command, std::string_view words, const std::string& host) {
  if (command.redirected_since == steady_clock::time_point{}) {
    command.redirected_since = steady_clock::now();
  }
  const auto redirection = redirection_from(words, host);
  if (!redirection || ++command.redirects > redirects_max) {
    refresh_soon(milliseconds::zero());
    park(std::move(command), words);
  } else if (words.starts_with("ASK ") && command.replicas == 0) {
    run_with_asking(std::move(command), *redirection);
  } else if (words.starts_with("MOVED ") && apply_moved(*redirection)) {
    run(std::move(command));
  } else {
    park(std::move(command), words);
  }
  flush();
}

bool ClusterRouter::apply_moved(const Redirection& redirection) {
  const auto found =
      std::ranges::find(table_->owners, redirection.endpoint, &SlotTable::Owner::endpoint);
  if (found == table_->owners.end()) {
    refresh_soon(milliseconds::zero());
    return false;
  }
  const auto index = static_cast<std::uint16_t>(found - table_->owners.begin());
  if (std::exchange(table_->owner_of[redirection.slot], index) != index) {
    refresh_soon(refresh_delay_after_move);
    // The notifications of the waiters come from the new node from now on.
    callbacks_.ready(
        keys_in_slots([moved = redirection.slot](Slot slot) { return slot == moved; }));
  }
  return true;
}

void ClusterRouter::run_with_asking(Command command, const Redirection& redirection) {
  const auto found = std::ranges::find(nodes_, redirection.endpoint,
                                       [](const auto& node) { return node.owner.endpoint; });
  auto& node =
      found != nodes_.end() ? *found->connections : make_node({.endpoint = redirection.endpoint});
  node.run({.encoded = encode_command({"ASKING"}),
            .on_reply = [](const auto&) {},
            .retry = Command::Retry::never});
  node.run(std::move(command));
}

void ClusterRouter::park(Command command, std::string_view words) {
  const auto now = steady_clock::now();
  if (command.redirected_since == steady_clock::time_point{}) {
    command.redirected_since = now;
  }
  const auto since = now - command.redirected_since;
  if (command.retry != Command::Retry::always && since > server_.timeout) {
    command.complete(fail(Errc::unavailable, "cluster: " + std::string(words)));
    return;
  }
  command.redirects = 0;
  parked_.push_back(std::move(command));
  if (std::exchange(is_park_timer_running_, true)) {
    return;
  }
  // A quarter of the time since the first redirect: exponential backoff without a counter.
  const auto quarter = std::chrono::duration_cast<milliseconds>(since) / 4;
  const auto pause = std::clamp(quarter, park_min, park_max);
  park_timer_.expires_after(sys::with_jitter(pause));
  park_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !is_stopped_) {
      is_park_timer_running_ = false;
      unpark();
    }
  });
}

void ClusterRouter::unpark() {
  for (auto& command : std::exchange(parked_, {})) {
    run(std::move(command));
  }
  flush();
}

// Slot table.

void ClusterRouter::refresh_soon(milliseconds pause) {
  const auto when = std::max(steady_clock::now() + pause, refreshed_at_ + refresh_interval_min);
  if (is_stopped_ || (refresh_at_ && *refresh_at_ <= when)) {
    return;
  }
  refresh_at_ = when;
  refresh_timer_.expires_at(when);
  refresh_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !is_stopped_) {
      refresh_at_.reset();
      refresh();
    }
  });
}

void ClusterRouter::refresh() {
  if (query_ || is_stopped_) {
    return;
  }
  refreshed_at_ = steady_clock::now();
  auto servers = servers_to_query();
  reported_tables_.assign(servers.size(), std::nullopt);
  const auto steps = [this, servers](std::size_t which) {
    const auto epoch = std::make_shared<std::uint64_t>(0);
    return std::vector<HandshakeStep>{
        {.command = encode_command({"CLUSTER", "INFO"}),
         .check =
             [epoch](const Reply& reply) {
               *epoch = epoch_from(reply.text);
               return Result<void>();
             }},
        {.command = encode_command({"CLUSTER", "SLOTS"}),
         .check = [this, epoch, which,
                   where = servers[which].endpoint](const Reply& reply) -> Result<void> {
           auto table = table_from(reply, where.host);
           if (!table || table->owners.empty()) {
             return fail(
                 reply.text.starts_with("NOPERM") ? Errc::permission_denied : Errc::unavailable,
                 name_of(where) + ": " + (table ? "no cluster node serves any slot" : reply.text));
           }
           table->epoch = *epoch;
           reported_tables_[which] = std::move(table);
           return {};
         }}};
  };
  query_ = std::make_shared<FanOutQuery>(
      loop_, std::move(servers),
      FanOutQuery::Options{.steps = steps, .done = [this](const auto& all) { query_done(all); }});
  query_->start();
}

/// Partial Fisher-Yates shuffle, so that a dead prefix of the list does not fail every query.
std::vector<ServerOptions> ClusterRouter::servers_to_query() const {
  std::vector<Endpoint> all = seeds_;
  for (const auto& owner : table_ ? table_->owners : std::vector<SlotTable::Owner>()) {
    if (std::ranges::find(all, owner.endpoint) == all.end()) {
      all.push_back(owner.endpoint);
    }
  }
  for (std::size_t at = 0; at + 1 < all.size(); ++at) {
    std::swap(all[at], all[at + sys::random_id() % (all.size() - at)]);
  }
  all.resize(std::min(all.size(), queried_servers_max));
  std::vector<ServerOptions> servers;
  for (auto& endpoint : all) {
    servers.push_back(server_);
    servers.back().endpoint = std::move(endpoint);
    servers.back().role = ServerRole::cluster_member;
  }
  return servers;
}

void ClusterRouter::query_done(const std::vector<Result<void>>& answers) {
  query_.reset();
  std::optional<SlotTable> newest;
  for (auto& answer : reported_tables_) {
    if (answer && (!newest || answer->epoch > newest->epoch)) {
      newest = std::move(answer);
    }
  }
  if (newest) {
    apply(*std::move(newest));
    return;
  }
  const auto refused = std::ranges::find_if(
      answers, [](const auto& one) { return !one && one.error() != Errc::unavailable; });
  const auto code = refused != answers.end() ? refused->error().code : Errc::unavailable;
  disconnected(
      {.code = code, .detail = "no cluster node reported the slot table: " + join_errors(answers)});
}

void ClusterRouter::apply(SlotTable table) {
  const auto before = std::exchange(table_, std::move(table));
  const auto changed = before ? changes(*before, *table_) : std::vector<bool>();
  retire_stale_nodes();
  if (!before) {
    // Connect to one node at once, so that wrong credentials are reported by open().
    make_node(table_->owners.front());
  }
  if (!changed.empty()) {
    callbacks_.ready(keys_in_slots([changed](Slot slot) { return changed[slot]; }));
  }
  unpark();
  if (is_ready() && std::exchange(was_disconnected_, false)) {
    callbacks_.recovered();
  }
}

void ClusterRouter::retire_stale_nodes() {
  const auto is_none = [this](const Node& node) {
    return std::ranges::find(table_->owners, node.owner) == table_->owners.end();
  };
  std::vector<Node> retired;
  std::ranges::copy_if(nodes_, std::back_inserter(retired), is_none);
  std::erase_if(nodes_, is_none);
  for (const auto& node : retired) {
    std::ranges::move(node.connections->retire(), std::back_inserter(parked_));
    // Handlers of the node that are queued on the loop still refer to it.
    boost::asio::post(loop_, [kept = node.connections] {});
  }
}

}  // namespace tenure::backends::redis
