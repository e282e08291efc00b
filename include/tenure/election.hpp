#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <tenure/error.hpp>
#include <tenure/guard.hpp>
#include <tenure/options.hpp>
#include <tenure/watch.hpp>

namespace tenure {

/// One leader among many, on top of a mutex: who holds it leads, and what it says of itself is the
/// note beside the hold.
///
/// A handle: copies are the same election. Thread safe.
class Election {
 public:
  /// By Client::election().
  explicit Election(std::shared_ptr<const detail::LockSpec> spec) noexcept;

  /// Waits until we lead. The leadership lasts as long as the guard; its lost() is the moment to
  /// stop, its token() goes with every write.
  [[nodiscard]] Result<Guard> campaign(std::string value, std::stop_token cancel = {}) const;
  /// Errc::would_block if somebody else leads or waits to.
  [[nodiscard]] Result<Guard> try_campaign(std::string value) const;

  /// Steps down; the next one in the queue leads.
  [[nodiscard]] static Result<void> resign(Guard& leadership) { return leadership.unlock(); }

  /// Who leads at the moment; its value is Holder::metadata.
  [[nodiscard]] Result<std::optional<Holder>> leader() const;

  /// Every change of leadership from now on: granted, and how it ended.
  [[nodiscard]] Result<Watch> observe() const;

 private:
  [[nodiscard]] std::shared_ptr<const detail::LockSpec> with_value(std::string value) const;

  std::shared_ptr<const detail::LockSpec> spec_;
};

}  // namespace tenure
