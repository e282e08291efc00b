#include <utility>
#include <variant>

#include "core/bytes.hpp"
#include "core/snapshot.hpp"
#include "core/snapshot_format.hpp"
#include "core/value_writer.hpp"

namespace tenure::core {
namespace {

class Encoder : private ValueWriter {
 public:
  using ValueWriter::take;

  void put(const State& state) {
    put(state.limits);
    put(state.revision);
    put(state.now);
    put(state.leases.last_id());
    put(state.events.compact_revision());
    put_all(state.leases.all());
    put_all(state.locks.holds());
    put_all(state.locks.waits());
    number(state.locks.locks().size());
    for (const auto& [place, lock] : state.locks.locks()) {
      put(place);
      put(lock.create_revision());
      put(lock.mod_revision());
      number(lock.version());
    }
    number(state.events.all().size());
    for (const auto& event : state.events.all()) {
      put(event);
    }
  }

 private:
  using ValueWriter::put;

  template <class Map>
  void put_all(const Map& records) {
    number(records.size());
    for (const auto& [id, record] : records) {
      put(record);
    }
  }

  void put(const Lease& lease) {
    put(lease.id);
    put(lease.ttl);
    put(lease.deadline);
    put(lease.granted);
    put(lease.create_revision);
    put(lease.request);
    text(lease.client);
    text(lease.address);
    put(lease.last_seen);
    number(lease.history.entries().size());
    for (const auto& [request, entry] : lease.history.entries()) {
      put(request);
      put(entry.since);
      number(std::to_underlying(entry.life));
      put(entry.answer);
    }
  }

  void put(const Answer& answer) {
    number(answer.index());
    if (const auto* waiting = std::get_if<Waiting>(&answer)) {
      put(waiting->ticket);
    } else if (const auto* granted = std::get_if<Granted>(&answer)) {
      put(granted->token);
      number(granted->count);
    } else if (const auto* released = std::get_if<Released>(&answer)) {
      number(released->count_left);
    } else if (const auto* downgraded = std::get_if<Downgraded>(&answer)) {
      put(downgraded->mode);
    } else {
      put(*std::get<Box<Refused>>(answer));
    }
  }

  void put(const Refused& refused) {
    number(static_cast<std::uint64_t>(refused.error.code));
    text(refused.error.detail);
    number(refused.cycle.size());
    for (const auto& step : refused.cycle) {
      put(step.lease);
      put(step.request);
      text(step.owner);
      put(step.place);
    }
  }

  void put(const Hold& hold) {
    put(hold.token);
    put(hold.create_revision);
    put(hold.lease);
    put(hold.request);
    put(hold.items);
    text(hold.owner.view());
    text(hold.metadata.view());
    put(hold.acquired);
    number(hold.count);
  }

  void put(const Wait& wait) {
    put(wait.ticket);
    put(wait.lease);
    put(wait.request);
    put(wait.items);
    text(wait.owner);
    text(wait.metadata);
    put(wait.since);
    put(wait.upgrades.value_or(FencingToken{}));
  }

  void put(const Event& event) {
    put(event.revision);
    put(event.time);
    number(std::to_underlying(event.type));
    put(event.item);
    put(event.lease);
    put(event.request);
    put(event.token);
    text(event.owner);
    text(event.metadata);
  }
};

}  // namespace

std::string encode(const State& state) {
  Encoder encoder;
  encoder.put(state);
  const auto body = std::move(encoder).take();

  ByteWriter all;
  all.raw(snapshot_magic);
  all.fixed32(snapshot_version);
  all.fixed64(body.size());
  all.raw(body);
  all.fixed32(crc32c(all.bytes()));
  return std::move(all).take();
}

}  // namespace tenure::core
