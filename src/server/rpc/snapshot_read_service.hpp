#pragma once

#include <memory>
#include <thread>

#include "core/snapshot.hpp"
#include "server/rpc/routes.hpp"
#include "server/rpc/rpc_context.hpp"

namespace tenure::server {

/// Admin's SnapshotRead: the whole state, as bytes, to one reader at a time. The state is an image
/// taken in passing; a thread of its own makes bytes of it, and the reader gets the next piece when
/// it has taken the last, so that a slow one costs nothing but the memory of the bytes, and that
/// for a limited time. Of the store's thread.
class SnapshotReadService {
 public:
  explicit SnapshotReadService(RpcContext& context) : context_(context) {}

  /// REQUIRES: this outlives the routes.
  void add_to(Routes& routes);

 private:
  class Reading;
  /// What the other thread leaves behind may outlive this.
  struct Turn {
    bool is_encoding = false;
    std::weak_ptr<Reading> reader{};
  };

  void begin(const std::shared_ptr<Reading>& reading, bool is_stale);
  void encode(core::Image image, const std::shared_ptr<Reading>& reading);
  [[nodiscard]] bool is_taken() const;

  RpcContext& context_;
  std::shared_ptr<Turn> turn_ = std::make_shared<Turn>();
  std::jthread encoder_;
};

}  // namespace tenure::server
