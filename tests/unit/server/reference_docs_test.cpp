#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "server/config/config_file.hpp"
#include "server/config/settings.hpp"
#include "server/http/record_json.hpp"
#include "server/metrics/metrics.hpp"

namespace tenure::server {
namespace {

/// The text of a page of docs/reference, which must agree with the code.
std::string page(const std::string& name) {
  std::ifstream file(std::filesystem::path(TENURE_SOURCE_DIR) / "docs/reference" / name);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The row of a setting in the tables of settings.md and limits.md.
std::string row(const Setting& setting) {
  const auto value = setting.print(Config{});
  std::string row = "| `" + std::string(setting.name()) + "` | ";
  row += value.empty() ? "" : "`" + value + "`";
  row += " | " + std::string(setting.help);
  row += setting.expected.empty() ? "" : " (" + setting.expected + ")";
  return row + " |\n";
}

// Catches a setting that is added, renamed or given another default without its documentation.
TEST(ReferenceDocs, every_setting_is_documented_with_its_default) {
  const auto text = page("settings.md") + page("limits.md");

  std::string missing;
  for (const auto& setting : settings()) {
    if (text.find(row(setting)) == std::string::npos) {
      missing += row(setting);
    }
  }

  EXPECT_EQ(missing, "");
}

// Catches a metric without documentation.
TEST(ReferenceDocs, every_metric_is_documented) {
  Metrics metrics("1");
  metrics.limit_rejected("a");
  metrics.denied("a");
  metrics.certificate_expires("server", {});
  metrics.method("b").done(0);
  const auto exposition = metrics.text();
  const auto text = page("metrics.md");

  constexpr std::string_view mark = "# TYPE ";
  for (auto at = exposition.find(mark); at != std::string::npos;
       at = exposition.find(mark, at + 1)) {
    const auto begin = at + mark.size();
    const auto name = exposition.substr(begin, exposition.find(' ', begin) - begin);
    EXPECT_NE(text.find("`" + name), std::string::npos) << name;
  }
}

// Catches a route without documentation.
TEST(ReferenceDocs, every_route_of_the_front_page_is_documented) {
  const std::string front(http::front_page());
  const auto text = page("http.md");

  constexpr std::string_view mark = "GET ";
  for (auto at = front.find(mark); at != std::string::npos; at = front.find(mark, at + 1)) {
    const auto end = front.find_first_of(" ?\n", at + mark.size());
    const auto route = front.substr(at, end - at);
    EXPECT_NE(text.find("`" + route), std::string::npos) << route;
  }
}

// Catches an example that `tenured` would reject.
TEST(ReferenceDocs, the_example_configuration_is_valid) {
  const auto text = page("settings.md");
  const auto begin = text.find("```toml\n") + 8;
  const auto example = text.substr(begin, text.find("```", begin) - begin);

  Config config;
  const auto read = read_config(example, "settings.md", config);

  EXPECT_TRUE(read) << read.error().detail;
}

}  // namespace
}  // namespace tenure::server
