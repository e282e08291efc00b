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

namespace tenure {

namespace detail {
class EventStream;  // src/client/event_stream.hpp
}

/// What happened to a lock.
enum class LockEventType : std::uint8_t {
  queued,      ///< Somebody joined the queue.
  granted,     ///< Somebody holds it, or holds it in a stronger mode.
  released,    ///< Given back by its holder.
  expired,     ///< Its lease ran out: a hold if it has a token, else a wait.
  revoked,     ///< Its lease was ended: likewise.
  forced,      ///< Taken away by an operator.
  abandoned,   ///< Left the queue.
  deadlock,    ///< Was refused or left the queue because it closed a cycle.
  downgraded,  ///< Its holder holds it on, in a weaker mode.
};

/// The name of a type, as it stands in the enumeration.
[[nodiscard]] std::string_view to_string(LockEventType type) noexcept;

/// One thing that happened to a lock.
struct LockEvent {
  Revision revision{};                         ///< When, in the history of the service.
  LockEventType type = LockEventType::queued;  ///< What.
  std::string name{};                          ///< To which lock.
  std::string owner{};                         ///< Who did it, or whom it befell.
  FencingToken token{};                        ///< 0 for a wait.
  LeaseId lease{};                             ///< Whose hold or wait it is.
  std::string metadata{};                      ///< LockOptions::note, or the value of a leader.
  /// Authenticated user of the lease; empty without users. `owner` is free text of the client.
  std::string user{};
  /// With LockEventType::forced: user or network address that forced the release.
  std::string operator_name{};
  /// With LockEventType::forced: free text of the operator.
  std::string reason{};
};

/// Somebody who holds a lock at the moment.
struct Holder {
  std::string owner{};     ///< ConnectOptions::owner.
  FencingToken token{};    ///< Of the hold.
  LeaseId lease{};         ///< That it hangs on.
  std::string metadata{};  ///< LockOptions::note, or the value of a leader.
  /// Authenticated user of the lease; empty without users. `owner` is free text of the client.
  std::string user{};
};

/// Which locks a watch is about.
enum class WatchScope : std::uint8_t {
  one_name,  ///< Exactly this name.
  prefix,    ///< All names that begin with it.
};

/// What to watch, and since when.
struct WatchOptions {
  /// One lock, or all whose names begin so.
  WatchScope scope = WatchScope::one_name;

  /// The first revision to tell. Default: what comes from now on. Errc::invalid_argument if the
  /// service has forgotten it already.
  std::optional<Revision> start = std::nullopt;

  /// Events that may wait to be read. Who reads too slowly for that is cut off with
  /// Errc::resource_exhausted and goes on from the revision in its detail.
  std::size_t events_max = 4096;
};

/// What happens to locks, in order, without gap or duplicate:
///
///     for (const LockEvent& event : watch) { … }     // ends when the watch does
///
/// Thread safety: next() from one thread at a time; stop() from any.
class [[nodiscard]] Watch {
 public:
  /// By Client::watch().
  explicit Watch(std::shared_ptr<detail::EventStream> stream) noexcept;
  /// The other is none afterwards; the watch of this one ends.
  Watch(Watch&&) noexcept = default;
  Watch& operator=(Watch&&) noexcept;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  /// Waits for the next event. Errc::cancelled when `cancel` fires or after stop(); any other error
  /// is the end of the watch.
  [[nodiscard]] Result<LockEvent> next(std::stop_token cancel = {});
  /// Errc::timed_out if none comes in time.
  [[nodiscard]] Result<LockEvent> next_for(std::chrono::nanoseconds patience);
  /// Ends it; whoever waits in next() is told Errc::cancelled.
  void stop() noexcept;

  /// Why the last iteration ended; nothing after stop().
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }

  /// Reads the watch; single pass.
  class Iterator {
   public:
    /// As std::input_iterator wants it.
    using value_type = LockEvent;
    using difference_type = std::ptrdiff_t;

    /// As of any input iterator; ++ waits for the next event.
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
  /// For `for`: waits for the first event; ends when the watch does.
  [[nodiscard]] Iterator begin() { return Iterator(*this); }
  [[nodiscard]] static std::default_sentinel_t end() noexcept { return {}; }

 private:
  std::shared_ptr<detail::EventStream> stream_;
  std::optional<Error> error_;
};

}  // namespace tenure
