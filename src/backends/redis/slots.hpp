#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/reply.hpp"
#include "backends/url.hpp"

/// Slots and redirections of Redis Cluster, as its specification defines them.
namespace tenure::backends::redis {

/// Hash slot of a key.
using Slot = std::uint16_t;
/// Number of hash slots.
inline constexpr std::size_t slots_count = 16384;
/// Limit of the elements of a reply to CLUSTER SLOTS: each slot a range of its own (3 elements),
/// and 5 elements for each of up to 12 nodes; 3 + 12 × 5 = 63.
inline constexpr std::size_t table_elements_max = slots_count * 64;

/// Slot of a key: CRC-16 (XMODEM) of the text between the first '{' and the next '}', if it is not
/// empty, else of the whole key.
[[nodiscard]] Slot slot_of(std::string_view key);

/// For each slot a number N such that "{prefix:N}" hashes to it.
using SlotTags = std::array<std::uint32_t, slots_count>;
/// Searches the tags by trying about 200,000 numbers, which takes a few milliseconds.
[[nodiscard]] std::shared_ptr<const SlotTags> find_slot_tags(std::string_view prefix);

/// First key of an encoded script call (EVALSHA sha count key …); absent if it has none.
[[nodiscard]] std::optional<std::string_view> first_key_of(std::string_view command);

/// Assignment of slots to nodes.
struct SlotTable {
  /// Node that owns slots.
  struct Owner {
    /// Node id.
    std::string id{};
    /// Endpoint of the node.
    Endpoint endpoint{};

    friend bool operator==(const Owner&, const Owner&) = default;
  };
  /// Value of owner_of for a slot without an owner.
  static constexpr std::uint16_t unassigned = 0xFFFF;

  /// Nodes that own slots.
  std::vector<Owner> owners{};
  /// Index into `owners` for each slot.
  std::array<std::uint16_t, slots_count> owner_of = filled();
  /// Configuration epoch of the cluster as the queried node knows it; the higher one is newer.
  std::uint64_t epoch = 0;

 private:
  static constexpr std::array<std::uint16_t, slots_count> filled() {
    std::array<std::uint16_t, slots_count> all{};
    all.fill(unassigned);
    return all;
  }
};

/// Parses a reply to CLUSTER SLOTS; absent if it is invalid. `host`: of the queried node, which may
/// omit its own.
[[nodiscard]] std::optional<SlotTable> table_from(const Reply& reply, const std::string& host);
/// Value of "cluster_current_epoch:" in a reply to CLUSTER INFO.
[[nodiscard]] std::uint64_t epoch_from(std::string_view info);

/// Target of a redirect, such as "MOVED 3999 127.0.0.1:6381" or ASK.
struct Redirection {
  /// Slot of the key.
  Slot slot = 0;
  /// Node that serves the slot.
  Endpoint endpoint{};
};
/// Parses an error reply; absent if it is no redirect. `host`: of the replying node, which may omit
/// its own.
[[nodiscard]] std::optional<Redirection> redirection_from(std::string_view words,
                                                          const std::string& host);

}  // namespace tenure::backends::redis
