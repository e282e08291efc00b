#include <utility>
#include <variant>

#include "core/batch.hpp"
#include "core/value_writer.hpp"

namespace tenure::core {
namespace {

/// Writes a batch field by field. The order of fields is the log format: members replay entries
/// that older programs wrote, so fields are added only behind a check of the version.
class Encoder : private ValueWriter {
 public:
  using ValueWriter::take;

  void put(const Batch& batch) {
    version_ = batch.version;
    number(version_.get());
    put(batch.stamp.time);
    put(batch.stamp.revision);
    number(batch.commands.size());
    for (const auto& command : batch.commands) {
      number(command.index());
      std::visit([this](const auto& what) { put(what); }, command);
    }
  }

 private:
  using ValueWriter::put;

  void put(const Acquire& command) {
    put(command.lease);
    put(command.request);
    put(command.items);
    number(std::to_underlying(command.queue));
    number(std::to_underlying(command.self_conflict));
    text(command.owner.view());
    text(command.metadata.view());
  }

  void put(const Release& command) {
    put(command.lease);
    put(command.request);
    number(command.what.index());
    std::visit([this](const auto& what) { put(what); }, command.what);
  }

  void put(const Target& target) {
    text(target.name);
    number(target.range ? 1 : 0);
    if (target.range) {
      put(*target.range);
    }
  }

  void put(const Abandon& command) {
    put(command.lease);
    put(command.request);
  }

  void put(const GrantLease& command) {
    put(command.id);
    put(command.request);
    put(command.ttl);
    text(command.client);
    text(command.address);
    if (version_ >= version_2) {
      text(command.user);
    }
  }

  void put(const RenewLeases& command) {
    number(command.leases.size());
    for (const auto lease : command.leases) {
      put(lease);
    }
  }

  void put(const RevokeLease& command) { put(command.lease); }

  void put(const Tick&) {}

  void put(const ForceRelease& command) {
    put(command.resource);
    number(command.token ? 1 : 0);
    if (command.token) {
      put(*command.token);
    }
    if (version_ >= version_2) {
      text(command.operator_name.view());
      text(command.reason.view());
    }
  }

  void put(const Compact& command) { put(command.revision); }

  void put(const SetLimits& command) { put(command.limits, version_); }

  void put(const Downgrade& command) {
    put(command.lease);
    put(command.request);
    put(command.token);
    put(command.mode);
  }

  void put(const SetTtl& command) {
    put(command.lease);
    put(command.request);
    put(command.ttl);
  }

  void put(const SetClusterVersion& command) { put(command.version); }

  void put(const ConfirmHolds& command) {
    put(command.lease);
    number(command.tokens.size());
    for (const auto token : command.tokens) {
      put(token);
    }
  }

  ClusterVersion version_;
};

}  // namespace

std::string encode(const Batch& batch) {
  Encoder encoder;
  encoder.put(batch);
  auto bytes = std::move(encoder).take();
  // The log keeps the bytes until compaction: return the spare capacity.
  bytes.shrink_to_fit();
  return bytes;
}

}  // namespace tenure::core
