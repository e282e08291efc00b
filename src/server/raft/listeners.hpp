#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "server/store/store.hpp"

namespace tenure::server::raft {

/// Composite listener: passes every event of the store to all listeners, in the order in which they
/// were added. Owns none of them.
class Listeners final : public Listener {
 public:
  void add(Listener& listener) { all_.push_back(&listener); }

  void applied(const core::Applied& what, const core::State& state) override {
    each([&](Listener& one) { one.applied(what, state); });
  }
  void settled() override {
    each([&](Listener& one) { one.settled(); });
  }
  void synced(std::chrono::nanoseconds took, std::size_t entries) override {
    each([&](Listener& one) { one.synced(took, entries); });
  }
  void committed(std::chrono::nanoseconds took, std::size_t commands) override {
    each([&](Listener& one) { one.committed(took, commands); });
  }
  void snapshot_taken(std::chrono::nanoseconds took) override {
    each([&](Listener& one) { one.snapshot_taken(took); });
  }
  void snapshot_failed() override {
    each([&](Listener& one) { one.snapshot_failed(); });
  }
  void member_lost_entries() override {
    each([&](Listener& one) { one.member_lost_entries(); });
  }
  void role_changed(const LogPosition& log) override {
    each([&](Listener& one) { one.role_changed(log); });
  }
  void restored(const core::State& state) override {
    each([&](Listener& one) { one.restored(state); });
  }

 private:
  template <class Notify>
  void each(Notify notify) {
    for (auto* listener : all_) {
      notify(*listener);
    }
  }

  std::vector<Listener*> all_;
};

}  // namespace tenure::server::raft
