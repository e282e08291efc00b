#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "backends/redis/errand.hpp"
#include "backends/redis/pipeline.hpp"

namespace tenure::backends::redis {

/// Sees to it that what a server writes is on replicas before it counts (WAIT). On a connection of
/// its own, since WAIT stops the one it is said on; all that is asked meanwhile shares the next
/// one. All on the loop's thread.
class Witness {
 public:
  struct Calls {
    std::function<void()> idle;
    /// As of a Pipeline; also with how many replicas. Not set: an error like any other.
    std::function<void(Errand, std::uint32_t replicas, std::string_view)> astray{};
  };
  /// An errand, and who asked for how many replicas.
  struct Case {
    Errand errand{};
    std::uint32_t replicas = 0;
  };

  Witness(boost::asio::io_context& loop, const Address& address, Calls calls);

  void run(Errand errand, std::uint32_t replicas);
  [[nodiscard]] bool is_idle() const noexcept { return gathering_.empty() && !batch_; }
  void move_to(const Endpoint& endpoint) { pipeline_->move_to(endpoint); }
  void stop(const Error& why);
  /// Does nothing any more; all that is open.
  [[nodiscard]] std::vector<Case> retire();

 private:
  struct Batch;

  void begin();
  void said(Batch& batch, std::size_t which, const Result<Errand::Answer>& answer);
  void waited(const std::shared_ptr<Batch>& batch, const Result<Errand::Answer>& answer);

  Calls calls_;
  const std::chrono::milliseconds bound_;
  std::shared_ptr<Pipeline> pipeline_;
  std::deque<Case> gathering_;
  std::shared_ptr<Batch> batch_;       ///< On its way.
  std::optional<std::string> astray_;  ///< What the server says of the errand that fails now.
  bool is_started_ = false;
  bool is_stopped_ = false;
};

}  // namespace tenure::backends::redis
