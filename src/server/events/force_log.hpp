#pragma once

#include <cstddef>

#include "core/outcome.hpp"
#include "server/store/store.hpp"

namespace tenure::server {

/// Audit log of forced releases. The member that applies a forced release as leader logs
/// `lock_forced` for each ended hold, for all interfaces. Followers, members that refuse the
/// request and members that replay their log do not. Not thread safe; belongs to the store's
/// thread.
class ForceLog final : public Listener {
 public:
  /// Upper bound of the lines for one forced release. The field `holds` of each is the total.
  static constexpr std::size_t lines_max = 20;

  void applied(const core::Applied& what, const core::State& state) override;
  void role_changed(const LogPosition& log) override { is_leader_ = log.is_leader; }

 private:
  /// Role at the last change.
  bool is_leader_ = false;
};

}  // namespace tenure::server
