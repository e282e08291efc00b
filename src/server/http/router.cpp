#include "server/http/router.hpp"

#include <memory>
#include <utility>

#include <boost/asio/post.hpp>

#include "server/units.hpp"

namespace tenure::server::http {
namespace {

constexpr std::size_t page_limit_default = 100;
constexpr std::size_t page_limit_max = 1000;
constexpr Depth in_full{.holders = 1000, .waiters = 1000};
/// A member this many entries behind is still reading its log.
constexpr std::uint64_t entries_behind_max = 1000;

Response text(unsigned status, std::string body) {
  return {.status = status, .content_type = "text/plain; charset=utf-8", .body = std::move(body)};
}

Response json(std::string body) {
  return {.body = std::move(body)};
}

Response bad(const Error& error) {
  return problem(400, "Bad Request", error.detail);
}

Response unavailable(const Error& error) {
  auto response = problem(503, "Service Unavailable", tenure::to_string(error));
  response.fields.emplace_back("Retry-After", "1");
  return response;
}

Response not_found(std::string_view detail) {
  return problem(404, "Not Found", detail);
}

/// A number in the query, within limits; `otherwise` if it is not there.
Result<std::size_t> page_limit(const Request& request) {
  const auto given = request.parameter("limit");
  if (!given) {
    return page_limit_default;
  }
  const auto limit = parse_count(*given);
  if (!limit || *limit == 0 || *limit > page_limit_max) {
    return fail(Errc::invalid_argument, "limit: a number from 1 to 1000");
  }
  return *limit;
}

std::optional<std::string_view> why_not_ready(const View& view) {
  const auto& log = view.log;
  if (!log.is_leader && log.leader == 0) {
    return "no member leads";
  }
  if (log.commit > log.applied + entries_behind_max) {
    return "the log is still being applied";
  }
  if (!log.has_space) {
    return "the disk is full";
  }
  return std::nullopt;
}

}  // namespace

Router::Router(Store& store, Metrics& metrics, boost::asio::any_io_executor home, ServerFacts facts)
    : store_(store), metrics_(metrics), home_(std::move(home)), facts_(std::move(facts)) {}

void Router::serve(const Request& request, Reply reply) const {
  constexpr std::string_view lock_prefix = "/v1/locks/";
  constexpr std::string_view lease_prefix = "/v1/leases/";
  const std::string_view path = request.path;
  if (path == "/") {
    reply(text(200, std::string(front_page())));
  } else if (path == "/healthz") {
    reply(text(200, "ok\n"));
  } else if (path == "/readyz") {
    ready(std::move(reply));
  } else if (path == "/metrics") {
    metrics(std::move(reply));
  } else if (path == "/v1/status") {
    status(std::move(reply));
  } else if (path == "/v1/cluster") {
    cluster(std::move(reply));
  } else if (path == "/v1/locks") {
    locks(request, std::move(reply));
  } else if (path == "/v1/leases") {
    leases(request, std::move(reply));
  } else if (path.starts_with(lock_prefix) && path.size() > lock_prefix.size()) {
    // Names look like paths, so what follows is the name, slashes and all.
    lock(request, path.substr(lock_prefix.size()), std::move(reply));
  } else if (path.starts_with(lease_prefix) && path.size() > lease_prefix.size()) {
    lease(request, path.substr(lease_prefix.size()), std::move(reply));
  } else {
    reply(not_found("there is nothing here; / tells what there is"));
  }
}

template <class Copy, class Page>
void Router::look(const Request& request, Reply reply, Copy copy, Page page) const {
  auto looker = [home = home_, reply = std::move(reply), copy = std::move(copy),
                 page = std::move(page)](const Result<View>& view) mutable {
    using Copied = decltype(copy(*view));
    auto copied = view ? Result<Copied>(copy(*view)) : std::unexpected(view.error());
    boost::asio::post(home, [reply = std::move(reply), page = std::move(page),
                             copied = std::move(copied)]() mutable {
      reply(copied ? page(*copied) : unavailable(copied.error()));
    });
  };
  if (request.parameter("stale") == "true") {
    store_.peek(std::move(looker));
  } else {
    store_.read(std::move(looker));
  }
}

void Router::ready(Reply reply) const {
  const Request anybody{.query = {{"stale", "true"}}};
  look(anybody, std::move(reply), why_not_ready, [](std::optional<std::string_view> why) {
    return why ? problem(503, "Not Ready", *why) : text(200, "ready\n");
  });
}

void Router::metrics(Reply reply) const {
  store_.peek([this, reply = std::move(reply)](const Result<View>& view) mutable {
    if (view) {
      metrics_.observe(*view);
    }
    boost::asio::post(home_, [this, reply = std::move(reply)]() mutable {
      reply({.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_.text()});
    });
  });
}

void Router::status(Reply reply) const {
  const Request anybody{.query = {{"stale", "true"}}};
  look(anybody, std::move(reply), copy_status,
       [facts = facts_](const StatusRecord& record) { return json(write(record, facts)); });
}

void Router::cluster(Reply reply) const {
  const Request anybody{.query = {{"stale", "true"}}};
  look(anybody, std::move(reply), copy_cluster,
       [facts = facts_](const ClusterRecord& record) { return json(write(record, facts)); });
}

void Router::locks(const Request& request, Reply reply) const {
  const auto limit = page_limit(request);
  if (!limit) {
    reply(bad(limit.error()));
    return;
  }
  LockQuery query{.prefix = std::string(request.parameter("prefix").value_or("")), .limit = *limit};
  if (const auto after = request.parameter("after")) {
    auto place = parse_position(*after);
    if (!place) {
      reply(bad(place.error()));
      return;
    }
    query.after = *std::move(place);
  }
  look(
      request, std::move(reply),
      [query = std::move(query)](const View& view) { return copy_locks(view, query); },
      [](const LockPage& page) { return json(write(page)); });
}

void Router::lock(const Request& request, std::string_view name, Reply reply) const {
  const auto kind = request.parameter("kind").value_or("name");
  if (kind != "name" && kind != "space") {
    reply(bad({.code = Errc::invalid_argument, .detail = "kind: name or space"}));
    return;
  }
  const core::Place place{.name = std::string(name),
                          .kind = kind == "space" ? core::PlaceKind::space : core::PlaceKind::name};
  look(
      request, std::move(reply),
      [place](const View& view) { return copy_lock(view, place, in_full); },
      [](const std::optional<LockRecord>& found) {
        return found ? json(write(*found)) : not_found("nobody holds it and nobody waits for it");
      });
}

void Router::leases(const Request& request, Reply reply) const {
  const auto limit = page_limit(request);
  const auto after = parse_count(request.parameter("after").value_or("0"));
  if (!limit || !after) {
    reply(bad(limit ? after.error() : limit.error()));
    return;
  }
  look(
      request, std::move(reply),
      [limit = *limit, after = core::LeaseId{*after}](const View& view) {
        return copy_leases(view, after, limit);
      },
      [](const LeasePage& page) { return json(write(page)); });
}

void Router::lease(const Request& request, std::string_view id, Reply reply) const {
  const auto number = parse_count(id);
  if (!number) {
    reply(bad(number.error()));
    return;
  }
  look(
      request, std::move(reply),
      [wanted = core::LeaseId{*number}](const View& view) { return copy_lease(view, wanted); },
      [](const std::optional<LeaseRecord>& found) {
        return found ? json(write(*found)) : not_found("no such lease lives");
      });
}

}  // namespace tenure::server::http
