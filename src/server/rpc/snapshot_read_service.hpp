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
///
/// The image shares its data with the state (copy-on-write), so taking it costs the store's thread
/// little, whatever the size of the state.
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

  /// Takes the turn and reads the state, or rejects a second reader.
  void begin(const std::shared_ptr<Reading>& reading, bool is_stale);
  /// Encodes on a thread of its own. REQUIRES: no encoder runs.
  void encode(core::Image image, const std::shared_ptr<Reading>& reading);
  /// A reader is active, or the encoder still runs for one that has disconnected.
  [[nodiscard]] bool is_taken() const;

  RpcContext& context_;
  std::shared_ptr<Turn> turn_ = std::make_shared<Turn>();
  /// Last encoder. Its destructor joins the thread.
  std::jthread encoder_;
};

}  // namespace tenure::server
