#include "server/rpc/snapshot_read_service.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/bytes.hpp"
#include "server/rpc/unary.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::server {
namespace {

/// Far below the 4 MiB that gRPC clients accept, large enough to keep a connection busy.
constexpr std::size_t piece_bytes = std::size_t{256} << 10;
/// Timeout for one piece. A slower reader has disconnected or blocks other readers.
constexpr std::chrono::seconds stall_max{30};

}  // namespace

/// Call of one reader.
class SnapshotReadService::Reading final : public grpc::Call {
 public:
  Reading(const grpc::CallInfo& info, SnapshotReadService& reads)
      : Call(info), reads_(reads), timeout_timer_(reads.context_.store.loop()) {}

  [[nodiscard]] bool is_over() const noexcept { return is_over_ || is_finished(); }

  void reject(const Error& error) {
    reads_.context_.leadership.reject(error, [self = shared_from_this()](grpc::Status status) {
      self->finish(std::move(status));
    });
  }

  /// Header of the first piece, sent before the bytes are encoded.
  v1::SnapshotPiece head;

  void send_from(std::shared_ptr<const std::string> bytes) {
    if (is_over()) {
      return;
    }
    bytes_ = std::move(bytes);
    head.set_bytes_total(bytes_->size());
    send(head);
    await_reader();
  }

 private:
  void received(std::string_view message) override {
    if (!request_.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      finish({grpc::StatusCode::invalid_argument, "invalid SnapshotReadRequest"});
    }
  }
  void half_closed() override {
    if (!is_over()) {
      reads_.begin(std::static_pointer_cast<Reading>(shared_from_this()), request_.stale());
    }
  }
  void closed() override {
    is_over_ = true;
    timeout_timer_.cancel();
    bytes_.reset();
  }

  void drained() override {
    if (is_over() || !bytes_) {
      return;
    }
    if (sent_ == bytes_->size()) {
      timeout_timer_.cancel();
      bytes_.reset();
      finish({});
      return;
    }
    const auto part = std::string_view(*bytes_).substr(sent_, piece_bytes);
    sent_ += part.size();
    v1::SnapshotPiece piece;
    piece.set_bytes(std::string(part));
    // A checksum per piece detects a corrupted backup when it is written, not when it is restored.
    piece.set_checksum(core::crc32c(part));
    send(piece);
    await_reader();
  }

  void await_reader() {
    timeout_timer_.expires_after(stall_max);
    // weak: the timer belongs to the call and must not keep it alive.
    timeout_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      const auto call = weak.lock();
      if (error || !call) {
        return;
      }
      auto& reading = static_cast<Reading&>(*call);
      reading.is_over_ = true;
      reading.bytes_.reset();
      reading.finish(
          {grpc::StatusCode::deadline_exceeded, "the reader did not take the next piece in time"});
    });
  }

  SnapshotReadService& reads_;
  v1::SnapshotReadRequest request_;
  boost::asio::steady_timer timeout_timer_;
  std::shared_ptr<const std::string>
      bytes_;  ///< Encoded state; null while it is encoded and at the end.
  std::size_t sent_ = 0;
  /// The call has ended for the service, whether or not its status is written.
  bool is_over_ = false;
};

void SnapshotReadService::add_to(Routes& routes) {
  // The stream contains the whole state, so it requires `admin` on the empty prefix.
  routes.add("/tenure.v1.Admin/SnapshotRead", auth::Permission::admin_global,
             [this](const grpc::CallInfo& info, std::unique_ptr<auth::Principal>) {
               return std::make_shared<Reading>(info, *this);
             });
}

bool SnapshotReadService::is_taken() const {
  const auto reader = turn_->reader.lock();
  return turn_->is_encoding || (reader && !reader->is_over());
}

void SnapshotReadService::begin(const std::shared_ptr<Reading>& reading, bool is_stale) {
  if (is_taken()) {
    reading->finish({grpc::StatusCode::resource_exhausted,
                     "another reader is active; SnapshotRead serves one at a time"});
    return;
  }
  // Taken before the read completes, so that a second reader is rejected from now on.
  turn_->reader = reading;
  auto look = [this, reading](const Result<View>& view) {
    if (!view) {
      reading->reject(view.error());
    } else if (!reading->is_over()) {
      context_.write_header(*view, *reading->head.mutable_header());
      reading->head.set_applied_index(view->log.applied_index);
      // The image is a consistent state at one revision, whatever is applied during the encoding.
      encode(core::image_of(view->state), reading);
    }
  };
  // A follower can serve a backup, which relieves the leader.
  if (is_stale) {
    context_.store.peek(std::move(look));
  } else {
    context_.store.read(std::move(look));
  }
}

void SnapshotReadService::encode(core::Image image, const std::shared_ptr<Reading>& reading) {
  turn_->is_encoding = true;
  // The previous encoder has finished: is_encoding was false.
  // Captures no `this`: the result is posted to the loop, which may run it after the service is
  // gone.
  encoder_ = std::jthread([&loop = context_.store.loop(), turn = turn_,
                           weak = std::weak_ptr(reading), image = std::move(image)] {
    auto bytes = std::make_shared<const std::string>(core::encode(image));
    boost::asio::post(loop, [turn, weak, bytes = std::move(bytes)]() mutable {
      turn->is_encoding = false;
      if (const auto reader = weak.lock()) {
        reader->send_from(std::move(bytes));
      }
    });
  });
}

}  // namespace tenure::server
