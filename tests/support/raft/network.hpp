#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "server/raft/transport.hpp"

namespace tenure::test {

/// In-process network: posts each message to the loop of its receiver. Thread safe. Outlives the
/// nodes.
class RaftNetwork {
 public:
  using MemberId = server::raft::MemberId;

  [[nodiscard]] std::unique_ptr<server::raft::Transport> transport(MemberId id) {
    return std::make_unique<Wire>(*this, id);
  }
  /// Isolates a member until heal().
  void cut_off(MemberId id) {
    const std::lock_guard guard(mutex_);
    cut_off_.insert(id);
  }
  void heal() {
    const std::lock_guard guard(mutex_);
    cut_off_.clear();
  }
  /// Whether every peer is busy with the transfer of another snapshot.
  void set_busy_with_snapshots(bool is_busy) {
    const std::lock_guard guard(mutex_);
    is_busy_with_snapshots_ = is_busy;
    snapshots_put_off_ = 0;
  }
  /// Number of refused snapshots since then.
  [[nodiscard]] std::size_t snapshots_put_off() {
    const std::lock_guard guard(mutex_);
    return snapshots_put_off_;
  }

 private:
  class Wire final : public server::raft::Transport {
   public:
    Wire(RaftNetwork& network, MemberId id) : network_(network), id_(id) {}

    void start(boost::asio::io_context& loop, Receive receive) override {
      const std::lock_guard guard(network_.mutex_);
      network_.ends_[id_] = {.loop = &loop,
                             .receive = std::make_shared<Receive>(std::move(receive))};
    }
    void set_members(const std::vector<server::raft::Member>& members) override {
      const std::lock_guard guard(network_.mutex_);
      network_.known_[id_].clear();
      for (const auto& member : members) {
        network_.known_[id_].insert(member.id);
      }
    }
    void send(MemberId peer, server::raft::Message message) override {
      network_.send(id_, peer, std::move(message));
    }
    [[nodiscard]] bool takes_snapshot(MemberId /*peer*/, server::raft::Term /*term*/) override {
      const std::lock_guard guard(network_.mutex_);
      network_.snapshots_put_off_ += network_.is_busy_with_snapshots_ ? 1 : 0;
      return !network_.is_busy_with_snapshots_;
    }
    void stop() override {
      const std::lock_guard guard(network_.mutex_);
      network_.ends_.erase(id_);
    }

   private:
    RaftNetwork& network_;
    const MemberId id_;
  };

  struct End {
    boost::asio::io_context* loop = nullptr;
    std::shared_ptr<server::raft::Transport::Receive> receive;
  };

  void send(MemberId from, MemberId peer, server::raft::Message message) {
    const std::lock_guard guard(mutex_);
    const auto end = ends_.find(peer);
    if (end == ends_.end() || cut_off_.contains(from) || cut_off_.contains(peer)) {
      return;
    }
    // A message in flight to a stopped node is dropped.
    boost::asio::post(*end->second.loop, [this, from, peer, message = std::move(message),
                                          receive = end->second.receive] {
      {
        const std::lock_guard again(mutex_);
        const auto now = ends_.find(peer);
        if (now == ends_.end() || now->second.receive != receive) {
          return;
        }
      }
      (*receive)(from, message);
    });
  }

  std::mutex mutex_;  ///< Guards: the rest.
  std::map<MemberId, End> ends_;
  std::map<MemberId, std::set<MemberId>> known_;
  std::set<MemberId> cut_off_;
  bool is_busy_with_snapshots_ = false;
  std::size_t snapshots_put_off_ = 0;
};

}  // namespace tenure::test
