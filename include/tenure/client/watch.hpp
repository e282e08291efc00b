#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <tenure/error.hpp>
#include <tenure/ids.hpp>
#include <tenure/lock_mode.hpp>
#include <tenure/timeout.hpp>

namespace tenure {

namespace detail {
class EventStream;  // src/client/event_stream.hpp
struct Factory;     // src/client/factory.hpp
}  // namespace detail

/// Type of a lock event.
enum class LockEventType : std::uint8_t {
  queued,      ///< A request joined the wait queue.
  granted,     ///< The lock was granted, or a hold was upgraded.
  released,    ///< The holder released the lock.
  expired,     ///< The lease expired: of a hold if there is a token, else of a waiter.
  revoked,     ///< The lease was revoked: of a hold if there is a token, else of a waiter.
  forced,      ///< An operator forced the release.
  abandoned,   ///< A waiter left the wait queue.
  deadlock,    ///< A request was rejected or removed from the queue as the victim of a deadlock.
  downgraded,  ///< The holder kept the lock in a weaker mode.
};

/// Name of the enumerator.
[[nodiscard]] std::string_view to_string(LockEventType type) noexcept;

/// One event of a lock.
struct LockEvent {
  Revision revision{};                         ///< Revision of the service at the event.
  LockEventType type = LockEventType::queued;  ///< Type of the event.
  std::string name{};                          ///< Name of the lock.
  std::string owner{};                         ///< Owner of the affected hold or wait.
  FencingToken token{};                        ///< Token of the affected hold; 0 for a wait.
  LeaseId lease{};                             ///< Lease of the affected hold or wait.
  std::string metadata{};                      ///< LockOptions::metadata, or the value of a leader.
  /// Authenticated user of the lease; empty without users. `owner` is free text of the client.
  std::string user{};
  /// With LockEventType::forced: user or network address that forced the release.
  std::string operator_name{};
  /// With LockEventType::forced: free text of the operator.
  std::string reason{};
};

/// Current holder of a lock.
struct Holder {
  std::string owner{};     ///< ConnectOptions::owner of the holder.
  FencingToken token{};    ///< Fencing token of the hold.
  LeaseId lease{};         ///< Lease the hold is attached to.
  std::string metadata{};  ///< LockOptions::metadata, or the value of a leader.
  /// Authenticated user of the lease; empty without users. `owner` is free text of the client.
  std::string user{};
};

/// Set of locks that a watch covers.
enum class WatchScope : std::uint8_t {
  one_name,  ///< The lock with exactly this name.
  prefix,    ///< All locks whose names begin with it.
};

/// What to watch, and from which revision.
struct WatchOptions {
  /// One lock, or all locks with the prefix.
  WatchScope scope = WatchScope::one_name;

  /// First revision to report. Default: events from now on. Errc::invalid_argument if the service
  /// has compacted that revision.
  std::optional<Revision> start = std::nullopt;

  /// Capacity of the event buffer. A watch whose reader falls further behind ends with
  /// Errc::resource_exhausted; its detail contains the revision to resume from.
  std::size_t events_max = 4096;
};

/// Stream of lock events in order, without gaps or duplicates:
///
///     for (const LockEvent& event : watch) { … }     // ends with the watch
///
/// Thread safety: next() from one thread at a time; stop() from any thread.
class [[nodiscard]] Watch {
 public:
  /// Moves the stream. Assignment first stops the previous one.
  Watch(Watch&&) noexcept = default;
  Watch& operator=(Watch&&) noexcept;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  /// Waits for the next event. Errc::cancelled when `cancel` is triggered or after stop(); any
  /// other error ends the watch.
  [[nodiscard]] Result<LockEvent> next(std::stop_token cancel = {});
  /// Waits at most `timeout`, then Errc::timed_out.
  template <class Rep, class Period>
  [[nodiscard]] Result<LockEvent> next_for(const std::chrono::duration<Rep, Period>& timeout) {
    return next_before(detail::steady_deadline(detail::to_nanoseconds(timeout)));
  }
  /// Ends the watch. A concurrent next() returns Errc::cancelled.
  void stop() noexcept;

  /// Error that ended the last iteration; none after stop().
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }

  /// Input iterator: single pass.
  class Iterator {
   public:
    /// Types that std::input_iterator requires.
    using value_type = LockEvent;
    using difference_type = std::ptrdiff_t;

    /// Operations of an input iterator; ++ waits for the next event.
    Iterator() = default;
    explicit Iterator(Watch& watch) : watch_(&watch) { ++*this; }
    [[nodiscard]] const LockEvent& operator*() const noexcept { return event_; }
    [[nodiscard]] const LockEvent* operator->() const noexcept { return &event_; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) noexcept {
      return it.watch_ == nullptr;
    }

   private:
    Watch* watch_ = nullptr;
    LockEvent event_;
  };
  /// Range of events: begin() waits for the first one; the range ends with the watch.
  [[nodiscard]] Iterator begin() { return Iterator(*this); }
  [[nodiscard]] static std::default_sentinel_t end() noexcept { return {}; }

 private:
  friend struct detail::Factory;
  explicit Watch(std::shared_ptr<detail::EventStream> stream) noexcept;

  [[nodiscard]] Result<LockEvent> next_before(std::chrono::steady_clock::time_point deadline);

  std::shared_ptr<detail::EventStream> stream_;
  std::optional<Error> error_;
};

}  // namespace tenure
