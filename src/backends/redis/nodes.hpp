#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "backends/redis/carrier.hpp"
#include "backends/redis/node.hpp"
#include "backends/redis/poll.hpp"
#include "backends/redis/slots.hpp"

namespace tenure::backends::redis {

/// A Redis Cluster: each errand goes to the node that has the slot of its key, over connections to
/// those nodes only that are used. Follows failovers and resharding: by what nodes say of each
/// other, asked at the beginning, when one is lost, and when one sends us elsewhere.
class Nodes final : public Carrier {
 public:
  /// `seeds`: any members, at least one; all else in `address` is for all of them. `channel`: each
  /// node has one of its own, which begins so.
  Nodes(boost::asio::io_context& loop, std::vector<Endpoint> seeds, Address address,
        std::string channel, Calls calls);
  ~Nodes() override;

  void start() override;
  [[nodiscard]] bool is_ready() const override;
  [[nodiscard]] bool reaches(std::string_view key) const override;
  [[nodiscard]] bool is_idle() const override;
  void run(Errand&& errand) override;
  void run_replicated(Errand errand, std::uint32_t replicas) override;
  void flush() override;
  void stop(const Error& why) override;

  /// How often an errand may be sent elsewhere at once; then it waits for better times.
  static constexpr std::uint16_t detours_max = 5;
  /// How many members are asked about the others.
  static constexpr std::size_t asked_max = 6;

 private:
  /// What nobody takes at the moment.
  struct Parked {
    Errand errand{};
    std::uint32_t replicas = 0;
  };

  // Where things are.
  void ask_soon(std::chrono::milliseconds pause);
  void ask();
  [[nodiscard]] std::vector<Address> whom_to_ask() const;
  void answered(const std::vector<Result<void>>& answers);
  void take(SlotTable table);
  void retire_all_but_owners();
  /// The node of this slot, made if need be; null: nobody has it.
  [[nodiscard]] Node* node_of(Slot slot);
  [[nodiscard]] Node* find_node(Slot slot) const;
  Node& make_node(const SlotTable::Owner& owner);

  // What nodes say.
  void ready(const Node& node);
  void lost(const Error& why);
  void astray(Errand errand, std::uint32_t replicas, std::string_view words, const Node& node);
  /// False if we do not know that node yet.
  bool moved(const Redirection& redirection);
  void ask_there(Errand errand, const Redirection& redirection);
  void park(Errand errand, std::uint32_t replicas, std::string_view words);
  void unpark();
  void run_again(Parked parked);
  [[nodiscard]] Concerns concerning(std::function<bool(Slot)> slots) const;

  boost::asio::io_context& loop_;
  const std::vector<Endpoint> seeds_;
  const Address address_;
  const std::string channel_;
  const Calls calls_;

  std::optional<SlotTable> table_;
  std::vector<std::shared_ptr<Node>> nodes_;  ///< Those that are used.
  std::vector<Parked> parked_;
  boost::asio::steady_timer parking_;
  bool is_parking_ = false;

  std::shared_ptr<Poll> poll_;
  std::vector<std::optional<SlotTable>> answers_;  ///< Of the poll that is under way.
  boost::asio::steady_timer asking_;
  std::optional<std::chrono::steady_clock::time_point> ask_at_;
  std::chrono::steady_clock::time_point asked_at_{};
  bool was_lost_ = false;
  bool is_stopped_ = false;
};

}  // namespace tenure::backends::redis
