#include <utility>
#include <variant>

#include "core/batch.hpp"
#include "core/value_reader.hpp"

namespace tenure::core {
namespace {

/// Mirror image of Encoder in batch_write.cpp: reads the same fields in the same order. Range
/// checks only; the state machine validates the commands when it applies them.
class Decoder : private ValueReader {
 public:
  explicit Decoder(std::string_view bytes) : ValueReader(bytes) {}

  Result<Batch> run() {
    Batch batch;
    batch.version = id<ClusterVersion>();
    // Checked before any other field: a newer version may encode even the stamp differently.
    if (ok() && (batch.version < oldest_version || batch.version > newest_version)) {
      return fail(batch.version > newest_version ? Errc::unsupported : Errc::invalid_argument,
                  "batch: version " + std::to_string(batch.version.get()) +
                      " is not known here; this program reads versions " +
                      std::to_string(oldest_version.get()) + " to " +
                      std::to_string(newest_version.get()));
    }
    version_ = batch.version;
    batch.stamp.time = any_time();
    batch.stamp.revision = id<Revision>();
    repeat([&] { batch.commands.push_back(command()); });
    expect_end();
    if (!ok()) {
      return fail(Errc::invalid_argument, "batch: " + error());
    }
    return batch;
  }

 private:
  // Fails to compile when a command is added, so that the switch below cannot forget it.
  static_assert(std::variant_size_v<Command> == 14, "a new command is read here, too");

  /// Kind of the last command that a version has.
  static std::uint64_t last_kind(ClusterVersion version) {
    // Version 1 ends with SetTtl. A later kind in a batch of version 1 is damage or a forgery.
    constexpr std::uint64_t last_of_version_1 = 11;
    return version < version_2 ? last_of_version_1 : std::variant_size_v<Command> - 1;
  }

  /// Reads the kind, which is the index in Command, and the fields. Kind 6 is Tick, which has no
  /// fields. After an error the kind is 0, all fields are read as zeros, and the sticky error
  /// discards the result.
  Command command() {
    switch (up_to(last_kind(version_), "the kind of a command")) {
      case 0: return acquire();
      case 1: return release();
      case 2: return abandon();
      case 3: return grant_lease();
      case 4: return renew_leases();
      case 5: return RevokeLease{id<LeaseId>()};
      case 7: return force_release();
      case 8: return Compact{id<Revision>()};
      case 9: return SetLimits{limits(version_)};
      case 10: return downgrade();
      case 11: return set_ttl();
      case 12: return SetClusterVersion{id<ClusterVersion>()};
      case 13: return confirm_holds();
      default: return Tick{};
    }
  }

  Acquire acquire() {
    Acquire command;
    command.lease = id<LeaseId>();
    command.request = id<RequestId>();
    command.items = items();
    command.queue = one_of(Queue::skip, "whether to wait");
    command.self_conflict = one_of(SelfConflict::reenter, "what to do when asked again");
    command.owner = text_view();
    command.metadata = text_view();
    return command;
  }

  Release release() {
    Release command;
    command.lease = id<LeaseId>();
    command.request = id<RequestId>();
    // Index of the variant Release::what: 0 is the token, 1 the target.
    if (up_to(1, "what to release") == 0) {
      command.what = id<FencingToken>();
    } else {
      command.what = target();
    }
    return command;
  }

  Target target() {
    Target target{.name = text()};
    if (up_to(1, "whether there is a range") == 1) {
      target.range = range();
    }
    return target;
  }

  Abandon abandon() {
    const auto lease = id<LeaseId>();
    return {.lease = lease, .request = id<RequestId>()};
  }

  GrantLease grant_lease() {
    GrantLease command;
    command.id = id<LeaseId>();
    command.request = id<RequestId>();
    command.ttl = any_time();
    command.client = text();
    command.address = text();
    if (version_ >= version_2) {
      command.user = text();
    }
    return command;
  }

  RenewLeases renew_leases() {
    RenewLeases command;
    repeat([&] { command.leases.push_back(id<LeaseId>()); });
    return command;
  }

  ForceRelease force_release() {
    ForceRelease command{.resource = resource()};
    if (up_to(1, "whether there is a token") == 1) {
      command.token = id<FencingToken>();
    }
    if (version_ >= version_2) {
      command.operator_name = text_view();
      command.reason = text_view();
    }
    return command;
  }

  Downgrade downgrade() {
    Downgrade command;
    command.lease = id<LeaseId>();
    command.request = id<RequestId>();
    command.token = id<FencingToken>();
    command.mode = mode();
    return command;
  }

  SetTtl set_ttl() {
    SetTtl command;
    command.lease = id<LeaseId>();
    command.request = id<RequestId>();
    command.ttl = any_time();
    return command;
  }

  ConfirmHolds confirm_holds() {
    ConfirmHolds command{.lease = id<LeaseId>()};
    repeat([&] { command.tokens.push_back(id<FencingToken>()); });
    return command;
  }

  ClusterVersion version_ = oldest_version;
};

}  // namespace

ClusterVersion version_of_batch(std::string_view bytes) {
  // Reads the first number only, so that a member can recognise entries that it cannot decode.
  ByteReader reader(bytes);
  const ClusterVersion version(reader.number());
  return reader.ok() ? version : ClusterVersion{};
}

Result<Batch> decode_batch(std::string_view bytes) {
  return Decoder(bytes).run();
}

}  // namespace tenure::core
