#include "history/history.hpp"

#include <algorithm>

#include "history/lines.hpp"

namespace tenure::history {

void Belief::confirm(Time at, Time until) {
  until = std::min(until, ended_);
  if (until <= at) {
    return;
  }
  if (parts_.empty() || parts_.back().end < at) {
    parts_.push_back({.begin = at, .end = until});
  } else {
    parts_.back().end = std::max(parts_.back().end, until);
  }
}

void Belief::end(Time at) {
  ended_ = std::min(ended_, at);
  while (!parts_.empty() && parts_.back().begin >= ended_) {
    parts_.pop_back();
  }
  if (!parts_.empty()) {
    parts_.back().end = std::min(parts_.back().end, ended_);
  }
}

bool Belief::covers(Time begin, Time end) const {
  return std::ranges::any_of(
      parts_, [&](const Interval& part) { return part.begin <= begin && end <= part.end; });
}

bool Request::is_pending(Time at) const {
  return invoked <= at && (!answered || *answered > at) && (!failed || *failed > at);
}

bool Request::is_refused() const {
  return failed.has_value() && (why == "deadlock" || why == "would_block" || why == "refused");
}

bool Request::may_hold() const {
  return is_granted() || !is_refused();
}

std::string place_of(const Item& item) {
  return item.range.has_value() ? item.name + " (keys)" : item.name;
}

bool overlap(const Range& left, const Range& right) {
  return (!right.end.has_value() || left.start < *right.end) &&
         (!left.end.has_value() || right.start < *left.end);
}

bool conflict(const Item& left, const Item& right) {
  if (place_of(left) != place_of(right) || left.permits.has_value() || right.permits.has_value()) {
    return false;
  }
  if (left.range.has_value() && !overlap(*left.range, *right.range)) {
    return false;
  }
  return !compatible_with(left.mode, right.mode);
}

std::string describe(const Item& item) {
  if (item.permits.has_value()) {
    return std::to_string(item.permits->wanted) + " of " + std::to_string(item.permits->capacity) +
           " permits of " + item.name;
  }
  std::string range;
  if (item.range.has_value()) {
    range = " [" + item.range->start + ", " + item.range->end.value_or("end") + ")";
  }
  return item.name + range + " in " + std::string(tenure::to_string(item.mode));
}

std::string describe(const Request& request) {
  std::string text = request.id;
  if (!request.tokens.empty()) {
    text += " (token " + std::to_string(request.token()) + ")";
  }
  return text;
}

Time latest_end(const History& history, const Request& request) {
  if (request.released.has_value()) {
    return *request.released;
  }
  if (!request.may_hold()) {
    return *request.failed;
  }
  const auto lease = history.leases.find(request.owner);
  if (lease == history.leases.end() || !lease->second.lost.has_value()) {
    return never;
  }
  return std::max(*lease->second.lost, lease->second.belief.last()) + history.ttl_max;
}

namespace {

class Assembly {
 public:
  void take(const Event& event) {
    ++history_.counts[event.kind];
    switch (event.kind) {
      case Kind::history:
        history_.properties = event.properties;
        history_.bound = event.bound;
        history_.ttl_max = event.ttl_max;
        return;
      case Kind::invoke: invoke(event); return;
      case Kind::renewed:
        history_.leases[event.owner].belief.confirm(event.at, event.until.value_or(event.at));
        for (auto* request : holders_[event.owner]) {
          request->belief.confirm(event.at, event.until.value_or(event.at));
        }
        return;
      case Kind::lost: lose(event.owner, event.at); return;
      case Kind::died: client_died(event); return;
      case Kind::read:
        for (const auto& item : event.items) {
          history_.reads.push_back({.since = event.since.value_or(event.at),
                                    .at = event.at,
                                    .name = item.name,
                                    .holders = event.holders});
        }
        return;
      case Kind::write:
        history_.writes[event.resource].push_back(
            {.at = event.at, .token = event.token.value_or(0), .is_accepted = event.is_accepted});
        return;
      case Kind::watching: watch_started(event); return;
      case Kind::watch: watch(event); return;
      case Kind::fault: history_.healed = never; return;
      case Kind::healed: history_.healed = event.at; return;
      case Kind::end: history_.end = event.at; return;
      default: answer(event); return;
    }
  }

