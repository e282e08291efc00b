#include "server/http/record_json.hpp"

#include <array>
#include <charconv>

#include "server/config/settings.hpp"

namespace tenure::server::http {
namespace {

/// An array of records, each written by `write_record`.
template <class Records, class Write>
void write_all(sys::JsonWriter& json, std::string_view key, const Records& records,
               Write write_record) {
  json.array(key, [&] {
    for (const auto& record : records) {
      write_record(json, record);
    }
  });
}

// Strings that clients chose are written with bytes(): they may contain any bytes.
void write_hold(sys::JsonWriter& json, const HoldRecord& hold) {
  json.object([&] {
    json.bytes("owner", hold.owner);
    json.bytes("user", hold.user);
    json.field("lease", hold.lease);
    json.field("request", hold.request);
    json.field("token", hold.token);
    write_claim(json, hold.claim);
    json.field("create_revision", hold.create_revision);
    json.field("held_for_ms", in_ms(hold.held_for));
    json.field("count", hold.count);
    json.bytes("metadata", hold.metadata);
  });
}

void write_wait(sys::JsonWriter& json, const WaitRecord& wait) {
  json.object([&] {
    // 0: copied for a lease, without the queue of the lock.
    if (wait.position > 0) {
      json.field("position", wait.position);
    }
    json.bytes("owner", wait.owner);
    json.bytes("user", wait.user);
    json.field("lease", wait.lease);
    json.field("request", wait.request);
    json.field("ticket", wait.ticket);
    if (wait.predecessor) {
      json.field("predecessor", *wait.predecessor);
    }
    write_claim(json, wait.claim);
    json.field("waited_ms", in_ms(wait.waited));
    json.field("is_upgrade", wait.is_upgrade);
    json.bytes("metadata", wait.metadata);
  });
}

/// A lock with a capacity is a semaphore. Names and spaces are separate namespaces.
std::string_view kind_of(const LockRecord& lock) {
  if (lock.resource.kind == core::ResourceKind::space) {
    return "space";
  }
  return lock.capacity > 0 ? "semaphore" : "lock";
}

void write_lock(sys::JsonWriter& json, const LockRecord& lock) {
  json.object([&] {
    json.bytes("name", lock.resource.name.view());
    json.field("kind", kind_of(lock));
    if (lock.capacity > 0) {
      json.field("capacity", lock.capacity);
    }
    json.field("create_revision", lock.create_revision);
    json.field("mod_revision", lock.mod_revision);
    json.field("version", lock.version);
    json.field("holder_count", lock.holder_count);
    json.field("waiter_count", lock.waiter_count);
    write_all(json, "holders", lock.holders, write_hold);
    // Listings copy no queue; an empty array would suggest that nothing waits.
    if (!lock.queue.empty()) {
      write_all(json, "queue", lock.queue, write_wait);
    }
  });
}

void write_resource(sys::JsonWriter& json, const core::Resource& resource) {
  json.bytes("name", resource.name.view());
  json.field("kind", resource.kind == core::ResourceKind::space ? "space" : "lock");
}

void write_cycle(sys::JsonWriter& json, const DeadlockRecord& deadlock) {
  const auto& cycle = deadlock.cycle;
  json.array("cycle", [&] {
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      json.object([&] {
        json.field("lease", cycle[i].lease);
        json.field("request", cycle[i].request);
        json.bytes("owner", cycle[i].owner);
        write_resource(json, cycle[i].resource);
        if (deadlock.holds_previous[i]) {
          const auto& previous = cycle[(i + cycle.size() - 1) % cycle.size()];
          json.object("held", [&] { write_resource(json, previous.resource); });
        }
      });
    }
  });
}

void write_lease(sys::JsonWriter& json, const LeaseRecord& lease) {
  json.object([&] {
    json.field("lease", lease.id);
    json.bytes("client", lease.client);
    json.bytes("user", lease.user);
    json.bytes("address", lease.address);
    json.field("ttl_ms", in_ms(lease.ttl));
    json.field("left_ms", in_ms(lease.left));
    json.field("lived_ms", in_ms(lease.lived));
    json.field("seen_ago_ms", in_ms(lease.seen_ago));
    json.field("create_revision", lease.create_revision);
    json.field("hold_count", lease.hold_count);
    json.field("wait_count", lease.wait_count);
    if (!lease.locks.empty()) {
      write_all(json, "locks", lease.locks, write_lock);
    }
  });
}

void write_log(sys::JsonWriter& json, const LogPosition& log) {
  json.object("log", [&] {
    json.id("leader", log.leader);
    json.bytes("leader_address", log.leader_address);
    json.id("term", log.term);
    json.id("commit_index", log.commit_index);
    json.id("applied_index", log.applied_index);
    json.id("first_index", log.first_index);
    json.id("last_index", log.last_index);
    json.id("snapshot_index", log.snapshot_index);
    json.field("log_bytes", log.log_bytes);
    json.field("snapshot_bytes", log.snapshot_bytes);
    json.field("has_space", log.has_space);
  });
}

void write_member(sys::JsonWriter& json, const MemberStatus& member, const LogPosition& log) {
  json.object([&] {
    json.id("member", member.id);
    json.field("is_voter", member.is_voter);
    json.field("is_leader", member.id == log.leader);
    json.bytes("peer_address", member.peer_address);
    json.bytes("client_address", member.client_address);
    // 0: not connected, so its version is unknown.
    if (member.newest_version != 0) {
      json.id("newest_version", member.newest_version);
    }
    // Only the leader knows the replication progress of the others.
    if (log.is_leader) {
      json.id("match_index", member.match_index);
      json.field("silent_ms", member.silent.count());
    }
  });
}

void write_counts(sys::JsonWriter& json, const StatusRecord& status) {
  json.object("counts", [&] {
    json.field("locks", status.locks);
    json.field("holds", status.holds);
    json.field("waits", status.waits);
    json.field("leases", status.leases);
    json.field("events", status.events);
  });
}

/// Writes the limits under the names of their settings, so that a new limit appears without a
/// change here.
void write_limits(sys::JsonWriter& json, const core::Limits& limits) {
  Config config;
  config.limits = limits;
  json.object("limits", [&] {
    for (const auto& setting : settings()) {
      if (setting.section() == "limits") {
        json.field(setting.name(), std::string_view(setting.print(config)));
      }
    }
  });
}

/// Value of `next` for a position.
template <class Position>
std::string print(const Position& position) {
  if constexpr (std::is_same_v<Position, core::Resource>) {
    return print_position(position);
  } else {
    return std::to_string(position.get());
  }
}

template <class Page, class Write>
std::string write_page(std::string_view key, const Page& page, Write write_record) {
  sys::JsonWriter json;
  json.object([&] {
    json.field("revision", page.revision);
    write_all(json, key, page.records, write_record);
    if (page.next) {
      json.field("next", std::string_view(print(*page.next)));
    }
  });
  return json.take() + '\n';
}

}  // namespace

