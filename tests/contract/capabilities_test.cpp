#include <cctype>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/backend.hpp"
#include "support/contract/contract.hpp"

namespace tenure::test {
namespace {

TENURE_CONTRACT(CapabilitiesContract);

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

/// The table of docs/reference/backends.md that begins with "capability", by capability and scheme.
std::map<std::string, std::map<std::string, std::string>> documented() {
  std::ifstream file(TENURE_SOURCE_DIR "/docs/reference/backends.md");
  std::map<std::string, std::map<std::string, std::string>> table;
  std::vector<std::string> head;
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, '|');) {
      row.push_back(trimmed(cell));
    }
    if (row.size() > 2 && row[1] == "capability") {
      head = row;
    } else if (row.size() < head.size() || head.empty()) {
      if (!table.empty()) {
        break;
      }
    } else {
      for (std::size_t n = 3; n < head.size(); ++n) {
        table[row[1]][head[n]] = row[n];
      }
    }
  }
  return table;
}

// A capability that is documented and not implemented misleads users.
TEST_P(CapabilitiesContract, the_documented_capabilities_match_the_code) {
  const auto table = documented();
  const auto& name = GetParam().name;
  const auto scheme = "`" + name.substr(0, name.find('_')) + "://`";
  const auto capabilities = service->open()->capabilities();

  for (int n = 0; n <= static_cast<int>(backends::last_capability); ++n) {
    const auto capability = static_cast<backends::Capability>(n);
    const auto row = table.find("`" + std::string(to_string(capability)) + "`");
    ASSERT_NE(row, table.end()) << to_string(capability) << " is not in docs/reference/backends.md";
    const auto cell = row->second.find(scheme);
    ASSERT_NE(cell, row->second.end()) << scheme << " has no column in docs/reference/backends.md";
    EXPECT_EQ(cell->second.starts_with("yes"), capabilities.has(capability))
        << to_string(capability) << " of " << scheme << ": " << cell->second;
  }
}

}  // namespace
}  // namespace tenure::test
