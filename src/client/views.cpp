#include "client/views.hpp"

#include <utility>

#include "client/completion.hpp"
#include "client/event_stream.hpp"
#include "client/factory.hpp"
#include "client/session.hpp"

namespace tenure::detail {

Result<std::vector<Holder>> holders_of(Session& session, std::string full_name) {
  Completion<std::vector<Holder>> answered(session.backend());
  session.backend().holders(std::move(full_name), answered.callback());
  auto answer = answered.wait_for(session.request_timeout());
  return answer ? *std::move(answer) : fail(Errc::unavailable, "no reply; retry");
}

Result<Watch> watch(std::shared_ptr<Session> session, backends::WatchRequest request,
                    std::size_t events_max) {
  if (session->is_inherited()) {
    return std::unexpected(backends::inherited_error());
  }
  if (!session->backend().capabilities().has(backends::Capability::watches)) {
    return fail(Errc::unsupported, "this backend does not support watches");
  }
  if (events_max == 0) {
    return fail(Errc::invalid_argument, "WatchOptions::events_max must be at least 1");
  }
  auto stream = std::make_shared<EventStream>(std::move(session), events_max);
  stream->start(std::move(request));
  return Factory::make<Watch>(std::move(stream));
}

}  // namespace tenure::detail
