#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "backends/backend.hpp"
#include "core/ids.hpp"

namespace tenure::backends {

/// An exclusive hold of one name that nobody else asked for yet.
struct ThinHold {
  LeaseId lease{};
  RequestId request{};
  FencingToken token{};
  std::shared_ptr<const Ask> ask{};

  [[nodiscard]] std::string_view name() const noexcept { return ask->items.front().name; }
};

/// The holds that the state machine does not know yet, and under which tokens it knows those that
/// were once here: a hold gets another token there, but its holder keeps the one it was told.
/// INVARIANT: the token there is greater, and less than that of every later holder.
class ThinTable {
 public:
  /// May it be held thinly, as far as the request itself tells?
  [[nodiscard]] static bool suits(const Ask& ask) noexcept {
    const auto* mode = std::get_if<LockMode>(&ask.items.front().claim);
    return ask.items.size() == 1 && ask.again == Again::refuse && mode != nullptr &&
           *mode == LockMode::exclusive;
  }

  [[nodiscard]] const ThinHold* find(std::string_view name) const {
    const auto it = holds_.find(name);
    return it == holds_.end() ? nullptr : &it->second;
  }
  /// False if there is one of that name.
  bool add(ThinHold hold) {
    const auto name = hold.name();
    return holds_.try_emplace(name, std::move(hold)).second;
  }
  /// Gives back exactly this hold. False if it is not here.
  bool remove(const ReleaseRequest& request) {
    const auto it = holds_.find(request.ask->items.front().name);
    if (it == holds_.end() || it->second.token != request.token ||
        it->second.lease != request.lease) {
      return false;
    }
    erase(it);
    return true;
  }
  [[nodiscard]] std::optional<ThinHold> take(std::string_view name) {
    const auto it = holds_.find(name);
    if (it == holds_.end()) {
      return std::nullopt;
    }
    auto hold = it->second;
    erase(it);
    return hold;
  }
  /// In the order of their tokens.
  [[nodiscard]] std::vector<ThinHold> all() const {
    std::vector<ThinHold> holds;
    for (const auto& [name, hold] : holds_) {
      holds.push_back(hold);
    }
    std::ranges::sort(holds, {}, &ThinHold::token);
    return holds;
  }
  [[nodiscard]] bool empty() const noexcept { return holds_.empty(); }

  /// It is known there under another token from now on.
  void rename(FencingToken told, core::FencingToken there) {
    there_.emplace(told, there);
    told_.emplace(there, told);
  }
  void forget(core::FencingToken there) {
    if (const auto it = told_.find(there); it != told_.end()) {
      there_.erase(it->second);
      told_.erase(it);
    }
  }
  [[nodiscard]] core::FencingToken there(FencingToken told) const {
    const auto it = there_.find(told);
    return it == there_.end() ? core::FencingToken{told.get()} : it->second;
  }
  [[nodiscard]] FencingToken told(core::FencingToken there) const {
    const auto it = told_.find(there);
    return it == told_.end() ? FencingToken{there.get()} : it->second;
  }

 private:
  using Holds = absl::flat_hash_map<std::string_view, ThinHold>;

  void erase(Holds::iterator it) {
    // The key is a part of the value: it must outlive the erasure of its entry.
    const auto ask = std::move(it->second.ask);
    holds_.erase(it);
  }

  Holds holds_;  ///< By a view of the name in their own Ask.
  absl::flat_hash_map<FencingToken, core::FencingToken> there_;
  absl::flat_hash_map<core::FencingToken, FencingToken> told_;
};

}  // namespace tenure::backends
