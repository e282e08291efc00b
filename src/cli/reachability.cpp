#include "cli/reachability.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "backends/rpc/endpoint_selector.hpp"
#include "cli/text_exchange.hpp"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;

/// Timeout for one server. The command has failed already, so it must not wait much longer.
constexpr milliseconds inquiry{500};
/// Most servers that are asked.
constexpr std::size_t asked_max = 9;

/// Replies of the servers of a cluster.
struct Survey {
  std::vector<backends::Endpoint> servers{};  ///< Those that were asked.
  std::vector<backends::Endpoint> silent{};   ///< Those that did not answer.
  bool has_leader = false;                    ///< Whether one of them leads.
};

/// Asks the servers of the URL, and the members that they name.
Survey survey_of(const backends::Servers& servers) {
  Survey survey;
  auto& asked = survey.servers;
  asked = servers.endpoints;
  // The list grows: members that an answer names are asked, too.
  for (std::size_t at = 0; at < asked.size() && at < asked_max; ++at) {
    const auto status = fetch_status(asked[at], servers, inquiry);
    if (!status) {
      survey.silent.push_back(asked[at]);
      continue;
    }
    survey.has_leader = survey.has_leader || status->is_leader();
    for (const auto& member : status->members()) {
      const auto named = backends::endpoint_from(member.client_address());
      if (named && std::ranges::find(asked, *named) == asked.end()) {
        asked.push_back(*named);
      }
    }
  }
  return survey;
}

/// Value of a string field of a JSON document of tenured; empty if it is missing.
std::string json_text(const std::string& json, const std::string& key, std::size_t from = 0) {
  const auto mark = "\"" + key + "\":\"";
  const auto begin = json.find(mark, from);
  if (begin == std::string::npos) {
    return "";
  }
  const auto value = begin + mark.size();
  return json.substr(value, json.find('"', value) - value);
}

/// Address for gRPC of the server whose HTTP port this is; empty if it does not report it.
std::string grpc_address_of(const backends::Endpoint& server) {
  const auto cluster = query_http(server, {.path = "/v1/cluster"}, inquiry);
  if (!cluster) {
    return "";
  }
  const auto members = cluster->find("\"members\":");
  const auto own = "\"member\":\"" + json_text(*cluster, "member") + '"';
  const auto listed = members == std::string::npos ? members : cluster->find(own, members);
  return listed == std::string::npos ? "" : json_text(*cluster, "client_address", listed);
}

/// Error for a server whose port speaks HTTP/1; none if it does not.
std::optional<Error> http_port_error(const backends::Endpoint& server) {
  const auto reply = exchange_text(server, "GET / HTTP/1.0\r\n\r\n", inquiry);
  if (!reply || !reply->starts_with("HTTP/1.")) {
    return std::nullopt;
  }
  const auto address = grpc_address_of(server);
  const auto advice = address.empty() ? std::string("use the port of listen.grpc, by default 7420")
                                      : "use tenure://" + address;
  return Error{Errc::unavailable, name_of(server) + " is an HTTP port, and this command needs " +
                                      "the gRPC port of the server: " + advice};
}

}  // namespace

std::optional<v1::StatusResponse> fetch_status(const backends::Endpoint& server,
                                               backends::Servers servers, milliseconds timeout) {
  // Only this server, with the credentials and the TLS settings of the URL.
  servers.endpoints = {server};
  servers.connect_timeout = timeout;
  // Without redirects: only the reply of this server shows that it is up.
  Service one({.servers = std::move(servers)}, timeout, Service::Follow::none);
  auto status = one.ask<v1::StatusResponse>("Admin/Status", v1::StatusRequest());
  return status ? std::optional(*std::move(status)) : std::nullopt;
}

Error explained(Error error, const backends::Servers& servers) {
  if (error.code != Errc::unavailable) {
    return error;
  }
  const auto survey = survey_of(servers);
  const auto answering = survey.servers.size() - survey.silent.size();
  if (answering == 0) {
    const auto& first = servers.endpoints.front();
    // TLS would reject the request in clear text.
    auto http = servers.tls == nullptr ? http_port_error(first) : std::nullopt;
    if (!http && servers.endpoints.size() > 1) {
      error.detail = "none of " + std::to_string(servers.endpoints.size()) +
                     " servers answers; the last one: " + error.detail;
    }
    return http ? *std::move(http) : error;
  }
  if (survey.has_leader) {
    return error;
  }
  std::string missing;
  for (const auto& server : survey.silent) {
    missing += (missing.empty() ? "; no answer from " : ", ") + name_of(server);
  }
  error.detail = std::to_string(answering) + " of " + std::to_string(survey.servers.size()) +
                 (survey.servers.size() == 1 ? " member" : " members") +
                 (answering == 1 ? " answers" : " answer") + ", no leader" + missing;
  return error;
}

}  // namespace tenure::cli
