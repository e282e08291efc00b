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
  explicit Encoder(std::string begin) : ValueWriter(std::move(begin)) {}
  using ValueWriter::take;

  void put(const Image& image) {
    version_ = image.version;
    put(image.limits, version_);
    put(image.revision);
    put(image.now);
    put(image.last_lease);
    put(image.compacted);
    put_all(image.leases);
    put_all(image.holds);
    put_all(image.waits);
    number(image.locks.size());
    for (const auto& [resource, lock] : image.locks) {
      const auto counters = lock.counters();
      put(resource);
      put(counters.create_revision);
      put(counters.mod_revision);
      number(counters.version);
    }
    number(image.events.size());
    for (const auto& event : image.events.in_order()) {
      put(event);
    }
    number(image.ended.size());
    for (const auto& origin : image.ended) {
      put(origin.id);
      put(origin.request);
      if (version_ >= version_2) {
        put(origin.ended);
      }
    }
    if (version_ >= version_2) {
      put(image.restoration);
    }
  }

 private:
  using ValueWriter::put;

  template <class Map>
  void put_all(const Map& records) {
    number(records.size());
    for (const auto& [id, record] : records) {
      put(*record);
    }
  }

  void put(const Restoration& restoration) {
    put(restoration.until);
    number(restoration.unconfirmed.size());
    for (const auto lease : restoration.unconfirmed) {
      put(lease);
    }
  }

  void put(const Lease& lease) {
    put(lease.id);
    put(lease.ttl);
    put(lease.deadline);
    put(lease.granted);
    put(lease.create_revision);
    put(lease.request);
    text(lease.client.view());
    text(lease.address.view());
    put(lease.last_seen);
    if (version_ >= version_2) {
      text(lease.user.view());
    }
    number(lease.history.size());
    lease.history.for_each([this](RequestId request, const History::Entry& entry) {
      put(request);
      put(entry.since);
      number(std::to_underlying(entry.life));
      if (version_ >= version_2) {
        put(entry.finished);
      }
      put(entry.answer);
    });
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
    } else if (const auto* set = std::get_if<TtlSet>(&answer)) {
      put(set->ttl);
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
      put(step.resource);
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
    text(wait.owner.view());
    text(wait.metadata.view());
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
    text(event.owner.view());
    text(event.metadata.view());
    if (version_ >= version_2) {
      text(event.user.view());
      text(event.operator_name.view());
      text(event.reason.view());
    }
  }

  ClusterVersion version_;
};

}  // namespace

Image image_of(const State& state) {
  return {.version = state.version,
          .limits = state.limits,
          .revision = state.revision,
          .now = state.now,
          .last_lease = state.leases.last_id(),
          .compacted = state.events.compact_revision(),
          .leases = state.leases.all(),
          .holds = state.locks.holds(),
          .waits = state.locks.waits(),
          .locks = state.locks.locks(),
          .events = state.events.all(),
          .ended = state.leases.ended(),
          .restoration = state.restoration};
}

std::string encode(const Image& image) {
  ByteWriter head;
  head.raw(snapshot_magic);
  head.fixed32(snapshot_format(image.version));
  // Patches the length after the body is written: the body may be too large to encode it twice.
  head.fixed64(0);
  Encoder encoder(std::move(head).take());
  encoder.put(image);

  auto all = std::move(encoder).take();
  ByteWriter length;
  length.fixed64(all.size() - snapshot_head_bytes);
  all.replace(snapshot_head_bytes - length.bytes().size(), length.bytes().size(), length.bytes());
  ByteWriter checksum;
  checksum.fixed32(crc32c(all));
  return all += checksum.bytes();
}

}  // namespace tenure::core
