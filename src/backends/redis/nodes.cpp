#include "backends/redis/nodes.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <boost/asio/post.hpp>

#include "sys/chance.hpp"
#include "sys/jitter.hpp"

namespace tenure::backends::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Between two questions about who is where.
constexpr milliseconds ask_pause{100};
/// After a slot moved, which is known by then: others may have moved as well.
constexpr milliseconds ask_later{1000};
/// Before what nobody took is tried again.
constexpr milliseconds park_min{10};
constexpr milliseconds park_max{500};

const SlotTable::Owner* owner_in(const SlotTable& table, std::size_t slot) {
  const auto index = table.owner_of[slot];
  return index == SlotTable::nobody ? nullptr : &table.owners[index];
}

/// By slot, which ones have another owner; empty if none.
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

Nodes::Nodes(boost::asio::io_context& loop, std::vector<Endpoint> seeds, Address address,
             std::string channel, Calls calls)
    : loop_(loop),
      seeds_(std::move(seeds)),
      address_(std::move(address)),
      channel_(std::move(channel)),
      calls_(std::move(calls)),
      parking_(loop),
      asking_(loop) {}

Nodes::~Nodes() = default;

void Nodes::start() {
  ask();
}

void Nodes::stop(const Error& why) {
  is_stopped_ = true;
  parking_.cancel();
  asking_.cancel();
  if (poll_) {
    poll_->stop();
  }
  for (const auto& node : nodes_) {
    node->stop(why);
  }
  for (auto& parked : std::exchange(parked_, {})) {
    parked.errand.tell(std::unexpected(why));
  }
}

bool Nodes::is_ready() const {
  return table_ && !nodes_.empty() &&
         std::ranges::all_of(nodes_, [](const auto& node) { return node->is_ready(); });
}

bool Nodes::reaches(std::string_view key) const {
  const auto* const node = find_node(slot_of(key));
  return node != nullptr && node->is_connected();
}

bool Nodes::is_idle() const {
  return parked_.empty() &&
         std::ranges::all_of(nodes_, [](const auto& node) { return node->is_idle(); });
}

// Carrying.

void Nodes::run(Errand&& errand) {
  run_again({.errand = std::move(errand)});
}

void Nodes::run_replicated(Errand errand, std::uint32_t replicas) {
  run_again({.errand = std::move(errand), .replicas = replicas});
}

void Nodes::run_again(Parked parked) {
  auto& errand = parked.errand;
  if (is_stopped_ || (errand.was_sent && errand.loss == Errand::Loss::once)) {
    errand.tell(fail(Errc::unavailable,
                     is_stopped_ ? "the client ends" : "the node that was asked is gone"));
    return;
  }
  const auto key = first_key_of(errand.command);
  auto* const node = node_of(slot_of(key.value_or("")));
  if (node == nullptr) {
    park(std::move(errand), parked.replicas, "no node serves its slot at the moment");
  } else if (parked.replicas > 0) {
    node->run_replicated(std::move(errand), parked.replicas);
  } else {
    node->run(std::move(errand));
  }
}

void Nodes::flush() {
  for (const auto& node : nodes_) {
    node->flush();
  }
}

Node* Nodes::find_node(Slot slot) const {
  const auto index = table_ ? table_->owner_of[slot] : SlotTable::nobody;
  if (index == SlotTable::nobody) {
    return nullptr;
  }
  const auto found = std::ranges::find(nodes_, table_->owners[index],
                                       [](const auto& node) { return node->owner(); });
  return found == nodes_.end() ? nullptr : found->get();
}

Node* Nodes::node_of(Slot slot) {
  if (auto* const found = find_node(slot)) {
    return found;
  }
  const auto index = table_ ? table_->owner_of[slot] : SlotTable::nobody;
  return index == SlotTable::nobody ? nullptr : &make_node(table_->owners[index]);
}

Node& Nodes::make_node(const SlotTable::Owner& owner) {
  auto address = address_;
  address.endpoint = owner.endpoint;
  address.part = Part::cluster_primary;
  nodes_.push_back(std::make_shared<Node>(
      loop_, owner, std::move(address), channel_,
      Node::Calls{
          .ready = [this](const Node& node) { ready(node); },
          .lost = [this](const Error& why) { lost(why); },
          .idle = [this] { calls_.idle(); },
          .doubtful = calls_.doubtful,
          .heard = calls_.heard,
          .astray = [this](
                        Errand errand, std::uint32_t replicas, std::string_view words,
                        const Node& node) { astray(std::move(errand), replicas, words, node); }}));
  nodes_.back()->start();
  return *nodes_.back();
}

