#pragma once

#include <cstdint>
#include <string>

#include "core/ids.hpp"
#include "simulation/network.hpp"
#include "simulation/protocol.hpp"
#include "simulation/world.hpp"

namespace tenure::simulation {

/// Follows everything that happens to all locks, at one member or another: when its stream breaks
/// or is silent, it goes on at the next from where it was.
class Watcher final : public Requester {
 public:
  Watcher(World& world, Network& network, Directory& directory, Endpoint endpoint);

  void begin() { connect(); }
  void handle_reply(const Reply& answer) override;
  [[nodiscard]] std::size_t seen() const noexcept { return seen_; }

 private:
  void connect();
  void poll_later();
  void began(const WatchStarted& began);
  void take(const WatchEvents& events);

  World& world_;
  Network& network_;
  Directory& directory_;
  Endpoint endpoint_;
  std::string name_;
  std::uint64_t stream_ = 0;  ///< Of the present one; what comes from another is void.
  std::uint64_t next_sequence_ = 0;
  std::size_t server_ = 0;
  bool has_begun_ = false;  ///< Knows from where to go on.
  bool is_open_ = false;
  VirtualTime heard_{};
  core::Revision last_{};  ///< Everything up to here was told.
  std::size_t seen_ = 0;
};

}  // namespace tenure::simulation
