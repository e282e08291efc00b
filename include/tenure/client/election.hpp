#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <tenure/client/guard.hpp>
#include <tenure/client/options.hpp>
#include <tenure/client/watch.hpp>
#include <tenure/error.hpp>

namespace tenure {

/// Leader election on top of a Mutex: the holder is the leader, and the metadata of the hold is the
/// leader's value, such as its address.
///
/// A handle: copies refer to the same election. Thread safe.
class Election {
 public:
  /// Waits until this candidate is the leader. Leadership lasts as long as the guard: stop when
  /// lost() is triggered, and send token() with every write.
  [[nodiscard]] Result<Guard> campaign(std::string value, std::stop_token cancel = {}) const;
  /// Errc::would_block if there is another leader or candidate.
  [[nodiscard]] Result<Guard> try_campaign(std::string value) const;

  /// Gives up the leadership to the next candidate in the wait queue.
  [[nodiscard]] static Result<void> resign(Guard& leadership) { return leadership.unlock(); }

  /// The current leader, if there is one; its value is Holder::metadata.
  [[nodiscard]] Result<std::optional<Holder>> leader() const;

  /// Watches every change of leadership from now on.
  [[nodiscard]] Result<Watch> observe() const;

 private:
  friend struct detail::Factory;
  explicit Election(std::shared_ptr<const detail::LockSpec> spec) noexcept;

  [[nodiscard]] std::shared_ptr<const detail::LockSpec> with_value(std::string value) const;

  std::shared_ptr<const detail::LockSpec> spec_;
};

}  // namespace tenure