void write_claim(sys::JsonWriter& json, const core::Claim& claim) {
  if (const auto* whole = std::get_if<core::Whole>(&claim)) {
    json.field("mode", tenure::to_string(whole->mode));
  } else if (const auto* permits = std::get_if<core::Permits>(&claim)) {
    json.field("permits", permits->wanted);
  } else {
    const auto& keys = std::get<core::Keys>(claim);
    json.field("mode", tenure::to_string(keys.mode));
    json.object("range", [&] {
      json.bytes("start", keys.range.start());
      if (keys.range.end()) {
        json.bytes("end", *keys.range.end());
      }
    });
  }
}

std::string write(const LockPage& page) {
  return write_page("locks", page, write_lock);
}

std::string write(const LeasePage& page) {
  return write_page("leases", page, write_lease);
}

std::string write(const LockRecord& lock) {
  sys::JsonWriter json;
  write_lock(json, lock);
  return json.take() + '\n';
}

std::string write(const LeaseRecord& lease) {
  sys::JsonWriter json;
  write_lease(json, lease);
  return json.take() + '\n';
}

std::string write(const StatusRecord& status, const ServerFacts& facts) {
  const auto uptime = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - facts.started);
  sys::JsonWriter json;
  json.object([&] {
    json.id("cluster", facts.identity.cluster);
    json.id("member", facts.identity.member);
    json.field("name", facts.name);
    json.field("labels", facts.labels);
    json.field("version", facts.version);
    json.field("uptime_ms", uptime.count());
    json.field("role", status.log.is_leader ? "leader" : "follower");
    json.field("revision", status.revision);
    json.field("compact_revision", status.compact_revision);
    json.field("cluster_time_ms", in_ms(status.now));
    write_log(json, status.log);
    write_counts(json, status);
    write_limits(json, status.limits);
  });
  return json.take() + '\n';
}

