#include <utility>
#include <variant>

#include "core/bytes.hpp"
#include "core/snapshot.hpp"
#include "core/snapshot_format.hpp"

namespace tenure::core {
namespace {

class Encoder {
 public:
  explicit Encoder(ByteWriter& out) : out_(out) {}

  void put(const State& state) {
    put(state.limits);
    put(state.revision);
    put(state.now);
    put(state.leases.last_id());
    put(state.events.compact_revision());
    put_all(state.leases.all());
    put_all(state.locks.holds());
    put_all(state.locks.waits());
    out_.number(state.locks.locks().size());
    for (const auto& [place, lock] : state.locks.locks()) {
      put(place);
      put(lock.create_revision);
      put(lock.mod_revision);
      out_.number(lock.version);
    }
    out_.number(state.events.all().size());
    for (const auto& event : state.events.all()) {
      put(event);
    }
  }

 private:
  template <class Tag>
  void put(const Strong<std::uint64_t, Tag>& id) {
    out_.number(id.get());
  }
  void put(ClusterTime time) { out_.number(static_cast<std::uint64_t>(time.count())); }

  template <class Map>
  void put_all(const Map& records) {
    out_.number(records.size());
    for (const auto& [id, record] : records) {
      put(record);
    }
  }

  void put(const Limits& limits) {
    for_each_limit(limits, [this](const auto& value) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, ClusterTime>) {
        put(value);
      } else {
        out_.number(value);
      }
    });
  }

  void put(const Place& place) {
    out_.text(place.name);
    out_.number(std::to_underlying(place.kind));
  }

  void put(LockMode mode) { out_.number(std::to_underlying(mode)); }

  void put(const Item& item) {
    out_.text(item.name);
    out_.number(item.claim.index());
    if (const auto* whole = std::get_if<Whole>(&item.claim)) {
      put(whole->mode);
    } else if (const auto* permits = std::get_if<Permits>(&item.claim)) {
      out_.number(permits->capacity);
      out_.number(permits->wanted);
    } else {
      const auto& keys = std::get<Keys>(item.claim);
      put(keys.mode);
      out_.text(keys.range.start());
      out_.number(keys.range.end() ? 1 : 0);
      if (keys.range.end()) {
        out_.text(*keys.range.end());
      }
    }
  }

  void put(const std::vector<Item>& items) {
    out_.number(items.size());
    for (const auto& item : items) {
      put(item);
    }
  }

  void put(const Lease& lease) {
    put(lease.id);
    put(lease.ttl);
    put(lease.deadline);
    put(lease.granted);
    put(lease.create_revision);
    put(lease.request);
    out_.text(lease.client);
    out_.text(lease.address);
    put(lease.last_seen);
    out_.number(lease.history.entries().size());
    for (const auto& [request, entry] : lease.history.entries()) {
      put(request);
      put(entry.since);
      out_.number(std::to_underlying(entry.life));
      put(entry.answer);
    }
  }

  void put(const Answer& answer) {
    out_.number(answer.index());
    if (const auto* waiting = std::get_if<Waiting>(&answer)) {
      put(waiting->ticket);
    } else if (const auto* granted = std::get_if<Granted>(&answer)) {
      put(granted->token);
      out_.number(granted->count);
    } else if (const auto* released = std::get_if<Released>(&answer)) {
      out_.number(released->count_left);
    } else {
      put(std::get<Refused>(answer));
    }
  }

  void put(const Refused& refused) {
    out_.number(static_cast<std::uint64_t>(refused.error.code));
    out_.text(refused.error.detail);
    out_.number(refused.cycle.size());
    for (const auto& step : refused.cycle) {
      put(step.lease);
      put(step.request);
      out_.text(step.owner);
      put(step.place);
    }
  }

  void put(const Hold& hold) {
    put(hold.token);
    put(hold.create_revision);
    put(hold.lease);
    put(hold.request);
    put(hold.items);
    out_.text(hold.owner);
    out_.text(hold.metadata);
    put(hold.acquired);
    out_.number(hold.count);
  }

  void put(const Wait& wait) {
    put(wait.ticket);
    put(wait.lease);
    put(wait.request);
    put(wait.items);
    out_.text(wait.owner);
    out_.text(wait.metadata);
    put(wait.since);
    put(wait.upgrades.value_or(FencingToken{}));
  }

  void put(const Event& event) {
    put(event.revision);
    put(event.time);
    out_.number(std::to_underlying(event.type));
    put(event.item);
    put(event.lease);
    put(event.request);
    put(event.token);
    out_.text(event.owner);
    out_.text(event.metadata);
  }

  ByteWriter& out_;
};

}  // namespace

std::string encode(const State& state) {
  ByteWriter body;
  Encoder(body).put(state);

  ByteWriter all;
  all.raw(snapshot_magic);
  all.fixed32(snapshot_version);
  all.fixed64(body.bytes().size());
  all.raw(body.bytes());
  all.fixed32(crc32c(all.bytes()));
  return std::move(all).take();
}

}  // namespace tenure::core
