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

[[nodiscard]] std::string_view to_string(LockEventType type) noexcept;

struct LockEvent {
  Revision revision{};
  LockEventType type = LockEventType::queued;
  std::string name{};
  std::string owner{};
  FencingToken token{};  ///< 0 for a wait.
  LeaseId lease{};
  std::string metadata{};
};

/// Somebody who holds a lock at the moment.
struct Holder {
  std::string owner{};
  FencingToken token{};
  LeaseId lease{};
  std::string metadata{};
};

enum class WatchScope : std::uint8_t {
  one_name,  ///< Exactly this name.
  prefix,    ///< All names that begin with it.
};

struct WatchOptions {
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
  explicit Watch(std::shared_ptr<detail::EventStream> stream) noexcept;
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
  void stop() noexcept;

  /// Why the last iteration ended; nothing after stop().
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }

  /// Reads the watch; single pass.
  class Iterator {
   public:
    using value_type = LockEvent;
    using difference_type = std::ptrdiff_t;

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
  [[nodiscard]] Iterator begin() { return Iterator(*this); }
  [[nodiscard]] static std::default_sentinel_t end() noexcept { return {}; }

 private:
  std::shared_ptr<detail::EventStream> stream_;
  std::optional<Error> error_;
};

}  // namespace tenure