std::string write(const ClusterRecord& cluster, const ServerFacts& facts) {
  const auto& log = cluster.log;
  sys::JsonWriter json;
  json.object([&] {
    json.id("cluster", facts.identity.cluster);
    json.id("member", facts.identity.member);
    json.field("role", log.is_leader ? "leader" : "follower");
    json.id("leader", log.leader);
    json.bytes("leader_address", log.leader_address);
    json.id("term", log.term);
    json.id("commit_index", log.commit_index);
    json.id("cluster_version", cluster.version.get());
    write_all(
        json, "members", cluster.members,
        [&](sys::JsonWriter& out, const MemberStatus& member) { write_member(out, member, log); });
  });
  return json.take() + '\n';
}

std::string write(const core::Event& event) {
  sys::JsonWriter json;
  json.object([&] {
    json.field("type", to_string(event.type));
    json.field("revision", event.revision);
    json.field("cluster_time_ms", in_ms(event.time));
    json.bytes("name", event.item.name.view());
    json.field("kind", event.item.kind() == core::ResourceKind::space ? "space" : "lock");
    write_claim(json, event.item.claim);
    json.field("lease", event.lease);
    json.field("request", event.request);
    // 0: the event concerns a wait, which has no token.
    if (event.token != core::FencingToken{}) {
      json.field("token", event.token);
    }
    json.bytes("owner", event.owner.view());
    json.bytes("user", event.user.view());
    json.bytes("metadata", event.metadata.view());
    if (event.type == core::EventType::forced) {
      json.bytes("operator", event.operator_name.view());
      json.bytes("reason", event.reason.view());
    }
  });
  return json.take();
}

std::string write(const GraphRecord& graph) {
  sys::JsonWriter json;
  json.object([&] {
    json.field("revision", graph.revision);
    json.field("waits", graph.waits);
    json.field("is_complete", graph.is_complete);
    write_all(json, "locks", graph.locks, write_lock);
  });
  return json.take() + '\n';
}

std::string write(const TokenRecord& token) {
  // In the order of TokenVerdict.
  constexpr std::array<std::string_view, 4> verdicts{"held", "superseded", "ended", "never_given"};
  sys::JsonWriter json;
  json.object([&] {
    json.field("verdict", verdicts[static_cast<std::size_t>(token.verdict)]);
    json.field("newest_token", token.newest);
    json.bytes("owner", token.owner);
    json.field("revision", token.revision);
  });
  return json.take() + '\n';
}

std::string write(const DeadlockPage& page) {
  sys::JsonWriter json;
  json.object([&] {
    write_all(json, "deadlocks", page.records,
              [&](sys::JsonWriter& out, const DeadlockRecord& deadlock) {
                out.object([&] {
                  out.field("revision", deadlock.revision);
                  out.field("cluster_time_ms", in_ms(deadlock.time));
                  out.field("ago_ms", in_ms(page.now - deadlock.time));
                  write_cycle(out, deadlock);
                });
              });
  });
  return json.take() + '\n';
}

std::string write(const RequestRights& rights) {
  sys::JsonWriter json;
  json.object([&] {
    json.field("may_force", rights.may_force);
    json.field("force_reason", rights.force_reason);
    json.field("may_lock", rights.may_lock);
    json.field("lock_reason", rights.lock_reason);
    json.field("may_administer", rights.may_administer);
    json.field("administer_reason", rights.administer_reason);
    json.field("has_users", rights.has_users);
    json.field("user", rights.user);
    json.field("needs_secret", rights.needs_secret);
    json.field("lock_needs_secret", rights.lock_needs_secret);
    write_all(json, "rights", rights.rules, [](sys::JsonWriter& out, const auth::Rule& rule) {
      out.object([&] {
        out.bytes("prefix", rule.prefix);
        out.field("level", auth::to_string(rule.level));
      });
    });
  });
  return json.take() + '\n';
}

