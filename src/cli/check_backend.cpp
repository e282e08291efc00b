#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "backends/url.hpp"
#include "cli/check.hpp"
#include "cli/output.hpp"
#include "cli/text_exchange.hpp"

namespace tenure::cli {
namespace {

using backends::Endpoint;
using std::chrono::milliseconds;
using Checks = std::vector<Check>;

/// Difference of the wall clocks from which on the doctor warns.
constexpr std::chrono::seconds clock_difference_max{5};

/// Text from `begin` up to the end of the line, or up to a quote in JSON.
std::string value_at(std::string_view text, std::size_t begin) {
  return std::string(text.substr(begin, text.find_first_of("\r\n\",", begin) - begin));
}

/// Value after a mark such as "redis_version:"; none if the text does not have it.
std::optional<std::string> value_after(std::string_view text, std::string_view mark) {
  const auto at = text.find(mark);
  return at == std::string_view::npos ? std::nullopt
                                      : std::optional(value_at(text, at + mark.size()));
}

Check skipped(std::string what, std::string why) {
  return {.what = std::move(what), .finding = Finding::skipped, .detail = std::move(why)};
}

/// Command in the format of Redis (RESP), so that any byte may be part of a password.
std::string resp(const std::vector<std::string>& words) {
  auto text = "*" + std::to_string(words.size()) + "\r\n";
  for (const auto& word : words) {
    text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return text;
}

/// AUTH with the credentials of a URL; nothing without them.
std::string resp_login(const std::string& user, const std::string& password) {
  if (password.empty()) {
    return "";
  }
  return user.empty() ? resp({"AUTH", password}) : resp({"AUTH", user, password});
}

/// First error reply of Redis.
std::optional<std::string> redis_error(std::string_view reply) {
  if (reply.starts_with('-')) {
    return value_at(reply, 1);
  }
  return value_after(reply, "\r\n-");
}

Check redis_eviction(std::string_view info, const std::string& name) {
  const auto policy = value_after(info, "maxmemory_policy:").value_or("unknown");
  const bool is_safe = value_after(info, "\nmaxmemory:") == "0" || policy == "noeviction";
  return {.what = "eviction of " + name,
          .finding = is_safe ? Finding::good : Finding::warning,
          .detail = "maxmemory-policy " + policy +
                    (is_safe ? "" : ": Redis may delete locks when its memory is full"),
          .advice = is_safe ? "" : "set maxmemory-policy noeviction"};
}

Check redis_persistence(std::string_view info, const std::string& name) {
  const auto what = "persistence of " + name;
  if (value_after(info, "aof_last_write_status:").value_or("ok") != "ok") {
    return {what, Finding::bad, "the last write of the append-only file failed",
            "free space on the disk of Redis"};
  }
  if (value_after(info, "aof_enabled:") == "1") {
    return {what, Finding::good, "append-only file"};
  }
  return {what, Finding::warning, "no append-only file: a restart of Redis forgets held locks",
          "set appendonly yes, and appendfsync always where no lock may be forgotten"};
}

Check redis_replication(std::string_view info, const std::string& name) {
  const auto what = "replication of " + name;
  if (value_after(info, "role:") == "slave") {
    return {what, Finding::bad, "a replica, which cannot grant locks",
            "use the address of the primary, or redis+sentinel://"};
  }
  return {what, Finding::good,
          "primary with " + value_after(info, "connected_slaves:").value_or("0") + " replicas"};
}

/// Compares the reply of TIME with the clock of this machine.
Check redis_clock(std::string_view reply, const std::string& name) {
  const auto what = "clock of " + name;
  const auto text = value_after(reply, "\r\n*2\r\n$10\r\n");
  if (!text) {
    return skipped(what, "the server does not report its time (TIME)");
  }
  const std::chrono::seconds theirs(std::strtoll(text->c_str(), nullptr, 10));
  const auto ours = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const auto difference = ours > theirs ? ours - theirs : theirs - ours;
  const bool is_good = difference <= clock_difference_max;
  return {what, is_good ? Finding::good : Finding::warning,
          "differs by " + format_duration(difference) + " from the clock of this machine",
          is_good ? "" : "synchronise both clocks (NTP)"};
}

/// Checks one Redis server.
Checks check_redis(const Endpoint& server, const std::string& login, milliseconds timeout) {
  const auto name = backends::name_of(server);
  // QUIT: the server closes the connection after its last reply.
  const auto reply =
      exchange_text(server, login + resp({"INFO"}) + resp({"TIME"}) + resp({"QUIT"}), timeout);
  if (!reply) {
    return {{name, Finding::bad, reply.error().detail, "start the server, or correct the URL"}};
  }
  const auto version = value_after(*reply, "redis_version:");
  const auto refused = redis_error(*reply);
  if (!version) {
    const bool is_login =
        refused && (refused->starts_with("WRONGPASS") || refused->starts_with("NOAUTH"));
    Check permissions{"permissions of " + name, is_login ? Finding::bad : Finding::warning,
                      refused.value_or("no reply to INFO"),
                      is_login ? "correct user and password in the URL"
                               : "permit this user INFO and TIME, for these checks only"};
    return {std::move(permissions), skipped("version of " + name,
                                            "INFO is not permitted, so version, eviction, "
                                            "persistence and replication are not checked")};
  }
  return {{"version of " + name, Finding::good, "Redis " + *version},
          redis_eviction(*reply, name),
          redis_persistence(*reply, name),
          redis_replication(*reply, name),
          redis_clock(*reply, name),
          refused ? Check{"permissions of " + name, Finding::warning, *refused}
                  : Check{"permissions of " + name, Finding::good, "INFO and TIME are permitted"}};
}

/// Primary of a service according to the first Sentinel that answers.
std::optional<Endpoint> primary_of(const std::vector<Endpoint>& sentinels, const std::string& login,
                                   const std::string& service, milliseconds timeout) {
  for (const auto& sentinel : sentinels) {
    const auto question = resp({"SENTINEL", "get-master-addr-by-name", service});
    const auto reply = exchange_text(sentinel, login + question + resp({"QUIT"}), timeout);
    const auto begin = reply ? reply->find("*2\r\n$") : std::string::npos;
    if (begin == std::string::npos) {
      continue;
    }
    // *2 $LENGTH host $LENGTH port, one per line.
    const auto host_at = reply->find("\r\n", begin + 5) + 2;
    const auto port_at = reply->find("\r\n", reply->find("\r\n", host_at) + 2) + 2;
    Endpoint found{.host = value_at(*reply, host_at)};
    const auto port = value_at(*reply, port_at);
    std::from_chars(port.data(), port.data() + port.size(), found.port);
    return found;
  }
  return std::nullopt;
}

/// Parameter of a URL; empty if it has none with this name.
std::string parameter_of(const backends::Url& url, std::string_view name) {
  const auto found = std::ranges::find_if(
      url.parameters, [&](const auto& parameter) { return parameter.key.text == name; });
  return found == url.parameters.end() ? "" : found->value.text;
}

Checks check_redis_servers(const backends::Url& url, const std::string& login,
                           milliseconds timeout) {
  const bool is_sentinel = url.scheme == "redis+sentinel";
  auto servers = backends::endpoints_of(url, is_sentinel ? 26379 : 6379);
  if (!servers) {
    return {{"servers", Finding::bad, servers.error().detail, "correct the URL"}};
  }
  if (is_sentinel) {
    const auto service = url.path.text.substr(0, url.path.text.find('/'));
    const auto primary = primary_of(
        *servers,
        resp_login(parameter_of(url, "sentinel_user"), parameter_of(url, "sentinel_password")),
        service, timeout);
    if (!primary) {
      return {{"sentinel", Finding::bad, "no Sentinel names a primary of " + plain(service),
               "correct the URL, or start the Sentinels"}};
    }
    *servers = {*primary};
  }
  Checks all;
  for (const auto& server : *servers) {
    std::ranges::move(check_redis(server, login, timeout), std::back_inserter(all));
  }
  return all;
}

/// Checks one etcd server by its JSON gateway.
Checks check_etcd(const Endpoint& server, milliseconds timeout) {
  const auto name = backends::name_of(server);
  const auto version = query_http(server, {.path = "/version"}, timeout);
  if (!version) {
    return {{name, Finding::bad, version.error().detail, "start the server, or correct the URL"}};
  }
  Checks all{{"version of " + name, Finding::good,
              "etcd " + value_after(*version, "\"etcdserver\":\"").value_or("unknown")}};
  const auto status = query_http(server, {.path = "/v3/maintenance/status", .body = "{}"}, timeout);
  const auto members =
      query_http(server, {.path = "/v3/cluster/member/list", .body = "{}"}, timeout);
  if (!status) {
    all.push_back(skipped("persistence of " + name, status.error().detail));
  } else if (status->find("NOSPACE") != std::string::npos) {
    all.push_back({"persistence of " + name, Finding::bad, "the quota of the database is exhausted",
                   "compact and defragment, then etcdctl alarm disarm"});
  } else {
    all.push_back(
        {"persistence of " + name, Finding::good,
         "database of " + value_after(*status, "\"dbSize\":\"").value_or("0") + " bytes"});
  }
  const bool is_led = status && value_after(*status, "\"leader\":\"").value_or("0") != "0";
  if (!members || !status) {
    all.push_back(skipped("permissions of " + name,
                          "the server does not permit to read its status and members"));
  } else {
    all.push_back({"permissions of " + name, Finding::good, "status and members are readable"});
    std::size_t count = 0;
    for (auto at = members->find("\"ID\":"); at != std::string::npos;
         at = members->find("\"ID\":", at + 1)) {
      ++count;
    }
    all.push_back({"replication of " + name, is_led ? Finding::good : Finding::bad,
                   std::to_string(count) + (count == 1 ? " member" : " members") +
                       (is_led ? ", with a leader" : ", no leader"),
                   is_led ? "" : "a majority of the members has to run and be connected"});
  }
  all.push_back({"eviction of " + name, Finding::good, "etcd deletes no keys by itself"});
  all.push_back(skipped("clock of " + name, "etcd does not report its time"));
  return all;
}

/// Checks one ZooKeeper server by its four-letter words.
Checks check_zookeeper(const Endpoint& server, milliseconds timeout) {
  const auto name = backends::name_of(server);
  const auto reply = exchange_text(server, "srvr", timeout);
  if (!reply) {
    return {{name, Finding::bad, reply.error().detail, "start the server, or correct the URL"}};
  }
  Checks all;
  const auto version = value_after(*reply, "Zookeeper version: ");
  const auto mode = value_after(*reply, "Mode: ");
  if (version && mode) {
    all.push_back({"version of " + name, Finding::good, "ZooKeeper " + *version});
    all.push_back({"replication of " + name, Finding::good, *mode});
  } else if (reply->find("not currently serving") != std::string::npos) {
    all.push_back({"replication of " + name, Finding::bad, "the ensemble has no quorum",
                   "a majority of the servers has to run and be connected"});
  } else {
    all.push_back(skipped("version of " + name,
                          "add srvr to 4lw.commands.whitelist to check version and replication"));
  }
  all.push_back({"eviction of " + name, Finding::good, "ZooKeeper deletes no nodes by itself"});
  all.push_back(skipped("persistence of " + name, "ZooKeeper does not report forceSync"));
  all.push_back(skipped("clock of " + name, "ZooKeeper does not report its time"));
  all.push_back(skipped("permissions of " + name, "the check of a lock shows them"));
  return all;
}

}  // namespace

std::vector<Check> check_backend(const std::string& text, milliseconds timeout) {
  auto url = backends::parse_url(text);
  if (!url) {
    return {{"servers", Finding::bad, url.error().detail, "correct the URL"}};
  }
  if (url->scheme == "memory") {
    return {skipped("servers", "memory:// has no server")};
  }
  const bool is_tls =
      url->scheme.starts_with("rediss") || url->scheme == "redlocks" || url->scheme == "etcds";
  if (is_tls) {
    return {skipped("servers",
                    "version, eviction, persistence, replication, clock and permissions "
                    "are not checked over TLS")};
  }
  const auto login = backends::take_login(*url);
  if (url->scheme.starts_with("redis") || url->scheme == "redlock") {
    return check_redis_servers(
        *url, login ? resp_login(login->user, login->password.value_or("")) : "", timeout);
  }
  const bool is_etcd = url->scheme == "etcd";
  const auto servers = backends::endpoints_of(*url, is_etcd ? 2379 : 2181);
  if (!servers) {
    return {{"servers", Finding::bad, servers.error().detail, "correct the URL"}};
  }
  Checks all;
  for (const auto& server : *servers) {
    std::ranges::move(is_etcd ? check_etcd(server, timeout) : check_zookeeper(server, timeout),
                      std::back_inserter(all));
  }
  return all;
}

}  // namespace tenure::cli
