// tenure cluster: shows and changes the members of a cluster.

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "backends/rpc/endpoint_selector.hpp"
#include "cli/commands.hpp"
#include "cli/confirm.hpp"
#include "cli/locks.hpp"
#include "cli/reachability.hpp"
#include "sys/json_writer.hpp"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;

/// Timeout of a status request to one member. The members are queried one after another, so each
/// unreachable member delays the command by this time.
constexpr milliseconds status_timeout{1000};
/// Default of --wait. A new member first receives a snapshot and the log, which may take minutes.
constexpr milliseconds change_timeout = std::chrono::minutes(5);

/// Member of the cluster.
struct MemberState {
  v1::Member listed{};                         ///< Entry in the list of the leader.
  std::optional<v1::StatusResponse> status{};  ///< Reply of the member itself, if it is reachable.
};

/// Members of the cluster, and the server that has listed them.
struct Listing {
  std::vector<v1::Member> members{};
  backends::Endpoint source{};
};

/// Whether a server that does not lead may list the members.
enum class Staleness : bool { refused, allowed };

/// List of the members from one server.
Result<Listing> list_from(const backends::Endpoint& server, ServiceUrl url, Staleness staleness) {
  url.servers.endpoints = {server};
  url.servers.connect_timeout = status_timeout;
  Service one(std::move(url), status_timeout, Service::Follow::none);
  v1::MemberListRequest request;
  request.set_stale(staleness == Staleness::allowed);
  const auto reply = one.ask<v1::MemberListResponse>("Admin/MemberList", request);
  if (!reply) {
    return std::unexpected(reply.error());
  }
  return Listing{.members = {reply->members().begin(), reply->members().end()}, .source = server};
}

/// List from the first server of the URL that answers, whether it leads or not.
Result<Listing> any_list(const Arguments& arguments, const ServiceUrl& url) {
  for (const auto& server : url.servers.endpoints) {
    auto list = list_from(server, url, Staleness::allowed);
    if (list || list.error() != Errc::unavailable) {
      return list;
    }
  }
  // No answer: this request retries until the timeout, and reports the cause.
  auto service = Service::open(arguments);
  if (!service) {
    return std::unexpected(service.error());
  }
  const auto reply =
      service->ask<v1::MemberListResponse>("Admin/MemberList", v1::MemberListRequest());
  if (!reply) {
    return std::unexpected(reply.error());
  }
  const auto source = backends::endpoint_from(service->server());
  return Listing{.members = {reply->members().begin(), reply->members().end()},
                 .source = source.value_or(url.servers.endpoints.front())};
}

/// Requests the status of each member from the member itself.
std::vector<MemberState> fetch_statuses(const Listing& list, const ServiceUrl& url) {
  std::vector<MemberState> members;
  for (const auto& listed : list.members) {
    // A single node does not know its address.
    const auto address = list.members.size() == 1
                             ? std::optional(list.source)
                             : backends::endpoint_from(listed.client_address());
    members.push_back(
        {.listed = listed,
         .status = address ? fetch_status(*address, url.servers, status_timeout) : std::nullopt});
  }
  return members;
}

/// All members, with the status of each. The status comes from each member, because no other one
/// knows what it has applied. The list comes from the leader, which knows the current members; if
/// no leader answers, from any member, so that an operator sees which ones are up.
Result<std::vector<MemberState>> fetch_members(const Arguments& arguments) {
  const auto url = service_url(arguments);
  if (!url) {
    return std::unexpected(url.error());
  }
  const auto list = any_list(arguments, *url);
  if (!list) {
    return std::unexpected(list.error());
  }
  auto members = fetch_statuses(*list, *url);
  const auto leads = [](const MemberState& member) {
    return member.status && member.status->is_leader();
  };
  const auto leader = std::ranges::find_if(members, leads);
  if (leader == members.end()) {
    // The list may name a leader that has ended.
    std::ranges::for_each(members, [](MemberState& member) { member.listed.set_is_leader(false); });
    return members;
  }
  const auto address = members.size() == 1
                           ? std::optional(list->source)
                           : backends::endpoint_from(leader->listed.client_address());
  const auto current = address ? list_from(*address, *url, Staleness::refused)
                               : Result<Listing>(fail(Errc::unavailable, ""));
  // Another member may lead since the first request: the first list is good enough.
  return current ? fetch_statuses(*current, *url) : members;
}

/// Newest cluster version that the member supports; 0: unknown.
std::uint64_t newest_version_of(const MemberState& state) {
  // From the list of the leader, else from the entry of the member in its own list.
  if (state.listed.newest_version() != 0 || !state.status) {
    return state.listed.newest_version();
  }
  const auto& members = state.status->members();
  const auto own = std::ranges::find(members, state.listed.id(), &v1::Member::id);
  return own == members.end() ? 0 : own->newest_version();
}

/// A learner receives the log and does not vote.
std::string_view role_of(const v1::Member& member) {
  return member.is_leader() ? "leader" : member.is_voter() ? "voter" : "learner";
}

/// Writes a member. Fields of an unreachable member are left out instead of being zero.
void write(sys::JsonWriter& json, const MemberState& state) {
  const auto& member = state.listed;
  json.begin_object()
      .id("member", member.id())
      .field("role", role_of(member))
      .field("client_address", std::string_view(member.client_address()))
      .field("peer_address", std::string_view(member.peer_address()))
      .field("is_reached", state.status.has_value());
  if (state.status) {
    json.field("version", std::string_view(state.status->version()))
        .id("cluster_version", state.status->cluster_version())
        .id("term", state.status->term())
        .id("commit_index", state.status->commit_index())
        .id("applied_index", state.status->applied_index())
        .field("log_bytes", std::uint64_t{state.status->log_bytes()})
        .field("locks", std::uint64_t{state.status->locks()})
        .field("leases", std::uint64_t{state.status->leases()})
        .field("waits", std::uint64_t{state.status->waits()});
  }
  if (const auto newest = newest_version_of(state); newest != 0) {
    json.id("newest_version", newest);
  }
  json.field("silent_ms", std::uint64_t{member.silent_ms()}).end_object();
}

