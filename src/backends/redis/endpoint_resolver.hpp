#pragma once

#include <functional>

#include <tenure/error.hpp>

#include "backends/url.hpp"

namespace tenure::backends::redis {

/// Looks up the current endpoint of a server that can move, such as the primary of a Sentinel
/// service. Runs on the loop's thread.
class EndpointResolver {
 public:
  /// Receives the endpoint, or why it is unknown.
  using OnResolved = std::move_only_function<void(const Result<Endpoint>&)>;

  EndpointResolver() = default;
  EndpointResolver(const EndpointResolver&) = delete;
  EndpointResolver& operator=(const EndpointResolver&) = delete;
  virtual ~EndpointResolver() = default;

  /// Starts a lookup. The callback is called once, unless the loop ends before.
  virtual void resolve(OnResolved on_resolved) = 0;
};

}  // namespace tenure::backends::redis
