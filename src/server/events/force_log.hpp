#pragma once

#include <cstddef>

#include "core/outcome.hpp"
#include "server/store/store.hpp"

namespace tenure::server {

/// Audit trail of forced releases. The member that applies one as leader logs `lock_forced` for
/// each hold that it ended, whatever interface the operator used; followers, members that refuse
/// the request and members that replay their log do not. Of the store's thread.
class ForceLog final : public Listener {
 public:
  /// Lines for one forced release. Each has the number of holds, `holds`, which may be greater.
  static constexpr std::size_t lines_max = 20;

  void applied(const core::Applied& what, const core::State& state) override;
  void role_changed(const LogPosition& log) override { is_leader_ = log.is_leader; }

 private:
  bool is_leader_ = false;
};

}  // namespace tenure::server
