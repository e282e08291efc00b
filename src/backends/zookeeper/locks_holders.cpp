#include <algorithm>
#include <set>

#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/errors.hpp"
#include "backends/zookeeper/locks.hpp"
#include "backends/zookeeper/node_value.hpp"
#include "backends/zookeeper/paths.hpp"

// Query for the current holders of a name.

namespace tenure::backends::zookeeper {
namespace {

/// Maximum number of holders in one result: each costs a read.
constexpr std::size_t holders_max = 1000;

/// Nodes at the front of the queue that hold the lock together.
std::vector<std::string_view> front_of(const std::vector<std::string_view>& names) {
  std::vector<std::pair<Ticket, std::string_view>> queue;
  for (const auto name : names) {
    if (const auto ticket = ticket_of(name); ticket && ticket->kind != Kind::lease) {
      queue.emplace_back(*ticket, name);
    }
  }
  const auto origin = queue.empty() ? Sequence{} : queue.front().first.sequence;
  std::ranges::sort(queue, {}, [&](const auto& one) {
    return std::pair(distance(origin, one.first.sequence), one.second);
  });
  std::vector<std::string_view> front;
  for (const auto& [ticket, name] : queue) {
    if (front.empty() || !is_exclusive(ticket.kind)) {
      front.push_back(name);
    }
    if (is_exclusive(ticket.kind)) {
      break;
    }
  }
  return front;
}

}  // namespace

struct Locks::HoldersQuery {
  std::string folder{};
  Backend::Done<std::vector<Holder>> done{};
  std::vector<Holder> found{};
  std::set<RequestKey> seen{};
  std::vector<std::string> paths{};
  std::size_t parts_left = 0;
};

void Locks::fail_query(HoldersQuery& query) {
  environment_.deferred.complete(std::move(query.done),
                                 fail(Errc::unavailable, "the session at ZooKeeper ended"));
}

void Locks::holders(const std::string& name, Backend::Done<std::vector<Holder>> done) {
  if (main_slot_ == 0) {
    environment_.deferred.complete(std::move(done),
                                   fail(Errc::unavailable, "no ZooKeeper session; retry"));
    return;
  }
  const Number number = ++last_number_;
  const auto query = std::make_shared<HoldersQuery>();
  query->folder = folder_of(environment_.address.chroot, name);
  query->done = std::move(done);
  queries_.emplace(number, query);
  auto& session = *slots_.at(main_slot_).session;
  if (session.is_connected()) {
    // The sync makes the list include everything acknowledged before.
    session.connection().sync([](const Reply&) {});
  }
  session.list(query->folder, Connection::Watch::no, [this, number](const Reply& reply) {
    const auto it = queries_.find(number);
    if (it == queries_.end()) {
      return;
    }
    if (reply.code != ZOK && reply.code != ZNONODE) {
      auto requested = queries_.extract(it).mapped();
      environment_.deferred.complete(std::move(requested->done),
                                     std::unexpected(error_from(reply.code, requested->folder)));
      return;
    }
    for (const auto one : front_of(reply.names)) {
      it->second->paths.push_back(it->second->folder + '/' + std::string(one));
    }
    query_permits(number);
  });
}

void Locks::query_permits(Number number) {
  const auto leases = leases_of(queries_.at(number)->folder);
  slots_.at(main_slot_)
      .session->list(leases, Connection::Watch::no, [this, number, leases](const Reply& reply) {
        const auto it = queries_.find(number);
        if (it == queries_.end()) {
          return;
        }
        for (const auto name : reply.names) {
          const auto ticket = ticket_of(name);
          if (ticket && ticket->kind == Kind::lease) {
            it->second->paths.push_back(leases + '/' + std::string(name));
          }
        }
        query_each(number);
      });
}

void Locks::query_each(Number number) {
  const auto query = queries_.at(number);
  query->paths.resize(std::min(query->paths.size(), holders_max));
  query->parts_left = query->paths.size() + 1;
  const auto part_done = [this, number] {
    const auto it = queries_.find(number);
    if (it == queries_.end() || --it->second->parts_left > 0) {
      return;
    }
    const auto ended = queries_.extract(it).mapped();
    environment_.deferred.complete(std::move(ended->done), std::move(ended->found));
  };
  for (const auto& path : query->paths) {
    slots_.at(main_slot_).session->get(path, [query, part_done](const Reply& reply) {
      auto value = read_value(reply.value);
      const bool is_ours = value.lease != LeaseId{};
      // Several permits of one request count as one holder.
      if (reply.code == ZOK &&
          (!is_ours ||
           query->seen.insert({.lease = value.lease, .request = value.request}).second)) {
        query->found.push_back({.owner = std::move(value.owner),
                                .token = FencingToken{static_cast<std::uint64_t>(reply.czxid)},
                                .lease = value.lease,
                                .metadata = std::move(value.metadata)});
      }
      part_done();
    });
  }
  part_done();
}

}  // namespace tenure::backends::zookeeper