// What nodes say.

void Nodes::ready(const Node& node) {
  if (is_stopped_) {
    return;
  }
  calls_.ready(concerning([this, owner = node.owner()](Slot slot) {
    const auto index = table_->owner_of[slot];
    return index != SlotTable::nobody && table_->owners[index] == owner;
  }));
  if (is_ready() && std::exchange(was_lost_, false)) {
    calls_.healed();
  }
}

void Nodes::lost(const Error& why) {
  was_lost_ = true;
  calls_.lost(why);
  ask_soon(milliseconds::zero());
}

Concerns Nodes::concerning(std::function<bool(Slot)> slots) const {
  return [slots = std::move(slots)](std::string_view key) { return slots(slot_of(key)); };
}

void Nodes::astray(Errand errand, std::uint32_t replicas, std::string_view words,
                   const Node& node) {
  if (errand.astray_since == steady_clock::time_point{}) {
    errand.astray_since = steady_clock::now();
  }
  const auto redirection = redirection_from(words, node.owner().endpoint.host);
  if (!redirection || ++errand.detours > detours_max) {
    ask_soon(milliseconds::zero());
    park(std::move(errand), replicas, words);
  } else if (words.starts_with("ASK ") && replicas == 0) {
    ask_there(std::move(errand), *redirection);
  } else if (words.starts_with("MOVED ") && moved(*redirection)) {
    run_again({.errand = std::move(errand), .replicas = replicas});
  } else {
    park(std::move(errand), replicas, words);
  }
  flush();
}

bool Nodes::moved(const Redirection& redirection) {
  const auto found =
      std::ranges::find(table_->owners, redirection.endpoint, &SlotTable::Owner::endpoint);
  if (found == table_->owners.end()) {
    ask_soon(milliseconds::zero());
    return false;
  }
  const auto index = static_cast<std::uint16_t>(found - table_->owners.begin());
  if (std::exchange(table_->owner_of[redirection.slot], index) != index) {
    ask_soon(ask_later);
    // Who waits for something there is heard at that node only from now on.
    calls_.ready(concerning([moved = redirection.slot](Slot slot) { return slot == moved; }));
  }
  return true;
}

/// Once, and only this: the slot is on its way there.
void Nodes::ask_there(Errand errand, const Redirection& redirection) {
  const auto found = std::ranges::find(nodes_, redirection.endpoint,
                                       [](const auto& node) { return node->owner().endpoint; });
  auto& node = found != nodes_.end() ? **found : make_node({.endpoint = redirection.endpoint});
  node.run({.command = command_of({"ASKING"}),
            .answered = [](const auto&) {},
            .loss = Errand::Loss::once});
  node.run(std::move(errand));
}

void Nodes::park(Errand errand, std::uint32_t replicas, std::string_view words) {
  const auto now = steady_clock::now();
  if (errand.astray_since == steady_clock::time_point{}) {
    errand.astray_since = now;
  }
  const auto since = now - errand.astray_since;
  if (errand.loss != Errand::Loss::send_again && since > address_.timeout) {
    errand.tell(fail(Errc::unavailable, "the cluster: " + std::string(words)));
    return;
  }
  errand.detours = 0;
  parked_.push_back({.errand = std::move(errand), .replicas = replicas});
  if (std::exchange(is_parking_, true)) {
    return;
  }
  const auto quarter = std::chrono::duration_cast<milliseconds>(since) / 4;
  const auto pause = std::clamp(quarter, park_min, park_max);
  parking_.expires_after(sys::with_jitter(pause));
  parking_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !is_stopped_) {
      is_parking_ = false;
      unpark();
    }
  });
}

void Nodes::unpark() {
  for (auto& parked : std::exchange(parked_, {})) {
    run_again(std::move(parked));
  }
  flush();
}

// Where things are.

void Nodes::ask_soon(milliseconds pause) {
  const auto when = std::max(steady_clock::now() + pause, asked_at_ + ask_pause);
  if (is_stopped_ || (ask_at_ && *ask_at_ <= when)) {
    return;
  }
  ask_at_ = when;
  asking_.expires_at(when);
  asking_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !is_stopped_) {
      ask_at_.reset();
      ask();
    }
  });
}

