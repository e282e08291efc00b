#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "backends/backend.hpp"
#include "grpc/channel.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::backends::tenured {

/// Questions about who holds what. They change nothing, so one that is not answered before the
/// connection is lost is asked again on the next one. All on the loop's thread.
class HolderQueries {
 public:
  explicit HolderQueries(boost::asio::io_context& loop) : retry_timer_(loop) {}

  using Done = Backend::Done<std::vector<Holder>>;
  /// Not answered at the same time; more are refused.
  static constexpr std::size_t pending_max = 10'000;

  void add(std::string name, Done done);
  void connected(const std::shared_ptr<grpc::Channel>& channel);
  void disconnected();
  /// All that are left hear this.
  void end(const Error& why);

 private:
  using Id = std::uint64_t;
  struct Query {
    std::string name;
    Done done;
  };

  void send(Id id, const std::string& name);
  void send_all();
  void completed(Id id, const grpc::Status& status, const v1::ListResponse& answer);

  std::shared_ptr<grpc::Channel> channel_;  ///< Null: not connected.
  std::shared_ptr<const bool> life_ = std::make_shared<const bool>(true);
  boost::asio::steady_timer retry_timer_;
  bool is_retry_due_ = false;
  Id last_id_ = 0;
  std::map<Id, Query> pending_;
};

}  // namespace tenure::backends::tenured
