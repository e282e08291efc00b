#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include <grpcpp/support/server_callback.h>

#include "server/rpc/desk.hpp"
#include "sys/mutex.hpp"
#include "sys/thread_safety.hpp"

namespace tenure::server {

/// One stream in both directions: reads one message at a time, writes what is queued one after the
/// other. It keeps itself alive until gRPC has done with it; whoever else needs it holds a
/// shared_ptr. Public functions are thread safe.
template <class Request, class Response>
class Stream : public grpc::ServerBidiReactor<Request, Response>,
               public std::enable_shared_from_this<Stream<Request, Response>> {
 public:
  explicit Stream(Desk& desk) : desk_(desk) { ++desk_.streams; }
  ~Stream() override { --desk_.streams; }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Begins to read, or ends the stream at once if there are too many.
  void open() {
    self_ = this->shared_from_this();
    if (desk_.streams > desk_.limits.sessions_max) {
      finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
              "too many streams are open (limits.sessions_max); close some or raise it"});
      return;
    }
    read();
  }

 protected:
  /// On a thread of gRPC. Call read() when ready for the next one.
  virtual void received(Request& request) = 0;
  /// The client will say no more; it still listens.
  virtual void half_closed() = 0;
  /// The client is gone, or the server stops.
  virtual void cut_off() = 0;
  /// What was queued is written.
  virtual void drained() {}
  /// All is over, in whatever way.
  virtual void closed() {}

  void read() {
    {
      const sys::MutexGuard guard(mutex_);
      if (status_) {
        return;
      }
    }
    this->StartRead(&request_);
  }

  void send(Response response) {
    const sys::MutexGuard guard(mutex_);
    if (status_) {
      return;
    }
    queue_.push_back(std::move(response));
    write_next();
  }

  /// Adds to the last message that is still queued, unless that one is full.
  template <class IsFull>
  void send_merged(Response response, IsFull is_full) {
    const sys::MutexGuard guard(mutex_);
    if (status_) {
      return;
    }
    const std::size_t writing = is_writing_ ? 1 : 0;
    if (queue_.size() > writing && !is_full(queue_.back())) {
      queue_.back().MergeFrom(response);
    } else {
      queue_.push_back(std::move(response));
    }
    write_next();
  }

  /// Ends the stream when all that is queued is written. The first call counts.
  void finish(grpc::Status status) {
    const sys::MutexGuard guard(mutex_);
    if (!status_) {
      status_ = std::move(status);
      write_next();
    }
  }

  [[nodiscard]] std::size_t queued() const {
    const sys::MutexGuard guard(mutex_);
    return queue_.size();
  }

  Desk& desk_;

 private:
  void OnReadDone(bool ok) final {
    if (ok) {
      received(request_);
    } else {
      half_closed();
    }
  }

  void OnWriteDone(bool ok) final {
    bool is_drained = false;
    {
      const sys::MutexGuard guard(mutex_);
      is_writing_ = false;
      queue_.pop_front();
      if (!ok) {
        // Nobody listens any more. OnCancel follows.
        queue_.clear();
      }
      write_next();
      is_drained = queue_.empty();
    }
    if (is_drained) {
      drained();
    }
  }

  void OnCancel() final { cut_off(); }
  void OnDone() final {
    closed();
    self_.reset();
  }

  void write_next() TENURE_REQUIRES(mutex_) {
    if (is_writing_ || is_finished_) {
      return;
    }
    if (!queue_.empty()) {
      is_writing_ = true;
      this->StartWrite(&queue_.front());
    } else if (status_) {
      is_finished_ = true;
      this->Finish(*status_);
    }
  }

  std::shared_ptr<Stream> self_;  ///< Until OnDone.
  Request request_;
  mutable sys::Mutex mutex_;
  std::deque<Response> queue_ TENURE_GUARDED_BY(mutex_);  ///< The first is being written, if any.
  std::optional<grpc::Status> status_ TENURE_GUARDED_BY(mutex_);  ///< Set: it ends.
  bool is_writing_ TENURE_GUARDED_BY(mutex_) = false;
  bool is_finished_ TENURE_GUARDED_BY(mutex_) = false;
};

}  // namespace tenure::server
