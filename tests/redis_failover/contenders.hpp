#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tenure/client/client.hpp>
#include <tenure/fence.hpp>

#include "history/check.hpp"
#include "history/event.hpp"
#include "history/history.hpp"

namespace tenure::test {

/// Clients that acquire the same lock in turn, write to a fenced storage, and record the history.
class Contenders {
 public:
  Contenders(const std::string& url, LockOptions options, int count)
      : options_(std::move(options)) {
    for (int number = 0; number < count; ++number) {
      clients_.push_back(
          tenure::connect(url, {.request_timeout = std::chrono::seconds(2)}).value());
    }
    for (int number = 0; number < count; ++number) {
      threads_.emplace_back([this, number](const std::stop_token& stop) {
        for (int turn = 0; !stop.stop_requested(); ++turn) {
          take_turn(clients_[static_cast<std::size_t>(number)],
                    std::to_string(number) + "/" + std::to_string(turn), stop);
        }
      });
    }
  }

  [[nodiscard]] int turns() const { return turns_; }
  [[nodiscard]] int failures() const { return failures_; }

  /// Stops the clients and checks their history for these properties (tests/README.md).
  [[nodiscard]] history::CheckResult check(const std::string& properties) {
    end();
    events_.push_back({.kind = history::Kind::history, .properties = properties});
    events_.push_back({.kind = history::Kind::end, .at = now()});
    history_ = history::assemble(events_);
    return history::check(history_);
  }
  /// REQUIRES: check() was called. Pairs of holds that overlap by the clients' clocks, the one with
  /// the older token first.
  [[nodiscard]] std::vector<std::pair<const history::Request*, const history::Request*>> overlaps()
      const {
    std::vector<std::pair<const history::Request*, const history::Request*>> found;
    for (const auto& [left_id, left] : history_.requests) {
      for (const auto& [right_id, right] : history_.requests) {
        if (left.is_granted() && right.is_granted() && left.token() < right.token() &&
            meet(left.belief, right.belief)) {
          found.emplace_back(&left, &right);
        }
      }
    }
    return found;
  }
  [[nodiscard]] std::string describe(const history::CheckResult& result) const {
    return result.describe(history_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Kind = history::Kind;

  static history::Time at(Clock::time_point when) {
    return std::chrono::duration_cast<std::chrono::microseconds>(when.time_since_epoch()).count();
  }
  static history::Time now() { return at(Clock::now()); }

  static bool meet(const history::Belief& left, const history::Belief& right) {
    for (const auto& one : left.parts()) {
      for (const auto& other : right.parts()) {
        if (one.begin < other.end && other.begin < one.end) {
          return true;
        }
      }
    }
    return false;
  }

  void note(history::Event event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  void write(FencingToken token) {
    const std::lock_guard lock(mutex_);  // orders the writes
    const bool is_accepted = fence_.admit("storage", token).has_value();
    events_.push_back({.kind = Kind::write,
                       .at = now(),
                       .token = token.get(),
                       .resource = "storage",
                       .is_accepted = is_accepted});
  }

  void take_turn(const Client& client, const std::string& id, const std::stop_token& stop) {
    note({.kind = Kind::invoke,
          .at = now(),
          .client = id.substr(0, id.find('/')),
          .owner = id,
          .request = id,
          .items = {{.name = "a"}}});
    auto guard = client.mutex("a", options_).try_lock_for(std::chrono::seconds(5));
    if (!guard) {
      note({.kind = Kind::failed,
            .at = now(),
            .request = id,
            .why = std::string(to_string(guard.error().code))});
      ++failures_;
      pause(std::chrono::milliseconds(20), stop);
      return;
    }
    note({.kind = Kind::granted,
          .at = now(),
          .request = id,
          .token = guard->token().get(),
          .until = at(guard->valid_until())});
    if (!hold(*guard, id, stop)) {
      note({.kind = Kind::lost, .at = now(), .owner = id});
      write(guard->token());  // a client that does not check before it writes
      return;
    }
    note({.kind = Kind::release, .at = now(), .request = id});
    if (guard->unlock()) {
      note({.kind = Kind::released, .at = now(), .request = id});
    }
    ++turns_;
  }

  /// Holds the lock for a while. False: it was lost.
  bool hold(const Guard& guard, const std::string& id, const std::stop_token& stop) {
    auto until = guard.valid_until();
    for (int step = 0; step < 4; ++step) {
      pause(std::chrono::milliseconds(10), stop);
      if (!guard.owns_lock()) {
        return false;
      }
      if (const auto later = guard.valid_until(); later != until) {
        until = later;
        note({.kind = Kind::renewed, .at = now(), .owner = id, .until = at(until)});
      }
      write(guard.token());
    }
    return true;
  }

  static void pause(std::chrono::milliseconds time, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    changed.wait_for(lock, stop, time, [] { return false; });
  }
  void end() {
    for (auto& thread : threads_) {
      thread.request_stop();
    }
    threads_.clear();
  }

  const LockOptions options_;
  std::mutex mutex_;
  history::Events events_;
  Fence fence_;
  history::History history_;
  std::atomic<int> turns_ = 0;
  std::atomic<int> failures_ = 0;
  std::vector<Client> clients_;
  std::vector<std::jthread> threads_;
};

}  // namespace tenure::test
