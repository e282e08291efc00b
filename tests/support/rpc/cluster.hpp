#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/rpc/rpc_server.hpp"
#include "support/store/memory_store.hpp"

namespace tenure::test {

/// Several members in one process with a shared history, each with its own gRPC server. All members
/// apply what the leader decides. The test chooses the leader; initially the first member.
class RpcCluster {
 public:
  explicit RpcCluster(Time time = Time::real, std::size_t members = 3,
                      const server::RpcOptions& options = {}) {
    const auto began = std::chrono::steady_clock::now();
    for (std::size_t index = 0; index < members; ++index) {
      members_.push_back(std::make_unique<Member>(
          MemoryStore::Options{.time = time,
                               .identity = {.cluster = 0xC0FFEE, .member = id(index)},
                               .leads = index == 0,
                               .began = began}));
      members_.back()->options = options;
    }
    for (auto& member : members_) {
      std::vector<MemoryStore*> others;
      for (auto& other : members_) {
        if (other != member) {
          others.push_back(&other->store);
        }
      }
      member->store.replicate_to(others);
    }
    for (std::size_t index = 0; index < members; ++index) {
      members_[index]->options.address = "127.0.0.1:0";
      members_[index]->rpc =
          std::make_unique<server::RpcServer>(members_[index]->store, members_[index]->options);
      members_[index]->store.start();
      members_[index]->options.address =
          "127.0.0.1:" + std::to_string(members_[index]->rpc->start().value());
    }
    tell_members();
    elect(0);
  }
  ~RpcCluster() {
    for (auto& member : members_) {
      member->rpc->stop();
    }
    for (auto& member : members_) {
      member->store.stop();
    }
  }
  RpcCluster(const RpcCluster&) = delete;
  RpcCluster& operator=(const RpcCluster&) = delete;

  [[nodiscard]] static std::uint64_t id(std::size_t index) { return index + 1; }
  [[nodiscard]] MemoryStore& store(std::size_t index) { return members_[index]->store; }
  [[nodiscard]] server::RpcServer& rpc(std::size_t index) { return *members_[index]->rpc; }
  [[nodiscard]] const std::string& address(std::size_t index) const {
    return members_[index]->options.address;
  }
  /// URL of these members; default: all.
  [[nodiscard]] std::string url(std::vector<std::size_t> which = {},
                                const std::string& options = {}) const {
    std::string text = "tenure://";
    for (std::size_t index = 0; index < members_.size() && which.empty(); ++index) {
      text += (index == 0 ? "" : ",") + address(index);
    }
    for (const auto index : which) {
      text += (text.ends_with('/') ? "" : ",") + address(index);
    }
    return text + options;
  }
  [[nodiscard]] MemoryStore& leader() { return store(leader_); }

  /// Removes the leader; no member knows a leader.
  void depose() {
    store(leader_).lead(false);
    for (auto& member : members_) {
      member->store.follow(0, "");
    }
  }
  /// Makes this member the leader, known to all.
  void elect(std::size_t index) {
    leader_ = index;
    store(index).lead(true);
    for (std::size_t other = 0; other < members_.size(); ++other) {
      if (other != index) {
        store(other).follow(id(index), address(index));
      }
    }
  }
  /// Moves leadership to this member; undecided commands have an unknown outcome.
  void move(std::size_t to) {
    store(leader_).follow(id(to), address(to));
    elect(to);
  }
  /// Removes the leader while the other members still name it.
  void stop(std::size_t index) { rpc(index).stop(); }

 private:
  struct Member {
    explicit Member(const MemoryStore::Options& made) : store(made) {}

    MemoryStore store;
    server::RpcOptions options;
    std::unique_ptr<server::RpcServer> rpc;
  };

  void tell_members() {
    std::vector<server::MemberStatus> all;
    for (std::size_t index = 0; index < members_.size(); ++index) {
      all.push_back({.id = id(index),
                     .peer_address = "127.0.0.1:" + std::to_string(9000 + index),
                     .client_address = address(index)});
    }
    for (auto& member : members_) {
      member->store.set_members(all);
    }
  }

  std::vector<std::unique_ptr<Member>> members_;
  std::size_t leader_ = 0;
};

}  // namespace tenure::test
