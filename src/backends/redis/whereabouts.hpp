#pragma once

#include <functional>

#include <tenure/error.hpp>

#include "backends/url.hpp"

namespace tenure::backends::redis {

/// Knows where a server is that may be elsewhere tomorrow. On the loop's thread.
class Whereabouts {
 public:
  using Found = std::move_only_function<void(const Result<Endpoint>&)>;

  Whereabouts() = default;
  Whereabouts(const Whereabouts&) = delete;
  Whereabouts& operator=(const Whereabouts&) = delete;
  virtual ~Whereabouts() = default;

  /// Asks. `found` is called once, unless the loop ends before.
  virtual void find(Found found) = 0;
};

}  // namespace tenure::backends::redis
