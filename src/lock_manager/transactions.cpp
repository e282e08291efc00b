#include "lock_manager/transactions.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "sys/clock.hpp"

namespace tenure::detail {

void Txn::drop_wait(const Waiter& waiter) {
  const auto found = std::ranges::find(waits, &waiter);
  if (found != waits.end()) {
    waits.erase(found);
  }
}

Waiter* Txn::find_request(Waiter* waiter) const {
  const bool is_ours = std::ranges::any_of(
      requests, [waiter](const auto& request) { return request.get() == waiter; });
  return is_ours ? waiter : nullptr;
}

void Txn::drop_request(const Waiter& waiter) {
  const auto found =
      std::ranges::find(requests, &waiter, [](const auto& request) { return request.get(); });
  if (found != requests.end()) {
    drop_wait(waiter);
    requests.erase(found);
  }
}

void Txn::begin(TxnId number) noexcept {
  id = number;
  age = number.get();
  work = 0;
  priority = 0;
  notified = false;
  since = sys::coarse_now();
}

Transactions::Transactions() : stripes_(stripe_count) {}

Txn* Transactions::Stripe::find(std::uint64_t id) {
  if (warm != nullptr && warm->id.get() == id) [[likely]] {
    return warm;
  }
  const auto found = known.find(id);
  return found == known.end() ? nullptr : found->second.get();
}

// The previous warm record is displaced first, so that at most one idle record exists per stripe.
Txn* Transactions::Stripe::look_up(std::uint64_t id) {
  Txn* const txn = find(id);
  if (txn == nullptr || txn == warm) {
    return txn;
  }
  displace_warm();
  fresh.reset();
  warm = txn;
  return txn;
}

Txn& Transactions::Stripe::make(std::uint64_t id) {
  if (warm != nullptr) {
    displace_warm();
  }
  if (fresh == nullptr) {
    fresh = std::make_unique<Txn>(TxnId(id), latch);
  } else {
    fresh->begin(TxnId(id));
  }
  warm = fresh.get();
  return *warm;
}

void Transactions::Stripe::displace_warm() {
  // Above this capacity the record of a large transaction is freed instead of reused.
  constexpr std::size_t reused_locks_max = 1024;
  if (warm != fresh.get()) {
    if (warm->is_idle()) {
      known.erase(warm->id.get());
    }
  } else if (!warm->is_idle()) {
    known.emplace(warm->id.get(), std::move(fresh));
  } else if (warm->points[0].capacity() + warm->points[1].capacity() > reused_locks_max) {
    fresh.reset();
  }
  warm = nullptr;
}

// The latch is not fair: without the yield, this thread would usually get it back at once.
void Transactions::yield_latch(sys::Latch& latch) TENURE_NO_THREAD_SAFETY_ANALYSIS {
  latch.unlock();
  std::this_thread::yield();
  latch.lock();
}

Txn* Transactions::find_or_make(Stripe& stripe, TxnId id) TENURE_NO_THREAD_SAFETY_ANALYSIS {
  Txn* const found = find_not_ending(stripe, id);
  return found != nullptr ? found : &stripe.make(id.get());
}

// Waits until a release_all() of the same transaction has finished. Otherwise a lock acquired
// between two of its portions would stay held after it.
Txn* Transactions::find_not_ending(Stripe& stripe, TxnId id) TENURE_NO_THREAD_SAFETY_ANALYSIS {
  for (;;) {
    Txn* const txn = stripe.look_up(id.get());
    if (txn == nullptr || !txn->ending) {
      return txn;
    }
    yield_latch(stripe.latch);
  }
}

Transactions::Entered Transactions::enter_for_search(TxnId id) TENURE_NO_THREAD_SAFETY_ANALYSIS {
  stripe_of(id).latch.lock();
  return {stripe_of(id).latch, find(id)};
}

Txn* Transactions::find(TxnId id) TENURE_NO_THREAD_SAFETY_ANALYSIS {
  return stripe_of(id).find(id.get());
}

// Latches all stripes in the same order, and no thread latches a second stripe otherwise, so this
// cannot deadlock. Rare: only a suspected cycle needs it.
Transactions::Freeze::Freeze(Transactions& all) TENURE_NO_THREAD_SAFETY_ANALYSIS : all_(all) {
  for (Stripe& stripe : all_.stripes_) {
    stripe.latch.lock();
  }
}

Transactions::Freeze::~Freeze() TENURE_NO_THREAD_SAFETY_ANALYSIS {
  for (Stripe& stripe : all_.stripes_) {
    stripe.latch.unlock();
  }
}

}  // namespace tenure::detail
