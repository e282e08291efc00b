#pragma once

#include <memory>
#include <thread>

#include "core/snapshot.hpp"
#include "server/rpc/routes.hpp"
#include "server/rpc/rpc_context.hpp"

namespace tenure::server {

/// Implements Admin.SnapshotRead: streams the state as bytes to one reader at a time. It copies an
/// image on the store's thread and encodes it on a separate thread. The reader gets the next piece
/// after it has taken the last one, so a slow reader costs only the encoded bytes, for a limited
/// time. Store thread only, except the encoder.
class SnapshotReadService {
 public:
  explicit SnapshotReadService(RpcContext& context) : context_(context) {}

  /// REQUIRES: this outlives the routes.
  void add_to(Routes& routes);

 private:
  class Reading;
  /// State shared with the encoder thread, which may outlive this object.
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
