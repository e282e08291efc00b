#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <tenure/client/watch.hpp>
#include <tenure/error.hpp>

#include "backends/backend.hpp"

/// Queries and watches, which need no lock.
namespace tenure::detail {

class Session;

/// Queries the holders and waits for the reply, at most request_timeout.
[[nodiscard]] Result<std::vector<Holder>> holders_of(Session& session, std::string full_name);

/// Starts a watch. `events_max`: events that are buffered for a slow reader.
[[nodiscard]] Result<Watch> watch(std::shared_ptr<Session> session, backends::WatchRequest request,
                                  std::size_t events_max);

}  // namespace tenure::detail