  History finish() && {
    for (const auto& [id, request] : history_.requests) {
      for (const auto& item : request.items) {
        history_.places[place_of(item)].push_back({.request = &request, .item = &item});
      }
    }
    for (auto& [place, uses] : history_.places) {
      std::ranges::stable_sort(uses, {}, [](const Use& use) { return use.request->invoked; });
    }
    return std::move(history_);
  }

 private:
  void invoke(const Event& event) {
    const auto [it, is_new] = history_.requests.try_emplace(event.request);
    if (!is_new) {
      add_contradiction(event, "is invoked twice");
      return;
    }
    auto& request = it->second;
    request.id = event.request;
    request.client = event.client;
    request.owner = event.owner;
    request.items = event.items;
    request.policy = event.policy;
    request.invoked = event.at;
    history_.leases[event.owner];
    owners_[event.client].push_back(event.owner);
  }

  void answer(const Event& event) {
    const auto it = history_.requests.find(event.request);
    if (it == history_.requests.end()) {
      add_contradiction(event, "was never invoked");
      return;
    }
    auto& request = it->second;
    switch (event.kind) {
      case Kind::queued: note(request.queued, event.at); return;
      case Kind::granted: grant(request, event); return;
      case Kind::failed:
        note(request.failed, event.at);
        request.why = event.why;
        request.cycle = event.cycle;
        return;
      case Kind::release:
        note(request.release, event.at);
        request.belief.end(event.at);
        return;
      case Kind::released: note(request.released, event.at); return;
      case Kind::leave: note(request.left, event.at); return;
      case Kind::downgrade:
        request.downgrades.push_back({.at = event.at, .mode = event.items.at(0).mode});
        return;
      default: return;
    }
  }

  static void note(std::optional<Time>& field, Time at) {
    field = std::min(field.value_or(at), at);
  }

  void grant(Request& request, const Event& event) {
    note(request.answered, event.at);
    const auto token = event.token.value_or(0);
    if (std::ranges::find(request.tokens, token) == request.tokens.end()) {
      request.tokens.push_back(token);
    }
    request.belief.confirm(event.at, event.until.value_or(never));
    holders_[request.owner].push_back(&request);
  }

  void lose(const std::string& owner, Time at) {
    auto& lease = history_.leases[owner];
    note(lease.lost, at);
    lease.belief.end(at);
    for (auto* request : holders_[owner]) {
      request->belief.end(at);
    }
  }

  // Validity lasts until the lease expires, since a paused client continues with it. A client that
  // exits records `lost` first.
  void client_died(const Event& event) {
    for (const auto& owner : owners_[event.client]) {
      note(history_.leases[owner].lost, event.at);
    }
    if (const auto it = history_.watchers.find(event.client); it != history_.watchers.end()) {
      it->second.is_alive = false;
    }
  }

  void watch_started(const Event& event) {
    auto& watcher = history_.watchers[event.watcher];
    watcher.since = event.at;
    for (const auto& item : event.items) {
      watcher.names.push_back(item.name);
    }
  }

  void watch(const Event& event) {
    history_.watchers[event.watcher].events.push_back({.at = event.at,
                                                       .name = event.items.at(0).name,
                                                       .owner = event.owner,
                                                       .request = event.request,
                                                       .token = event.token.value_or(0)});
  }

  void add_contradiction(const Event& event, const std::string& why) {
    history_.contradictions.push_back("request " + event.request + " " + why + " (" +
                                      std::string(to_string(event.kind)) + ")");
  }

  History history_;
  std::map<std::string, std::vector<Request*>> holders_;    ///< By owner; they were granted.
  std::map<std::string, std::vector<std::string>> owners_;  ///< By client.
};

}  // namespace

History assemble(const Events& events) {
  Assembly assembly;
  for (const auto& event : events) {
    assembly.take(event);
  }
  return std::move(assembly).finish();
}

}  // namespace tenure::history
