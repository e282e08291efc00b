#pragma once

#include <memory>
#include <utility>

#include <tenure/client/lease.hpp>

namespace tenure::detail {

class SharedLease;

/// Attorney for the public handle types: their constructors take internal types and are private, so
/// only the library can call them, through this friend.
struct Factory {
  template <class Handle, class... Arguments>
  [[nodiscard]] static Handle make(Arguments&&... arguments) {
    return Handle(std::forward<Arguments>(arguments)...);
  }

  [[nodiscard]] static const std::shared_ptr<SharedLease>& shared_lease(
      const Lease& lease) noexcept {
    return lease.lease_;
  }
};

}  // namespace tenure::detail
