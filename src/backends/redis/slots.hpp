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

/// What a Redis Cluster specification says of keys and nodes.
namespace tenure::backends::redis {

using Slot = std::uint16_t;
inline constexpr std::size_t slots_count = 16384;
/// Elements of what CLUSTER SLOTS answers, at most: each slot a range of its own, which is three,
/// and five for each of up to twelve nodes that have it.
inline constexpr std::size_t table_elements_max = slots_count * 64;

/// The slot of a key: CRC-16 (XMODEM) of what stands between the first '{' and the next '}', if
/// there is anything, else of all of it.
[[nodiscard]] Slot slot_of(std::string_view key);

/// For each slot a number N for which "{prefix:N}" lies in it.
using SlotTags = std::array<std::uint32_t, slots_count>;
/// Tries about 200,000 numbers, which takes a few milliseconds.
[[nodiscard]] std::shared_ptr<const SlotTags> find_slot_tags(std::string_view prefix);

/// The first key of a script call as the wire has it (EVALSHA sha count key …); nothing if it has
/// none.
[[nodiscard]] std::optional<std::string_view> first_key_of(std::string_view command);

/// Which node has which slots.
struct SlotTable {
  struct Owner {
    std::string id{};
    Endpoint endpoint{};

    friend bool operator==(const Owner&, const Owner&) = default;
  };
  static constexpr std::uint16_t unassigned = 0xFFFF;

  std::vector<Owner> owners{};
  std::array<std::uint16_t, slots_count> owner_of = filled();  ///< An index into `owners`.
  std::uint64_t epoch = 0;  ///< Of the cluster, as that node knows it: the greater is newer.

 private:
  static constexpr std::array<std::uint16_t, slots_count> filled() {
    std::array<std::uint16_t, slots_count> all{};
    all.fill(unassigned);
    return all;
  }
};

/// From what CLUSTER SLOTS answers; `host`: of the node that was asked, which may leave out its
/// own. Nothing if it is no such answer.
[[nodiscard]] std::optional<SlotTable> table_from(const Reply& reply, const std::string& host);
/// The number after "cluster_current_epoch:" in what CLUSTER INFO says.
[[nodiscard]] std::uint64_t epoch_from(std::string_view words);

/// "MOVED 3999 127.0.0.1:6381", or ASK.
struct Redirection {
  Slot slot = 0;
  Endpoint endpoint{};
};
/// `host`: of the node that says so, which may leave it out.
[[nodiscard]] std::optional<Redirection> redirection_from(std::string_view words,
                                                          const std::string& host);

}  // namespace tenure::backends::redis
