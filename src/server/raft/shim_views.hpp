#pragma once

#include <span>
#include <string>
#include <vector>

#include "server/raft/entry.hpp"
#include "server/raft/message.hpp"
#include "server/raft/shim.h"

namespace tenure::server::raft {

// Types of this folder in the form of the shim. A view must not outlive its original.

/// Event of this type with all other fields zero.
[[nodiscard]] inline shim_event event_of(shim_event_type type) {
  shim_event event{};
  event.type = type;
  return event;
}

[[nodiscard]] Member member_of(const shim_member& flat);

[[nodiscard]] inline shim_bytes view_of(const std::string& bytes) {
  return {.start = bytes.data(), .size = bytes.size()};
}

[[nodiscard]] inline shim_entry view_of(const Entry& entry) {
  return {.term = entry.term.get(),
          .type = static_cast<int>(entry.type),
          .payload = view_of(*entry.payload)};
}

[[nodiscard]] inline std::vector<shim_entry> views_of(std::span<const Entry> entries) {
  std::vector<shim_entry> views;
  views.reserve(entries.size());
  for (const auto& entry : entries) {
    views.push_back(view_of(entry));
  }
  return views;
}

[[nodiscard]] inline shim_snapshot view_of(const SnapshotMark& mark) {
  return {.index = mark.index.get(),
          .term = mark.term.get(),
          .configuration_index = mark.configuration_index.get(),
          .configuration = view_of(mark.configuration)};
}

/// Flat form of a received message; `entries` of an AppendEntries are the caller's to add.
[[nodiscard]] shim_message view_of(MemberId sender, const Message& message);
[[nodiscard]] shim_message view_of(MemberId sender, const AppendEntries& message);

}  // namespace tenure::server::raft
