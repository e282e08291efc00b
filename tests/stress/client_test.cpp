#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "backends/memory/backend.hpp"
#include "client/factory.hpp"
#include "client/session.hpp"
#include "support/model/stress.hpp"

namespace tenure::stress {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t threads = 6;
constexpr std::size_t names = 3;

/// Observations of one lock: the present holders, and the largest token so far.
struct Place {
  std::atomic<int> writers = 0;
  std::atomic<int> readers = 0;
  std::atomic<std::uint64_t> token = 0;

  void enter_alone(const Guard& guard) {
    EXPECT_EQ(writers.fetch_add(1), 0);
    EXPECT_EQ(readers.load(), 0);
    EXPECT_GT(guard.token().get(), token.exchange(guard.token().get()));
  }
  void leave_alone() { --writers; }
  void enter_shared() {
    ++readers;
    EXPECT_EQ(writers.load(), 0);
  }
  void leave_shared() { --readers; }
};

/// Clients of one store, so that every way through it is taken: thin and not, waiting and not.
class Clients {
 public:
  Client client(std::size_t thread) const { return clients_[thread % clients_.size()]; }
  void force(std::size_t name) const { store_->force_release(std::to_string(name)); }

 private:
  static Client open(const std::shared_ptr<backends::MemoryStore>& store) {
    return detail::Factory::make<Client>(std::make_shared<detail::Session>(
        std::make_unique<backends::MemoryBackend>(store), ConnectOptions{}));
  }

  std::shared_ptr<backends::MemoryStore> store_ = std::make_shared<backends::MemoryStore>();
  std::array<Client, 3> clients_{open(store_), open(store_), open(store_)};
};

Result<Guard> draw_lock(const RwLock& lock, Choices& choices, std::stop_source& hurry) {
  switch (choices.below(4)) {
    case 0: return lock.try_lock();
    case 1: return lock.try_lock_for(std::chrono::microseconds(choices.below(300)));
    case 2: {
      std::jthread canceller;
      if (choices.one_in(4)) {
        canceller = std::jthread([&] { hurry.request_stop(); });
      }
      return lock.lock(hurry.get_token());
    }
    default: return lock.lock();
  }
}

bool is_busy(const Error& error) {
  return error == Errc::would_block || error == Errc::timed_out || error == Errc::cancelled;
}

void write_once(const RwLock& lock, Place& place, Choices& choices) {
  std::stop_source hurry;
  auto guard = draw_lock(lock, choices, hurry);
  if (!guard) {
    EXPECT_TRUE(is_busy(guard.error())) << to_string(guard.error());
    return;
  }
  place.enter_alone(*guard);
  place.leave_alone();
  if (choices.one_in(2)) {
    EXPECT_TRUE(guard->unlock());
  }
}

void read_once(const RwLock& lock, Place& place, Choices& choices) {
  auto share = choices.one_in(2) ? lock.lock_shared() : lock.try_lock_shared();
  if (!share) {
    EXPECT_TRUE(is_busy(share.error())) << to_string(share.error());
    return;
  }
  place.enter_shared();
  place.leave_shared();
  if (!choices.one_in(4)) {
    return;
  }
  auto guard = lock.upgrade(*share);
  if (guard) {
    place.enter_alone(*guard);
    place.leave_alone();
  } else {
    EXPECT_EQ(guard.error(), Errc::deadlock);
  }
}

// Exclusion and the order of tokens, whichever way the holds take through the store.
TEST(ClientStress, a_writer_excludes_all_others_and_tokens_grow) {
  const Clients clients;
  std::array<Place, names> places;
  const auto rounds = scaled(300);
  std::vector<std::jthread> workers;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    workers.emplace_back([&, thread] {
      Choices choices(thread);
      const auto client = clients.client(thread);
      for (std::size_t round = 0; round < rounds; ++round) {
        const auto name = choices.below(names);
        const auto lock = client.rw_lock(std::to_string(name));
        if (choices.one_in(3)) {
          read_once(lock, places[name], choices);
        } else {
          write_once(lock, places[name], choices);
        }
        if (choices.one_in(50)) {
          const auto watch = client.watch(std::to_string(name));
          EXPECT_TRUE(watch);
        }
      }
    });
  }
  workers.clear();

  for (std::size_t name = 0; name < names; ++name) {
    EXPECT_TRUE(clients.client(0).mutex(std::to_string(name)).try_lock_for(10s));
  }
}

// Losses of every kind: each client that loses a lock is notified, and nothing stays behind.
TEST(ClientStress, a_client_that_loses_a_lock_is_notified) {
  const Clients clients;
  const auto rounds = scaled(200);
  std::atomic<std::size_t> notified = 0;
  std::atomic<std::size_t> lost = 0;
  {
    std::vector<std::jthread> workers;
    for (std::size_t thread = 0; thread < threads; ++thread) {
      workers.emplace_back([&, thread] {
        Choices choices(thread);
        const auto client = clients.client(thread);
        for (std::size_t round = 0; round < rounds; ++round) {
          const auto name = choices.below(names);
          auto guard = client.mutex(std::to_string(name)).lock();
          ASSERT_TRUE(guard) << to_string(guard.error());
          std::latch heard(1);
          const std::stop_callback on_lost(guard->lost(), [&] {
            ++notified;
            heard.count_down();
          });
          if (choices.one_in(3)) {
            clients.force(name);
            heard.wait();
            EXPECT_EQ(guard->state(), GuardState::lost);
            EXPECT_EQ(guard->unlock().error(), Errc::lease_lost);
            ++lost;
          }
        }
      });
    }
  }

  EXPECT_EQ(notified, lost);
}

}  // namespace
}  // namespace tenure::stress
