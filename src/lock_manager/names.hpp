#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>

#include "sys/latch.hpp"

namespace tenure::detail {

/// Intern table with reference counts: maps names of resources to numbers. A name keeps its number
/// while it is referenced, and two names never share one, because names are compared and not only
/// their hashes.
///
/// Numbers are never reused, so a stale number finds no name instead of another one. Numbers of one
/// shard ascend; those of two shards interleave.
///
/// Thread safe.
class NameTable {
 public:
  /// Returns the number of `name` and adds a reference. A new name gets a new number.
  [[nodiscard]] std::uint64_t intern(std::string_view name);

  /// Number of `name`, if it has one.
  [[nodiscard]] std::optional<std::uint64_t> find(std::string_view name) const;

  /// Adds a reference. REQUIRES: the number is referenced.
  void add_reference(std::uint64_t id);

  /// Drops a reference; the name is forgotten with the last one. REQUIRES: the caller owns a
  /// reference.
  void drop_reference(std::uint64_t id);

  /// Name with this number; empty if there is none.
  [[nodiscard]] std::string text(std::uint64_t id) const;

  /// Number of names.
  [[nodiscard]] std::size_t size() const;

  /// Guard of a reference, for the duration of a call.
  class Reference {
   public:
    Reference(NameTable& names, std::string_view name) : names_(names), id_(names.intern(name)) {}
    Reference(const Reference&) = delete;
    Reference& operator=(const Reference&) = delete;
    ~Reference() { names_.drop_reference(id_); }

    [[nodiscard]] std::uint64_t id() const noexcept { return id_; }

   private:
    NameTable& names_;
    std::uint64_t id_;
  };

 private:
  /// A name in use, with the number of its references.
  struct Name {
    std::string text;
    std::uint64_t id;
    std::size_t references;
  };

  struct alignas(64) Shard {
    mutable sys::Latch latch;
    std::uint64_t created TENURE_GUARDED_BY(latch) =
        0;  ///< Number of names ever created; never decreases.
    /// INVARIANT: both maps have the same names. The key is a view of the text in its Name.
    absl::flat_hash_map<std::string_view, std::unique_ptr<Name>> by_text TENURE_GUARDED_BY(latch);
    absl::flat_hash_map<std::uint64_t, Name*> by_id TENURE_GUARDED_BY(latch);
  };

  /// A number has `created` in the high bits and the shard in the low ones, so it leads to its
  /// shard. 58 bits of `created` last 9,000 years at a million new names per second.
  static constexpr std::size_t shard_bits = 6;

  /// Shard by the hash of the name.
  [[nodiscard]] static std::size_t shard_of(std::string_view name) noexcept;
  /// Shard of a number, which is in its low bits.
  [[nodiscard]] static std::size_t shard_of(std::uint64_t id) noexcept;

  std::array<Shard, std::size_t{1} << shard_bits> shards_;
};

}  // namespace tenure::detail
