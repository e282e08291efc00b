// tenure lease: shows, grants, renews and revokes leases.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "cli/commands.hpp"
#include "cli/locks.hpp"
#include "cli/signals.hpp"
#include "sys/json_writer.hpp"
#include "sys/random.hpp"
#include "tenure/v1/lease.pb.h"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;

/// Writes the fields of a lease. Ids are strings in JSON, because they exceed 53 bits.
void write(sys::JsonWriter& json, const v1::Lease& lease) {
  json.id("lease", lease.id())
      .field("left_ms", std::uint64_t{lease.left_ms()})
      .field("ttl_ms", std::uint64_t{lease.ttl_ms()})
      .field("client", std::string_view(lease.client()))
      .field("user", std::string_view(lease.user()))
      .field("address", std::string_view(lease.address()))
      .field("hold_count", std::uint64_t{lease.hold_count()})
      .field("wait_count", std::uint64_t{lease.wait_count()});
}

/// Adds the row of a lease; the columns are those of lease_table().
void add_row(Table& table, const v1::Lease& lease) {
  table.add({std::to_string(lease.id()), plain(lease.client()),
             duration_cell(milliseconds(lease.left_ms())),
             duration_cell(milliseconds(lease.ttl_ms())), std::to_string(lease.hold_count()),
             std::to_string(lease.wait_count()), plain(lease.address())});
}

/// Shared by the list and by a single lease, so that scripts parse one format.
Table lease_table() {
  return Table({"LEASE", "CLIENT", "TIME LEFT", "TTL", "LOCKS", "WAITS", "ADDRESS"});
}

/// Lease id from the command line.
Result<std::uint64_t> id_of(const Arguments& arguments) {
  return parse_number(arguments.words.front(), std::numeric_limits<std::uint64_t>::max());
}

/// Writes the holds or the waits of a lease as an array.
void write_attachments(sys::JsonWriter& json, std::string_view key,
                       const google::protobuf::RepeatedPtrField<v1::LeaseAttachment>& all,
                       const Service& service) {
  json.key(key).begin_array();
  for (const auto& one : all) {
    json.begin_object().field("name", std::string_view(service.without_prefix(one.item().name())));
    write_mode(json, one.item());
    json.id("token", one.fencing_token()).end_object();
  }
  json.end_array();
}

/// Renews once; returns the remaining TTL.
Result<milliseconds> renewed(Service& service, std::uint64_t id) {
  v1::LeaseKeepAliveRequest request;
  request.set_id(id);
  const auto answer =
      service.ask<v1::LeaseKeepAliveResponse>("LockService/LeaseKeepAlive", request);
  if (!answer) {
    return std::unexpected(answer.error());
  }
  // The protocol reports an unknown lease as a TTL of zero, not as an error.
  if (answer->ttl_ms() == 0) {
    return fail(Errc::lease_lost, "the lease " + std::to_string(id) + " has ended");
  }
  return milliseconds(answer->ttl_ms());
}

}  // namespace

int list_leases(const Arguments& arguments) {
  auto service = Service::open(arguments);
  if (!service) {
    return failed(service.error());
  }
  auto table = lease_table();
  sys::JsonWriter json;
  json.begin_array();
  v1::LeasesRequest request;
  // Pages: a reply with all leases would exceed the limit of a message. The id of the last lease is
  // the position, so leases that end in between disturb nothing.
  for (bool is_more = true; is_more;) {
    const auto page = service->ask<v1::LeasesResponse>("LockService/Leases", request);
    if (!page) {
      return failed(page.error());
    }
    for (const auto& lease : page->leases()) {
      add_row(table, lease);
      json.begin_object();
      write(json, lease);
      json.end_object();
      request.set_after(lease.id());
    }
    // An empty page that promises more would be an endless loop.
    is_more = page->more() && page->leases_size() > 0;
  }
  print(format_of(arguments) == Format::json ? json.end_array().text() + "\n" : table.text());
  return code(ExitCode::done);
}