/// Row of the table, with "-" for values of an unreachable member.
std::vector<std::string> row_of(const MemberState& state) {
  const auto& status = state.status;
  const auto number = [&](std::uint64_t value) {
    return status ? std::to_string(value) : std::string("-");
  };
  const auto& reply = status ? *status : v1::StatusResponse::default_instance();
  const auto newest = newest_version_of(state);
  return {std::to_string(state.listed.id()),
          std::string(role_of(state.listed)),
          status ? colored(Color::green, "reachable") : colored(Color::red, "unreachable"),
          plain(state.listed.client_address()),
          plain(state.listed.peer_address()),
          status ? reply.version() : "-",
          number(reply.term()),
          number(reply.applied_index()),
          number(reply.locks()),
          number(reply.leases()),
          number(reply.waits()),
          number(reply.cluster_version()),
          newest == 0 ? "-" : std::to_string(newest)};
}

/// Requests a change of the membership and waits until it is committed. Prints the revision in
/// JSON, and nothing in a table: the exit code is the result.
template <class Response>
int change(const Arguments& arguments, std::string_view method,
           const google::protobuf::MessageLite& request,
           Service::Repeat repeat = Service::Repeat::idempotent) {
  auto service = Service::open(arguments);
  const auto wait = arguments.duration("--wait");
  if (!service || !wait) {
    return failed(!service ? service.error() : wait.error());
  }
  Service::AskOptions options{.timeout = wait->value_or(change_timeout)};
  if (repeat == Service::Repeat::never) {
    // Finds the leader, which a request that is never repeated cannot do.
    const auto leader =
        service->ask<v1::MemberListResponse>("Admin/MemberList", v1::MemberListRequest());
    if (!leader) {
      return failed(leader.error());
    }
    options.repeat = repeat;
  }
  const auto answer = service->ask<Response>(method, request, options);
  if (!answer) {
    return failed(answer.error());
  }
  if (format_of(arguments) == Format::json) {
    sys::JsonWriter json;
    json.begin_object().id("revision", answer->header().revision()).end_object();
    print(json.text() + "\n");
  }
  return code(ExitCode::done);
}

/// Member id from the command line.
Result<std::uint64_t> member_of(const Arguments& arguments) {
  return parse_number(arguments.words.front(), std::numeric_limits<std::uint64_t>::max());
}

}  // namespace

int cluster_status(const Arguments& arguments) {
  const auto members = fetch_members(arguments);
  if (!members) {
    return failed(members.error());
  }
  const auto reached = std::ranges::count_if(
      *members, [](const MemberState& member) { return member.status.has_value(); });
  const bool has_leader = std::ranges::any_of(
      *members, [](const MemberState& member) { return member.listed.is_leader(); });
  if (!has_leader) {
    print_error(std::to_string(reached) + " of " + std::to_string(members->size()) +
                (reached == 1 ? " members answers" : " members answer") +
                ", no leader: a majority of the voters has to run and be connected");
  }
  // The exit code lets a monitor detect that one member is down while the cluster still works.
  const bool is_whole = has_leader && static_cast<std::size_t>(reached) == members->size();
  if (format_of(arguments) == Format::json) {
    sys::JsonWriter json;
    json.begin_array();
    for (const auto& member : *members) {
      write(json, member);
    }
    print(json.end_array().text() + "\n");
  } else if (format_of(arguments) == Format::table) {
    Table table({"MEMBER", "ROLE", "STATE", "CLIENTS", "PEERS", "VERSION", "TERM", "APPLIED",
                 "LOCKS", "LEASES", "WAITS", "CLUSTER VERSION", "NEWEST VERSION"});
    for (const auto& member : *members) {
      table.add(row_of(member));
    }
    print(table.text());
  }
  return code(is_whole ? ExitCode::done : ExitCode::no);
}

int add_member(const Arguments& arguments) {
  const auto id = member_of(arguments);
  if (!id) {
    return failed(id.error());
  }
  v1::MemberAddRequest request;
  request.set_id(*id);
  request.set_peer_address(arguments.words[1]);
  request.set_client_address(arguments.words[2]);
  return change<v1::MemberAddResponse>(arguments, "Admin/MemberAdd", request);
}

int remove_member(const Arguments& arguments) {
  const auto id = member_of(arguments);
  if (!id) {
    return failed(id.error());
  }
  // A removal is permanent, so it needs a confirmation.
  const auto asked =
      confirm(arguments, "Remove member " + std::to_string(*id) + "? Its id cannot be used again.");
  if (!asked) {
    return failed(asked.error());
  }
  v1::MemberRemoveRequest request;
  request.set_id(*id);
  return change<v1::MemberRemoveResponse>(arguments, "Admin/MemberRemove", request);
}

int transfer_leadership(const Arguments& arguments) {
  // 0 leaves the choice of the new leader to the server.
  const auto id = arguments.words.empty() ? Result<std::uint64_t>(0) : member_of(arguments);
  if (!id) {
    return failed(id.error());
  }
  v1::TransferLeadershipRequest request;
  request.set_to(*id);
  // A repetition at the new leader would make it choose another one.
  return change<v1::TransferLeadershipResponse>(
      arguments, "Admin/TransferLeadership", request,
      *id == 0 ? Service::Repeat::never : Service::Repeat::idempotent);
}

}  // namespace tenure::cli
