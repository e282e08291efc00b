#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <tenure/strong.hpp>

#include "core/bytes.hpp"
#include "core/ids.hpp"
#include "core/item.hpp"
#include "core/limits.hpp"

namespace tenure::core {

/// Encoder of the types that snapshots and the log share; the inverse of ValueReader. Canonical, as
/// ByteWriter. Not thread safe.
class ValueWriter {
 public:
  ValueWriter() = default;
  /// Appends to these bytes.
  explicit ValueWriter(std::string begin) : out_(std::move(begin)) {}

  template <class Tag>
  void put(const Strong<std::uint64_t, Tag>& id) {
    out_.number(id.get());
  }
  /// Writes any time, also an invalid one: its refusal must be replicated.
  void put(ClusterTime time) { out_.number(static_cast<std::uint64_t>(time.count())); }
  void put(LockMode mode);
  void put(const Resource& resource);
  void put(const BytesRange& range);
  void put(const Item& item);
  void put(std::span<const Item> items);
  void put(const Limits& limits, ClusterVersion version);
  void number(std::uint64_t value) { out_.number(value); }
  void text(std::string_view value) { out_.text(value); }

  [[nodiscard]] std::string take() && { return std::move(out_).take(); }

 private:
  ByteWriter out_;
};

}  // namespace tenure::core