int show_lease(const Arguments& arguments) {
  auto service = Service::open(arguments);
  const auto id = id_of(arguments);
  if (!service || !id) {
    return failed(!service ? service.error() : id.error());
  }
  v1::LeaseTimeToLiveRequest request;
  request.set_id(*id);
  // Also the locks that the lease holds and waits for.
  request.set_keys(true);
  const auto answer =
      service->ask<v1::LeaseTimeToLiveResponse>("LockService/LeaseTimeToLive", request);
  if (!answer && answer.error() == Errc::lease_lost) {
    return failed({Errc::lease_lost, "the lease " + std::to_string(*id) +
                                         " is unknown: it has ended or never existed"});
  }
  if (!answer) {
    return failed(answer.error());
  }
  if (format_of(arguments) == Format::json) {
    sys::JsonWriter json;
    json.begin_object();
    write(json, answer->lease());
    write_attachments(json, "held", answer->held(), *service);
    write_attachments(json, "waiting", answer->waiting(), *service);
    print(json.end_object().text() + "\n");
    return code(ExitCode::done);
  }
  auto table = lease_table();
  add_row(table, answer->lease());
  print(table.text());
  for (const auto& held : answer->held()) {
    // One line for each lock, which begins with its relation to the lease.
    print("holds\t" + plain(service->without_prefix(held.item().name())) + "\t" +
          mode_text(held.item()) + "\t" + std::to_string(held.fencing_token()) + "\n");
  }
  for (const auto& waiting : answer->waiting()) {
    print("waits\t" + plain(service->without_prefix(waiting.item().name())) + "\t" +
          mode_text(waiting.item()) + "\n");
  }
  return code(ExitCode::done);
}

int grant_lease(const Arguments& arguments) {
  auto service = Service::open(arguments);
  const auto ttl = arguments.duration("--ttl");
  if (!service || !ttl) {
    return failed(!service ? service.error() : ttl.error());
  }
  v1::LeaseGrantRequest request;
  // Chosen here, so that a repetition after a lost reply returns the same lease.
  request.set_id(sys::random_id());
  request.set_request_id(sys::random_id());
  // 0 selects the default TTL of the server.
  request.set_ttl_ms(static_cast<std::uint64_t>(ttl->value_or(milliseconds(0)).count()));
  request.set_client(arguments.text("--owner").value_or(""));
  const auto answer = service->ask<v1::LeaseGrantResponse>("LockService/LeaseGrant", request);
  if (!answer) {
    return failed(answer.error());
  }
  sys::JsonWriter json;
  json.begin_object()
      .id("lease", answer->id())
      .field("ttl_ms", std::uint64_t{answer->ttl_ms()})
      .end_object();
  // Only the id, so that `lease=$(tenure lease grant)` needs no parsing.
  print((format_of(arguments) == Format::json ? json.text() : std::to_string(answer->id())) + "\n");
  return code(ExitCode::done);
}

int keep_lease(const Arguments& arguments) {
  const Signals signals;
  auto service = Service::open(arguments);
  const auto id = id_of(arguments);
  if (!service || !id) {
    return failed(!service ? service.error() : id.error());
  }
  std::stop_source stop;
  // A signal ends the renewals only. The lease expires after its TTL, or is revoked by `tenure
  // lease revoke`.
  const TerminationWatch termination(signals, [&](int) { stop.request_stop(); });
  std::mutex mutex;
  std::condition_variable_any ended;
  while (!stop.stop_requested()) {
    const auto ttl = renewed(*service, *id);
    if (!ttl) {
      return failed(ttl.error());
    }
    if (format_of(arguments) == Format::json) {
      sys::JsonWriter json;
      json.begin_object()
          .id("lease", *id)
          .field("left_ms", static_cast<std::uint64_t>(ttl->count()))
          .end_object();
      print(json.text() + "\n");
    } else if (format_of(arguments) == Format::table) {
      print(std::to_string(*id) + "\t" + duration_cell(*ttl) + "\n");
    }
    // After the first renewal: its failure is the exit code.
    if (arguments.has("--once")) {
      break;
    }
    std::unique_lock lock(mutex);
    // At each third of the TTL, so that a renewal that a failover delays still arrives in time.
    ended.wait_for(lock, stop.get_token(), *ttl / 3, [] { return false; });
  }
  return code(ExitCode::done);
}

int revoke_lease(const Arguments& arguments) {
  auto service = Service::open(arguments);
  const auto id = id_of(arguments);
  if (!service || !id) {
    return failed(!service ? service.error() : id.error());
  }
  v1::LeaseRevokeRequest request;
  request.set_id(*id);
  const auto answer = service->ask<v1::LeaseRevokeResponse>("LockService/LeaseRevoke", request);
  if (!answer) {
    return failed(answer.error());
  }
  if (format_of(arguments) == Format::json) {
    sys::JsonWriter json;
    json.begin_object().id("lease", *id).field("is_revoked", true).end_object();
    print(json.text() + "\n");
  }
  return code(ExitCode::done);
}

}  // namespace tenure::cli
