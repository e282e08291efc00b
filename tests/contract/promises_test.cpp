#include <cctype>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/backend.hpp"
#include "support/contract.hpp"

namespace tenure::test {
namespace {

TENURE_CONTRACT(PromisesContract);

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

/// The table of docs/reference/backends.md that begins with "promise", by promise and scheme.
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
    if (row.size() > 2 && row[1] == "promise") {
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

// A promise that is in the table and not in the code is the worst kind of documentation.
TEST_P(PromisesContract, the_table_in_the_documents_says_what_the_code_does) {
  const auto table = documented();
  const auto& name = GetParam().name;
  const auto scheme = "`" + name.substr(0, name.find('_')) + "://`";
  const auto promises = service->open()->promises();

  for (int n = 0; n <= static_cast<int>(backends::last_promise); ++n) {
    const auto promise = static_cast<backends::Promise>(n);
    const auto row = table.find("`" + std::string(to_string(promise)) + "`");
    ASSERT_NE(row, table.end()) << to_string(promise) << " is not in docs/reference/backends.md";
    const auto cell = row->second.find(scheme);
    ASSERT_NE(cell, row->second.end()) << scheme << " has no column in docs/reference/backends.md";
    EXPECT_EQ(cell->second.starts_with("yes"), promises.has(promise))
        << to_string(promise) << " of " << scheme << ": " << cell->second;
  }
}

}  // namespace
}  // namespace tenure::test
