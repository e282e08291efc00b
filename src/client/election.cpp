#include <utility>
#include <vector>

#include <tenure/client/client.hpp>
#include <tenure/client/election.hpp>

#include "client/acquire.hpp"
#include "client/completion.hpp"
#include "client/make_guard.hpp"
#include "client/session.hpp"
#include "client/views.hpp"

namespace tenure {

Election::Election(std::shared_ptr<const detail::LockSpec> spec) noexcept
    : spec_(std::move(spec)) {}

Result<Guard> Election::campaign(std::string value, std::stop_token cancel) const {
  const auto spec = with_value(std::move(value));
  return detail::make_guard<Guard>(spec, detail::within_max_wait(*spec, std::move(cancel)));
}

Result<Guard> Election::try_campaign(std::string value) const {
  return detail::make_guard<Guard>(with_value(std::move(value)), {.queue = backends::Queue::skip});
}

Result<std::optional<Holder>> Election::leader() const {
  if (spec_->error) {
    return std::unexpected(*spec_->error);
  }
  auto holders = detail::holders_of(*spec_->session, spec_->name);
  if (!holders) {
    return std::unexpected(std::move(holders).error());
  }
  // The lock is exclusive, so there is at most one holder.
  return holders->empty() ? std::nullopt : std::optional(std::move(holders->front()));
}

Result<Watch> Election::observe() const {
  if (spec_->error) {
    return std::unexpected(*spec_->error);
  }
  return detail::watch(spec_->session, {.name = spec_->name}, WatchOptions{}.events_max);
}

/// Copy of the specification with the value as metadata, where other clients read it. Each campaign
/// may have another value, and specifications are immutable.
std::shared_ptr<const detail::LockSpec> Election::with_value(std::string value) const {
  auto spec = *spec_;
  const auto most = spec.session->limits().metadata_bytes_max;
  if (!spec.error && value.size() > most) {
    spec.error =
        Error{.code = Errc::invalid_argument,
              .detail = "the value of a leader has at most " + std::to_string(most) + " bytes"};
  }
  auto acquire_spec = *spec.acquire_spec;
  acquire_spec.metadata = std::move(value);
  spec.acquire_spec = std::make_shared<const backends::AcquireSpec>(std::move(acquire_spec));
  return std::make_shared<const detail::LockSpec>(std::move(spec));
}

}  // namespace tenure
