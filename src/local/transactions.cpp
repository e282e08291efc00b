#include "local/transactions.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "sys/fibonacci.hpp"

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

Transactions::Transactions() : stripes_(stripe_count) {}

Transactions::Stripe& Transactions::stripe_of(TxnId id) noexcept {
  static_assert(stripe_count == 256);
  return stripes_[sys::fibonacci_hash(id.get()) >> 56U];
}

Txn* Transactions::Stripe::look_up(std::uint64_t id) {
  if (warm != nullptr && warm->id.get() == id) [[likely]] {
    return warm;
  }
  const auto found = all.find(id);
  if (found == all.end()) {
    return nullptr;
  }
  warm_up(*found->second);
  return warm;
}

Txn& Transactions::Stripe::make(std::uint64_t id) {
  std::unique_ptr<Txn> txn;
  if (spare.empty()) {
    txn = std::make_unique<Txn>(TxnId(id));
  } else {
    txn = std::move(spare.back());
    spare.pop_back();
    txn->id = TxnId(id);
    txn->age = id;
    txn->work = 0;
    txn->priority = 0;
    txn->told = false;
  }
  txn->since = std::chrono::steady_clock::now();
  Txn& made = *txn;
  all.emplace(id, std::move(txn));
  warm_up(made);
  return made;
}

void Transactions::Stripe::warm_up(Txn& txn) {
  // Enough for transactions that come and go one after the other; what a large one had allocated
  // is given back.
  constexpr std::size_t spare_max = 2;
  constexpr std::size_t spare_locks_max = 1024;
  Txn* const before = std::exchange(warm, &txn);
  if (before == nullptr || before == &txn || !before->is_idle()) {
    return;
  }
  const auto found = all.find(before->id.get());
  std::unique_ptr<Txn> idle = std::move(found->second);
  all.erase(found);
  const bool is_small = idle->points[0].capacity() + idle->points[1].capacity() +
                            idle->ranges[0].capacity() + idle->ranges[1].capacity() <=
                        spare_locks_max;
  if (is_small && spare.size() < spare_max) {
    spare.push_back(std::move(idle));
  }
}

void Transactions::wait_for_end(sys::Latch& latch) TENURE_NO_THREAD_SAFETY_ANALYSIS {
  latch.unlock();
  std::this_thread::yield();
  latch.lock();
}

Transactions::Entered Transactions::enter(TxnId id) TENURE_NO_THREAD_SAFETY_ANALYSIS {
  Stripe& stripe = stripe_of(id);
  stripe.latch.lock();
  for (;;) {
    Txn* txn = stripe.look_up(id.get());
    if (txn == nullptr) {
      txn = &stripe.make(id.get());
    }
    if (!txn->ending) [[likely]] {
      return {stripe.latch, txn};
    }
    wait_for_end(stripe.latch);
  }
}

Transactions::Entered Transactions::enter_existing(TxnId id) TENURE_NO_THREAD_SAFETY_ANALYSIS {
  Stripe& stripe = stripe_of(id);
  stripe.latch.lock();
  for (;;) {
    Txn* const txn = stripe.look_up(id.get());
    if (txn == nullptr || !txn->ending) [[likely]] {
      return {stripe.latch, txn};
    }
    wait_for_end(stripe.latch);
  }
}

Transactions::Entered Transactions::enter(Txn& pinned) TENURE_NO_THREAD_SAFETY_ANALYSIS {
  Stripe& stripe = stripe_of(pinned.id);
  stripe.latch.lock();
  while (pinned.ending) [[unlikely]] {
    wait_for_end(stripe.latch);
  }
  return {stripe.latch, &pinned};
}

Transactions::Entered Transactions::enter_ending(TxnId id) TENURE_NO_THREAD_SAFETY_ANALYSIS {
  Stripe& stripe = stripe_of(id);
  stripe.latch.lock();
  return {stripe.latch, stripe.look_up(id.get())};
}

Txn* Transactions::find(TxnId id) TENURE_NO_THREAD_SAFETY_ANALYSIS {
  Stripe& stripe = stripe_of(id);
  const auto found = stripe.all.find(id.get());
  return found == stripe.all.end() ? nullptr : found->second.get();
}

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