void Nodes::ask() {
  if (poll_ || is_stopped_) {
    return;
  }
  asked_at_ = steady_clock::now();
  auto whom = whom_to_ask();
  answers_.assign(whom.size(), std::nullopt);
  const auto steps = [this, whom](std::size_t which) {
    const auto epoch = std::make_shared<std::uint64_t>(0);
    return std::vector<Step>{
        {.command = command_of({"CLUSTER", "INFO"}),
         .check =
             [epoch](const Reply& reply) {
               *epoch = epoch_from(reply.text);
               return Result<void>();
             }},
        {.command = command_of({"CLUSTER", "SLOTS"}),
         .check = [this, epoch, which,
                   where = whom[which].endpoint](const Reply& reply) -> Result<void> {
           auto table = table_from(reply, where.host);
           if (!table || table->owners.empty()) {
             return fail(
                 reply.text.starts_with("NOPERM") ? Errc::permission_denied : Errc::unavailable,
                 name_of(where) + ": " +
                     (table ? "the cluster has no nodes with slots" : reply.text));
           }
           table->epoch = *epoch;
           answers_[which] = std::move(table);
           return {};
         }}};
  };
  poll_ = std::make_shared<Poll>(
      loop_, std::move(whom),
      Poll::Question{.steps = steps, .done = [this](const auto& all) { answered(all); }});
  poll_->start();
}

/// Those that we know, and those that the URL names; not all of a hundred.
std::vector<Address> Nodes::whom_to_ask() const {
  std::vector<Endpoint> all = seeds_;
  for (const auto& owner : table_ ? table_->owners : std::vector<SlotTable::Owner>()) {
    if (std::ranges::find(all, owner.endpoint) == all.end()) {
      all.push_back(owner.endpoint);
    }
  }
  for (std::size_t at = 0; at + 1 < all.size(); ++at) {
    std::swap(all[at], all[at + sys::random_id() % (all.size() - at)]);
  }
  all.resize(std::min(all.size(), asked_max));
  std::vector<Address> addresses;
  for (auto& endpoint : all) {
    addresses.push_back(address_);
    addresses.back().endpoint = std::move(endpoint);
    addresses.back().part = Part::cluster_member;
  }
  return addresses;
}

void Nodes::answered(const std::vector<Result<void>>& answers) {
  poll_.reset();
  std::optional<SlotTable> newest;
  for (auto& answer : answers_) {
    if (answer && (!newest || answer->epoch > newest->epoch)) {
      newest = std::move(answer);
    }
  }
  if (newest) {
    take(*std::move(newest));
    return;
  }
  const auto refused = std::ranges::find_if(
      answers, [](const auto& one) { return !one && one.error() != Errc::unavailable; });
  const auto code = refused != answers.end() ? refused->error().code : Errc::unavailable;
  lost({.code = code, .detail = "no node tells of the cluster: " + words_of(answers)});
}

void Nodes::take(SlotTable table) {
  const auto before = std::exchange(table_, std::move(table));
  const auto changed = before ? changes(*before, *table_) : std::vector<bool>();
  retire_all_but_owners();
  if (!before) {
    // So that it is known at once whether they let us in.
    make_node(table_->owners.front());
  }
  if (!changed.empty()) {
    calls_.ready(concerning([changed](Slot slot) { return changed[slot]; }));
  }
  unpark();
  if (is_ready() && std::exchange(was_lost_, false)) {
    calls_.healed();
  }
}

void Nodes::retire_all_but_owners() {
  const auto is_none = [this](const std::shared_ptr<Node>& node) {
    return std::ranges::find(table_->owners, node->owner()) == table_->owners.end();
  };
  std::vector<std::shared_ptr<Node>> retired;
  std::ranges::copy_if(nodes_, std::back_inserter(retired), is_none);
  std::erase_if(nodes_, is_none);
  for (const auto& node : retired) {
    for (auto& rest : node->retire()) {
      parked_.push_back({.errand = std::move(rest.errand), .replicas = rest.replicas});
    }
    // What is on its way to it is done before.
    boost::asio::post(loop_, [node] {});
  }
}

}  // namespace tenure::backends::redis
