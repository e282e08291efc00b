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
    for (auto* listener : all_) {
      listener->applied(what, state);
    }
  }
  void settled() override {
    for (auto* listener : all_) {
      listener->settled();
    }
  }
  void synced(std::chrono::nanoseconds took, std::size_t entries) override {
    for (auto* listener : all_) {
      listener->synced(took, entries);
    }
  }
  void committed(std::chrono::nanoseconds took, std::size_t commands) override {
    for (auto* listener : all_) {
      listener->committed(took, commands);
    }
  }
  void snapshot_taken(std::chrono::nanoseconds took) override {
    for (auto* listener : all_) {
      listener->snapshot_taken(took);
    }
  }
  void snapshot_failed() override {
    for (auto* listener : all_) {
      listener->snapshot_failed();
    }
  }
  void member_lost_entries() override {
    for (auto* listener : all_) {
      listener->member_lost_entries();
    }
  }
  void role_changed(const LogPosition& log) override {
    for (auto* listener : all_) {
      listener->role_changed(log);
    }
  }
  void restored(const core::State& state) override {
    for (auto* listener : all_) {
      listener->restored(state);
    }
  }

 private:
  std::vector<Listener*> all_;
};

}  // namespace tenure::server::raft
