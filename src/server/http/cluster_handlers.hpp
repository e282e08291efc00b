#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include <boost/asio/any_io_executor.hpp>

#include <tenure/error.hpp>

#include "server/http/message.hpp"
#include "server/store/store.hpp"

namespace tenure::server::http {

/// Handlers of cluster administration: members, leadership, reload of users and certificates. The
/// same operations as those of the gRPC service Admin.
///
/// The caller checks the permission. Each accepted request is logged before it is executed, because
/// a change goes on even if its client disconnects. HTTP thread only, including the replies.
class ClusterHandlers {
 public:
  /// Reloads users and certificates; returns the number of users.
  using Reload = std::function<Result<std::size_t>()>;

  /// Null `reload`: neither users nor certificates are configured.
  ClusterHandlers(Store& store, boost::asio::any_io_executor executor, Reload reload)
      : store_(store), executor_(std::move(executor)), reload_(std::move(reload)) {}

  void add_member(const Request& request, Reply reply);
  void remove_member(const Request& request, Reply reply);
  void transfer_leadership(const Request& request, Reply reply);
  /// Reads the files on the HTTP thread, which other requests wait for: a few milliseconds.
  void reload(const Request& request, Reply reply);

 private:
  /// Completion on the store's thread that replies on the HTTP thread.
  [[nodiscard]] std::move_only_function<void(Result<void>)> respond_with(Reply reply) const;

  Store& store_;
  boost::asio::any_io_executor executor_;
  Reload reload_;
};

}  // namespace tenure::server::http
