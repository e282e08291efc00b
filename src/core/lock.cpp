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
  if (full_) {
    return full_->counters;
  }
  if (sole_holder_ == FencingToken{}) {
    return {};
  }
  const Revision grant{sole_holder_.get()};
  return {.create_revision = grant, .mod_revision = grant, .version = 1};
}

std::span<const FencingToken> Lock::holds() const noexcept {
  if (full_) {
    return {full_->holds.begin(), full_->holds.end()};
  }
  return {&sole_holder_, sole_holder_ == FencingToken{} ? 0U : 1U};
}

bool Lock::has_holder(FencingToken token) const {
  return full_ ? full_->holds.contains(token) : sole_holder_ == token;
}

Load Lock::held() const noexcept {
  if (full_) {
    return full_->held;
  }
  Load load;
  load.modes[index_of(mode_)] = sole_holder_ == FencingToken{} ? 0 : 1;
  return load;
}

const Lock::FullState& Lock::full() const noexcept {
  static const FullState empty;
  return full_ ? *full_ : empty;
}

Lock::FullState& Lock::inflate() {
  if (!full_) {
    FullState full;
    full.counters = counters();
    full.held = held();
    if (sole_holder_ != FencingToken{}) {
      full.holds.insert(sole_holder_);
    }
    full_ = CowPtr(std::move(full));
  }
  return full_.edit();
}

void Lock::change(FullState& full, Revision when) {
  if (full.counters.version == 0) {
    full.counters.create_revision = when;
  }
  full.counters.mod_revision = when;
  ++full.counters.version;
}

void Lock::add(const HeldClaim& held, Revision when) {
  const auto* whole = std::get_if<Whole>(&held.claim);
  const bool is_alone = !full_ && sole_holder_ == FencingToken{};
  // Thin only if the lock is acquired in this revision: then the counters follow from the token.
  if (is_alone && whole != nullptr && when.get() == held.token.get()) {
    sole_holder_ = held.token;
    mode_ = whole->mode;
    return;
  }
  auto& full = inflate();
  if (is_alone) {
    full.capacity = capacity_of(held.claim);
  }
  change(full, when);
  full.holds.insert(held.token);
  full.held.add(held.claim);
  if (const auto* keys = std::get_if<Keys>(&held.claim)) {
    full.ranges.held.insert(keys->range, {.token = held.token, .mode = keys->mode});
  }
}

void Lock::remove(const HeldClaim& held, Revision when) {
  if (!full_) {
    // A thin lock has one claim: remove_holder() follows, and the record is dropped.
    return;
  }
  auto& full = full_.edit();
  change(full, when);
  full.held.remove(held.claim);
  if (const auto* keys = std::get_if<Keys>(&held.claim)) {
    full.ranges.held.erase(keys->range, {.token = held.token, .mode = keys->mode});
  }
}

void Lock::remove_holder(FencingToken token) {
  if (full_) {
    full_.edit().holds.erase(token);
  } else if (sole_holder_ == token) {
    sole_holder_ = {};
  }
}

// One call, so that the lock is never free between the release of the old claim and the new one.
void Lock::replace(const HeldClaim& old, const HeldClaim& next, Revision when) {
  auto& full = inflate();
  change(full, when);
  full.held.remove(old.claim);
  full.held.add(next.claim);
  if (const auto* keys = std::get_if<Keys>(&old.claim)) {
    full.ranges.held.erase(keys->range, {.token = old.token, .mode = keys->mode});
  }
  if (const auto* keys = std::get_if<Keys>(&next.claim)) {
    full.ranges.held.insert(keys->range, {.token = next.token, .mode = keys->mode});
  }
  full.holds.erase(old.token);
  full.holds.insert(next.token);
}

void Lock::join(const Turn& turn, const Claim& claim) {
  const bool is_new = is_free();
  auto& full = inflate();
  if (is_new) {
    // The resource is free, but the request waits for another item: it keeps its turn here.
    full.counters = {.create_revision = turn.ticket, .mod_revision = turn.ticket};
    full.capacity = capacity_of(claim);
  }
  full.queue.insert(turn);
  full.queued.add(claim);
  if (const auto* keys = std::get_if<Keys>(&claim)) {
    full.ranges.queued.insert(keys->range, {.turn = turn, .mode = keys->mode});
  }
}

void Lock::leave(const Turn& turn, const Claim& claim) {
  auto& full = inflate();
  full.queue.erase(turn);
  full.queued.remove(claim);
  if (const auto* keys = std::get_if<Keys>(&claim)) {
    full.ranges.queued.erase(keys->range, {.turn = turn, .mode = keys->mode});
  }
}

void Lock::set_counters(const Counters& counters) {
  if (this->counters() != counters) {
    inflate().counters = counters;
  }
}

}  // namespace tenure::core
