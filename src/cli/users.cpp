// tenure users reload, tenure cluster reload: makes servers reload users and certificates.

#include <chrono>
#include <string>
#include <utility>

#include "backends/rpc/endpoint_selector.hpp"
#include "cli/commands.hpp"
#include "cli/locks.hpp"
#include "sys/json_writer.hpp"

namespace tenure::cli {
namespace {

/// Reloads one server, because each server has its own file.
Result<std::uint64_t> reload_at(const backends::Endpoint& endpoint, ServiceUrl url,
                                std::chrono::milliseconds timeout) {
  url.servers.endpoints = {endpoint};
  // Without redirects, because the request concerns this server only.
  Service one(std::move(url), timeout, Service::Follow::none);
  const auto done = one.ask<v1::ReloadUsersResponse>("Admin/ReloadUsers", v1::ReloadUsersRequest());
  if (!done) {
    return std::unexpected(done.error());
  }
  return done->users();
}

}  // namespace

int reload_users(const Arguments& arguments) {
  const auto url = service_url(arguments);
  if (!url) {
    return failed(url.error());
  }
  const auto timeout = timeout_of(arguments).value_or(std::chrono::seconds(5));
  // All servers of the URL, also after a failure: the others must not keep revoked users because
  // one server is down.
  int worst = code(ExitCode::done);
  sys::JsonWriter json;
  json.begin_array();
  for (const auto& endpoint : url->servers.endpoints) {
    const auto server = backends::name_of(endpoint);
    const auto users = reload_at(endpoint, *url, timeout);
    if (!users) {
      worst = failed(users.error());
      continue;
    }
    json.begin_object()
        .field("server", std::string_view(server))
        .field("users", std::uint64_t{*users})
        .end_object();
    if (format_of(arguments) == Format::table) {
      print(server + ": " + std::to_string(*users) + (*users == 1 ? " user" : " users") + "\n");
    }
  }
  if (format_of(arguments) == Format::json) {
    print(json.end_array().text() + "\n");
  }
  return worst;
}

}  // namespace tenure::cli