std::string print_position(const core::Resource& resource) {
  std::string out = resource.kind == core::ResourceKind::space ? "s" : "n";
  constexpr std::string_view digits = "0123456789abcdef";
  for (const auto byte : resource.name.view()) {
    out += digits[static_cast<std::uint8_t>(byte) >> 4U];
    out += digits[static_cast<std::uint8_t>(byte) & 15U];
  }
  return out;
}

Result<core::Resource> parse_position(std::string_view text) {
  const auto wrong = [] { return fail(Errc::invalid_argument, "after: not a value of `next`"); };
  // One character for the kind and two per byte; the odd size also excludes the empty string.
  if (text.size() % 2 != 1 || (text[0] != 's' && text[0] != 'n')) {
    return wrong();
  }
  std::string name;
  for (std::size_t i = 1; i < text.size(); i += 2) {
    std::uint8_t byte = 0;
    const auto* end = text.data() + i + 2;
    const auto [stop, error] = std::from_chars(text.data() + i, end, byte, 16);
    if (error != std::errc{} || stop != end) {
      return wrong();
    }
    name += static_cast<char>(byte);
  }
  return core::Resource{
      .name = name, .kind = text[0] == 's' ? core::ResourceKind::space : core::ResourceKind::name};
}

std::string_view front_page() {
  return "tenured\n"
         "\n"
         "GET /                                    the dashboard, for a browser\n"
         "GET /healthz                             the process is alive\n"
         "GET /readyz                              ready to serve; 503 with the reason if not\n"
         "GET /metrics                             Prometheus metrics\n"
         "GET /v1/openapi.json                     OpenAPI document\n"
         "GET /v1/status                           state of this member, its log and limits\n"
         "GET /v1/cluster                          members and leader\n"
         "GET /v1/locks?prefix=&limit=&after=      locks with holders or waiters\n"
         "GET /v1/locks/NAME                       one lock with its queue (?kind=space)\n"
         "GET /v1/leases?limit=&after=             live leases\n"
         "GET /v1/leases/ID                        one lease with its holds and waits\n"
         "GET /v1/graph                            wait-for graph\n"
         "GET /v1/deadlocks                        latest deadlocks\n"
         "GET /v1/history?after=                   rates and latencies of the last 10 minutes\n"
         "GET /v1/rights                           user and rights of this request\n"
         "POST /v1/login                           exchanges a token or the secret for a cookie\n"
         "POST /v1/logout                          ends the login session\n"
         "POST /v1/locks/NAME:acquire              acquires a lock, with a given or a new lease\n"
         "POST /v1/locks/NAME:release              releases the lock\n"
         "POST /v1/locks/NAME:extend               renews the lock\n"
         "POST /v1/leases                          grants a lease for several locks\n"
         "POST /v1/leases/ID:renew, :revoke        renews or ends a lease with its locks\n"
         "POST /v1/tokens:check                    checks a fencing token\n"
         "POST /v1/locks/NAME:force-release?token= releases a lock on behalf of its holders\n"
         "POST /v1/cluster/members                 adds a member\n"
         "POST /v1/cluster/members/ID:remove       removes a member\n"
         "POST /v1/cluster:transfer-leadership     transfers the leadership\n"
         "POST /v1/cluster:reload                  reloads users and certificates\n"
         "GET /v1/watch?prefix=&start_revision=    events as server-sent events\n";
}

std::string_view to_string(core::EventType type) noexcept {
  constexpr std::array<std::string_view, 9> names{"queued",    "granted",  "released",
                                                  "expired",   "revoked",  "forced",
                                                  "abandoned", "deadlock", "downgraded"};
  // A new event type must get a name here.
  static_assert(names.size() == static_cast<std::size_t>(core::last_event_type) + 1);
  return names[static_cast<std::size_t>(type)];
}

}  // namespace tenure::server::http
