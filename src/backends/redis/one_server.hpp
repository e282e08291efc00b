#pragma once

#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "backends/redis/carrier.hpp"
#include "backends/redis/pipeline.hpp"
#include "backends/redis/sentinels.hpp"
#include "backends/redis/waker.hpp"
#include "backends/redis/witness.hpp"

namespace tenure::backends::redis {

/// One server, or the one that Sentinels call the primary: a connection that asks and one that
/// listens, and a third where replicas are waited for.
class OneServer final : public Carrier {
 public:
  /// `sentinels`: null if the server is where its address says. `channel`: where we listen.
  OneServer(boost::asio::io_context& loop, Address address, std::shared_ptr<Sentinels> sentinels,
            const std::string& channel, Calls calls);

  void start() override;
  [[nodiscard]] bool is_ready() const override { return pipeline_->is_ready() && ear_.is_ready(); }
  [[nodiscard]] bool reaches(std::string_view /*key*/) const override {
    return pipeline_->is_ready();
  }
  [[nodiscard]] bool is_idle() const override;
  void run(Errand&& errand) override { pipeline_->run(std::move(errand)); }
  void run_replicated(Errand errand, std::uint32_t replicas) override;
  void flush() override { pipeline_->flush(); }
  void stop(const Error& why) override;

 private:
  void ready();
  void lost(const Error& why);
  void moved(const Endpoint& endpoint);

  boost::asio::io_context& loop_;
  const Address address_;
  const Calls calls_;
  std::shared_ptr<Sentinels> sentinels_;
  std::shared_ptr<Pipeline> pipeline_;
  Waker ear_;
  std::unique_ptr<Witness> witness_;  ///< From its first use.
  bool was_lost_ = false;
};

}  // namespace tenure::backends::redis
