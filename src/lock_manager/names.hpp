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

/// The names of resources, as numbers: the same name has the same number as long as anybody needs
/// it, and two names never share one, since they are compared whole.
///
/// A number is given once and never again, so one that is kept too long finds nothing rather than
/// another name. Later numbers of one part of the table are larger; those of two parts interleave.
///
/// Thread safety: all members may be called from any thread.
class NameTable {
 public:
  /// The number of `name`, with one more reference to it. A new name gets a new number.
  [[nodiscard]] std::uint64_t intern(std::string_view name);

  /// The number of `name`, if it has one now.
  [[nodiscard]] std::optional<std::uint64_t> find(std::string_view name) const;

  /// One more reference to a number that somebody refers to.
  void add_reference(std::uint64_t id);

  /// Gives one reference back; with the last one the name is forgotten.
  /// REQUIRES: the caller has a reference from intern().
  void drop_reference(std::uint64_t id);

  /// The name with this number; empty if it was forgotten or never was.
  [[nodiscard]] std::string text(std::uint64_t id) const;

  /// How many names there are.
  [[nodiscard]] std::size_t size() const;

  /// A name's number for the length of a call.
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
  struct Name {
    std::string text;
    std::uint64_t id;
    std::size_t references;
  };

  struct alignas(64) Shard {
    mutable sys::Latch latch;
    std::uint64_t created TENURE_GUARDED_BY(latch) = 0;  ///< Names ever; never goes back.
    /// INVARIANT: both have the same names. The key is a view of the text inside its Name.
    absl::flat_hash_map<std::string_view, std::unique_ptr<Name>> by_text TENURE_GUARDED_BY(latch);
    absl::flat_hash_map<std::uint64_t, Name*> by_id TENURE_GUARDED_BY(latch);
  };

  /// A number is `created` above and the shard in the low bits, so that it leads to its shard.
  /// 58 bits of `created` last 9,000 years at a million new names per second.
  static constexpr std::size_t shard_bits = 6;

  [[nodiscard]] static std::size_t shard_of(std::string_view name) noexcept;
  [[nodiscard]] static std::size_t shard_of(std::uint64_t id) noexcept;

  std::array<Shard, std::size_t{1} << shard_bits> shards_;
};

}  // namespace tenure::detail
