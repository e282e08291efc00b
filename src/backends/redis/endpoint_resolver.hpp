#pragma once

#include <functional>

#include <tenure/error.hpp>

#include "backends/url.hpp"

namespace tenure::backends::redis {

/// Knows where a server is that may be elsewhere tomorrow. On the loop's thread.
class EndpointResolver {
 public:
  using OnResolved = std::move_only_function<void(const Result<Endpoint>&)>;

  EndpointResolver() = default;
  EndpointResolver(const EndpointResolver&) = delete;
  EndpointResolver& operator=(const EndpointResolver&) = delete;
  virtual ~EndpointResolver() = default;

  /// Asks. `found` is called once, unless the loop ends before.
  virtual void resolve(OnResolved on_resolved) = 0;
};

}  // namespace tenure::backends::redis
