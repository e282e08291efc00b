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

/// Pending queries for the holders of a lock. They are reads, so a query without a reply is sent
/// again on the next connection.
///
/// Not thread safe: all calls run on the event loop's thread.
class HolderQueries {
 public:
  explicit HolderQueries(boost::asio::io_context& loop) : retry_timer_(loop) {}

  using Done = Backend::Done<std::vector<Holder>>;
  /// Maximum number of pending queries; further ones fail with `resource_exhausted`.
  static constexpr std::size_t pending_max = 10'000;

  /// Sends a query, now or after the next connect.
  void add(std::string name, Done done);
  /// Sends all pending queries on the new connection.
  void connected(const std::shared_ptr<grpc::Channel>& channel);
  /// Keeps the pending queries for the next connection.
  void disconnected();
  /// Fails all pending queries.
  void end(const Error& why);

 private:
  using Id = std::uint64_t;
  /// Pending query.
  struct Query {
    std::string name;
    Done done;
  };

  /// Sends one query. REQUIRES: connected.
  void send(Id id, const std::string& name);
  void send_all();
  /// Completes a query, or schedules a retry if the server does not lead.
  void completed(Id id, const grpc::Status& status, const v1::ListResponse& answer);
  /// Sends all queries again after a pause, unless that is scheduled already.
  void retry_later();

  /// Current channel; null: not connected.
  std::shared_ptr<grpc::Channel> channel_;
  /// Lifetime token: replies hold it weakly and do nothing after the destruction.
  std::shared_ptr<const bool> life_ = std::make_shared<const bool>(true);
  boost::asio::steady_timer retry_timer_;
  /// Whether the retry timer runs.
  bool is_retry_due_ = false;
  Id last_id_ = 0;
  /// Queries without a reply, oldest first.
  std::map<Id, Query> pending_;
};

}  // namespace tenure::backends::tenured
