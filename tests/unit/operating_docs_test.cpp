#include <array>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "server/config/config_file.hpp"
#include "server/config/settings.hpp"
#include "server/http/pages.hpp"
#include "server/metrics/metrics.hpp"

namespace tenure::server {
namespace {

/// docs/operating.md, which must say what the code does.
const std::string& operating() {
  static const std::string text = [] {
    std::ifstream file(TENURE_SOURCE_DIR "/docs/operating.md");
    return std::string{std::istreambuf_iterator<char>(file), {}};
  }();
  return text;
}

std::string row(const Setting& setting) {
  const auto value = setting.print(Config{});
  std::string row = "| `" + std::string(setting.name()) + "` | ";
  row += value.empty() ? "" : "`" + value + "`";
  row += " | " + std::string(setting.help);
  row += setting.expected.empty() ? "" : " (" + setting.expected + ")";
  return row + " |\n";
}

TEST(OperatingDocs, every_setting_stands_there_with_its_default) {
  std::string missing;
  for (const auto& setting : settings()) {
    if (operating().find(row(setting)) == std::string::npos) {
      missing += row(setting);
    }
  }
  EXPECT_EQ(missing, "");
}

TEST(OperatingDocs, every_metric_stands_there) {
  Metrics metrics("1");
  metrics.limit_rejected("a");
  metrics.denied("a");
  metrics.certificate_expires("server", {});
  metrics.method("b").done(0);
  const auto text = metrics.text();

  constexpr std::string_view mark = "# TYPE ";
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const auto begin = at + mark.size();
    const auto name = text.substr(begin, text.find(' ', begin) - begin);
    EXPECT_NE(operating().find("`" + name), std::string::npos) << name;
  }
}

TEST(OperatingDocs, every_route_of_the_front_page_stands_there) {
  const std::string page(http::front_page());

  constexpr std::string_view mark = "GET ";
  for (auto at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) {
    const auto end = page.find_first_of(" ?\n", at + mark.size());
    const auto route = page.substr(at, end - at);
    EXPECT_NE(operating().find("`" + route), std::string::npos) << route;
  }
}

TEST(OperatingDocs, its_example_is_a_configuration) {
  const auto begin = operating().find("```toml\n") + 8;
  const auto example = operating().substr(begin, operating().find("```", begin) - begin);

  Config config;
  const auto read = read_config(example, "operating.md", config);

  EXPECT_TRUE(read) << read.error().detail;
}

}  // namespace
}  // namespace tenure::server
