#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/raft/journal.hpp"
#include "support/raft/folder.hpp"

namespace tenure::server::raft {

/// A journal in a folder of its own, with small segments.
class JournalTest : public ::testing::Test {
 protected:
  using Texts = std::vector<std::string>;
  static constexpr ClusterId cluster{77};

  [[nodiscard]] JournalOptions options() {
    return {.folder = folder.path(),
            .cluster = cluster,
            .segment_bytes = 2048,
            .report = reports.report()};
  }
  Result<Journal::Opened> open(const SnapshotMark& snapshot = {}) {
    return Journal::open(options(), snapshot);
  }
  static Entry entry(std::string payload, Term term = Term{1}) {
    return {.term = term, .payload = std::make_shared<const std::string>(std::move(payload))};
  }
  /// One group each.
  static void append(Journal& journal, Index first, const std::vector<std::string>& payloads) {
    std::vector<Entry> entries;
    entries.reserve(payloads.size());
    for (const auto& payload : payloads) {
      entries.push_back(entry(payload));
    }
    journal.append(first, entries);
    journal.sync();
  }
  static std::vector<std::string> payloads(const Journal::Opened& opened) {
    std::vector<std::string> texts;
    texts.reserve(opened.entries.size());
    for (const auto& one : opened.entries) {
      texts.push_back(*one.payload);
    }
    return texts;
  }
  std::filesystem::path segment(std::uint64_t number) const {
    return segment_path(folder.path(), number);
  }
  /// As a power failure leaves it that comes before the last sync is recorded.
  void forget_durable_end() const { std::filesystem::remove(folder / "durable_end"); }
  static bool mentions(const std::string& text, const std::string& what) {
    return text.find(what) != std::string::npos;
  }

  test::TemporaryFolder folder;
  test::Reports reports;
};

}  // namespace tenure::server::raft
