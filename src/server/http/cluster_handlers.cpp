#include "server/http/cluster_handlers.hpp"

#include <chrono>
#include <cstdint>
#include <utility>

#include "server/config/members.hpp"
#include "server/config/units.hpp"
#include "server/http/body.hpp"
#include "server/http/responses.hpp"
#include "sys/log.hpp"

namespace tenure::server::http {
namespace {

/// Time for a change in addition to the usual response time: a new member receives a snapshot
/// before it votes. The change continues after the 503.
constexpr std::chrono::seconds change_time{60};

/// Logs an accepted request with its operator: the user, or without users the address.
void log_request(const Request& request, std::string_view action, std::uint64_t member) {
  const auto* user = request.access.user();
  log::info("cluster_change_requested",
            {{"action", action},
             {"member", std::to_string(member)},
             {"operator", user == nullptr ? request.client.address : user->name}});
}

/// Extends the deadline of the response.
void allow_change_time(const Request& request) {
  if (request.disconnect_hook) {
    request.disconnect_hook->wait_max = change_time;
    // The connection extends its deadline only if there is a hook. A change cannot be withdrawn.
    request.disconnect_hook->on_disconnect = [] {};
  }
}

}  // namespace

std::move_only_function<void(Result<void>)> ClusterHandlers::respond_with(Reply reply) const {
  return [reply = reply_on(executor_, std::move(reply))](const Result<void>& done) mutable {
    reply(done ? json("{}\n") : error_response(done.error()));
  };
}

void ClusterHandlers::add_member(const Request& request, Reply reply) {
  auto member = read_body(request.body, [](Body& body) {
    InitialMember given{.id = body.required_number("member")};
    given.peer = body.required_text("peer_address");
    given.client = body.required_text("client_address");
    return given;
  });
  if (const auto checked = member ? check_member(*member) : Result<void>(); !member || !checked) {
    reply(error_response(member ? checked.error() : member.error()));
    return;
  }
  log_request(request, "add", member->id);
  allow_change_time(request);
  store_.change_members(AddMember{.id = member->id,
                                  .peer_address = std::move(member->peer),
                                  .client_address = std::move(member->client)},
                        respond_with(std::move(reply)));
}

void ClusterHandlers::remove_member(const Request& request, Reply reply) {
  const auto number = parse_count(request.path_parameter);
  if (!number) {
    reply(error_response(number.error()));
    return;
  }
  log_request(request, "remove", *number);
  allow_change_time(request);
  store_.change_members(RemoveMember{.id = *number}, respond_with(std::move(reply)));
}

void ClusterHandlers::transfer_leadership(const Request& request, Reply reply) {
  const auto to = read_body(request.body, [](Body& body) { return body.number("to").value_or(0); });
  if (!to) {
    reply(error_response(to.error()));
    return;
  }
  log_request(request, "transfer_leadership", *to);
  store_.transfer_leadership(*to, respond_with(std::move(reply)));
}

void ClusterHandlers::reload(const Request& request, Reply reply) {
  // An error, not success: an operator would otherwise believe that users are now enforced.
  if (!reload_) {
    reply(problem(409, "Conflict",
                  "neither users nor certificates are configured; start tenured with --auth-file "
                  "or --tls-cert"));
    return;
  }
  log_request(request, "reload", store_.identity().member);
  const auto users = reload_();
  if (!users) {
    reply(problem(409, "Conflict", users.error().detail));
    return;
  }
  reply(json_object([&](sys::JsonWriter& out) { out.field("users", *users); }));
}

}  // namespace tenure::server::http
