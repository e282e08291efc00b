#pragma once

#include <cstdint>
#include <string>

#include "core/ids.hpp"
#include "simulation/network.hpp"
#include "simulation/protocol.hpp"
#include "simulation/world.hpp"

namespace tenure::simulation {

/// Client that watches all locks at one member. When its stream breaks or is silent, it resumes at
/// the next member from its last revision.
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
  std::uint64_t stream_ = 0;  ///< Number of the present stream; messages of others are ignored.
  std::uint64_t next_sequence_ = 0;
  std::size_t server_ = 0;
  bool has_begun_ = false;  ///< Whether a resume revision is known.
  bool is_open_ = false;
  VirtualTime heard_{};
  core::Revision last_{};  ///< Last received revision.
  std::size_t seen_ = 0;
};

}  // namespace tenure::simulation
