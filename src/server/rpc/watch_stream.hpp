#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "server/rpc/stream.hpp"
#include "tenure/v1/watch.pb.h"
#include "wire/answers.hpp"

namespace tenure::server {

/// Watch: several watches on one stream. Takes events from the hub only after the previous message
/// was written, so a slow reader falls behind in the hub, which cancels its watches.
///
/// A watch gets its replay, then live events, without a gap. The stream needs the leader, because
/// only the leader is guaranteed to apply every event: a follower may install a snapshot.
class WatchStream final : public Stream<v1::WatchRequest, v1::WatchResponse> {
 public:
  using Stream::Stream;

 private:
  using WatchId = std::uint64_t;
  struct Entry {
    std::shared_ptr<Watch> watch;
    wire::PreviousRecord previous = wire::PreviousRecord::omit;
    bool is_fetching = false;  ///< The next part of its replay has been requested.
  };

  void on_request(v1::WatchRequest& request) override;
  void half_closed() override;
  void closed() override;
  void on_leadership_lost() override;
  void drained() override { pump(); }

  /// Executes a request with the view at which it takes effect.
  void handle(const v1::WatchRequest& request, const View& view);
  /// Adds a watch at the revision of the view, or rejects it. Other watches are not affected.
  void create(const v1::WatchCreate& wanted, const View& view);
  /// Cancels the new watch with a resume revision when leadership cannot be confirmed. The other
  /// watches of the stream continue.
  void defer(const v1::WatchCreate& wanted, const Error& why);
  void cancel(WatchId id, const View& view);
  /// Reports a watch that was not created. `compacted`: newest compacted revision, if that is the
  /// reason; the client resumes after it.
  void reject(WatchId id, std::string detail, core::Revision compacted,
              v1::Code code = v1::CODE_UNSPECIFIED);
  /// Whether the principal may read at least one name of the watch. REQUIRES: a principal.
  [[nodiscard]] bool may_watch(const WatchSpec& spec);
  /// Pumps as client work: writing the events of many watches takes longer than Raft may wait.
  void pump_soon();
  /// Sends pending events, one message at a time.
  void pump();
  /// Sends the next events of a watch, or its end. False: nothing was sent.
  [[nodiscard]] bool send_next(WatchId id, Entry& entry);
  /// Requests the next part of a replay, which is copied in a time slice of its own.
  void fetch(WatchId id, Entry& entry);

  [[nodiscard]] std::shared_ptr<WatchStream> self() {
    return std::static_pointer_cast<WatchStream>(shared_from_this());
  }

  /// Ordered, for the round-robin of pump().
  std::map<WatchId, Entry> watches_;
  WatchId last_id_ = 0;  ///< Last id chosen by the server.
  WatchId next_id_ =
      0;  ///< Watch that sends next; round-robin, so that a busy watch does not starve the others.
  /// Newest revision that the stream has seen, for headers.
  core::Revision revision_{};
  std::uint64_t term_ = 0;
  bool is_pump_due_ = false;
  bool is_closed_ = false;
};

}  // namespace tenure::server
