#include "core/lock.hpp"

#include <algorithm>
#include <cassert>
#include <utility>
#include <variant>

namespace tenure::core {
namespace {

std::uint32_t capacity_of(const Claim& claim) {
  const auto* permits = std::get_if<Permits>(&claim);
  return permits == nullptr ? 0 : permits->capacity;
}

}  // namespace

void Load::add(const Claim& claim) {
  if (const auto* whole = std::get_if<Whole>(&claim)) {
    ++modes[index_of(whole->mode)];
  } else if (const auto* some = std::get_if<Permits>(&claim)) {
    permits += some->wanted;
  }
}

void Load::remove(const Claim& claim) {
  if (const auto* whole = std::get_if<Whole>(&claim)) {
    assert(modes[index_of(whole->mode)] > 0);
    --modes[index_of(whole->mode)];
  } else if (const auto* some = std::get_if<Permits>(&claim)) {
    assert(permits >= some->wanted);
    permits -= some->wanted;
  }
}

bool Load::admits(LockMode mode) const noexcept {
  return std::ranges::none_of(all_lock_modes, [&](LockMode other) {
    return modes[index_of(other)] > 0 && !compatible_with(mode, other);
  });
}

Load Load::without(const Load& part) const noexcept {
  Load rest = *this;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    assert(modes[i] >= part.modes[i]);
    rest.modes[i] -= part.modes[i];
  }
  assert(permits >= part.permits);
  rest.permits -= part.permits;
  return rest;
}

Lock::Counters Lock::counters() const noexcept {
  if (crowd_) {
    return crowd_->counters;
  }
  if (sole_ == FencingToken{}) {
    return {};
  }
  const Revision grant{sole_.get()};
  return {.create_revision = grant, .mod_revision = grant, .version = 1};
}

std::span<const FencingToken> Lock::holds() const noexcept {
  if (crowd_) {
    return {crowd_->holds.begin(), crowd_->holds.end()};
  }
  return {&sole_, sole_ == FencingToken{} ? 0U : 1U};
}

bool Lock::has_holder(FencingToken token) const {
  return crowd_ ? crowd_->holds.contains(token) : sole_ == token;
}

Load Lock::held() const noexcept {
  if (crowd_) {
    return crowd_->held;
  }
  Load load;
  load.modes[index_of(mode_)] = sole_ == FencingToken{} ? 0 : 1;
  return load;
}

const Lock::Crowd& Lock::crowd() const noexcept {
  static const Crowd nobody;
  return crowd_ ? *crowd_ : nobody;
}

Lock::Crowd& Lock::widen() {
  if (!crowd_) {
    Crowd crowd;
    crowd.counters = counters();
    crowd.held = held();
    if (sole_ != FencingToken{}) {
      crowd.holds.insert(sole_);
    }
    crowd_ = Shared(std::move(crowd));
  }
  return crowd_.edit();
}

void Lock::change(Crowd& crowd, Revision when) {
  if (crowd.counters.version == 0) {
    crowd.counters.create_revision = when;
  }
  crowd.counters.mod_revision = when;
  ++crowd.counters.version;
}

void Lock::add(const Stake& stake, Revision when) {
  const auto* whole = std::get_if<Whole>(&stake.claim);
  const bool is_alone = !crowd_ && sole_ == FencingToken{};
  if (is_alone && whole != nullptr && when.get() == stake.token.get()) {
    sole_ = stake.token;
    mode_ = whole->mode;
    return;
  }
  auto& crowd = widen();
  if (is_alone) {
    crowd.capacity = capacity_of(stake.claim);
  }
  change(crowd, when);
  crowd.holds.insert(stake.token);
  crowd.held.add(stake.claim);
  if (const auto* keys = std::get_if<Keys>(&stake.claim)) {
    crowd.ranges.held.insert(keys->range, {.token = stake.token, .mode = keys->mode});
  }
}

void Lock::remove(const Stake& stake, Revision when) {
  if (!crowd_) {
    // Its only claim, so the holder goes next, and with it the record.
    return;
  }
  auto& crowd = crowd_.edit();
  change(crowd, when);
  crowd.held.remove(stake.claim);
  if (const auto* keys = std::get_if<Keys>(&stake.claim)) {
    crowd.ranges.held.erase(keys->range, {.token = stake.token, .mode = keys->mode});
  }
}

void Lock::remove_holder(FencingToken token) {
  if (crowd_) {
    crowd_.edit().holds.erase(token);
  } else if (sole_ == token) {
    sole_ = {};
  }
}

void Lock::replace(const Stake& old, const Stake& next, Revision when) {
  auto& crowd = widen();
  change(crowd, when);
  crowd.held.remove(old.claim);
  crowd.held.add(next.claim);
  if (const auto* keys = std::get_if<Keys>(&old.claim)) {
    crowd.ranges.held.erase(keys->range, {.token = old.token, .mode = keys->mode});
  }
  if (const auto* keys = std::get_if<Keys>(&next.claim)) {
    crowd.ranges.held.insert(keys->range, {.token = next.token, .mode = keys->mode});
  }
  crowd.holds.erase(old.token);
  crowd.holds.insert(next.token);
}

void Lock::join(const Turn& turn, const Claim& claim) {
  const bool is_new = is_free();
  auto& crowd = widen();
  if (is_new) {
    // Free itself, but part of a request that waits elsewhere: the queue keeps its turn.
    crowd.counters = {.create_revision = turn.ticket, .mod_revision = turn.ticket};
    crowd.capacity = capacity_of(claim);
  }
  crowd.queue.insert(turn);
  crowd.queued.add(claim);
  if (const auto* keys = std::get_if<Keys>(&claim)) {
    crowd.ranges.queued.insert(keys->range, {.turn = turn, .mode = keys->mode});
  }
}

void Lock::leave(const Turn& turn, const Claim& claim) {
  auto& crowd = widen();
  crowd.queue.erase(turn);
  crowd.queued.remove(claim);
  if (const auto* keys = std::get_if<Keys>(&claim)) {
    crowd.ranges.queued.erase(keys->range, {.turn = turn, .mode = keys->mode});
  }
}

void Lock::set_counters(const Counters& counters) {
  if (this->counters() != counters) {
    widen().counters = counters;
  }
}

}  // namespace tenure::core
