#include "server/config/config.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "server/config/command_line.hpp"
#include "server/config/config_file.hpp"
#include "server/config/settings.hpp"
#include "server/config/units.hpp"

namespace tenure::server {
namespace {

using namespace std::chrono_literals;

ParsedCommandLine run(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "tenured");
  return read_command_line(arguments);
}

ExitMessage exit_message(std::vector<const char*> arguments) {
  auto said = run(std::move(arguments));
  EXPECT_TRUE(std::holds_alternative<ExitMessage>(said));
  return std::holds_alternative<ExitMessage>(said) ? std::get<ExitMessage>(said) : ExitMessage{};
}

std::string error_of(std::string_view toml) {
  Config config;
  const auto read = read_config(toml, "t.toml", config);
  return read ? "" : read.error().detail;
}

/// A file that the destructor removes.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content)
      : path_(std::filesystem::path(testing::TempDir()) /
              ("tenure_config_" + std::to_string(::getpid()) + ".toml")) {
    std::ofstream(path_) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const char* name() const { return path_.c_str(); }

 private:
  std::filesystem::path path_;
};

TEST(Config, the_default_configuration_listens_on_loopback) {
  const auto said = run({});

  ASSERT_TRUE(std::holds_alternative<Config>(said));
  EXPECT_EQ(std::get<Config>(said).listen.grpc, "127.0.0.1:7420");
  EXPECT_EQ(std::get<Config>(said).listen.http, "127.0.0.1:7421");
  EXPECT_EQ(std::get<Config>(said).limits, (core::Limits{.leases_per_client_max = 100'000}));
}

TEST(Config, flags_win_over_the_file_and_the_file_over_defaults) {
  const TemporaryFile file("[node]\nname = \"file\"\n[log]\nlevel = \"debug\"\n");

  const auto said = run({"--config", file.name(), "--name", "flag", "--limits-ttl-max", "2m"});

  ASSERT_TRUE(std::holds_alternative<Config>(said));
  const auto& config = std::get<Config>(said);
  EXPECT_EQ(config.node.name, "flag");
  EXPECT_EQ(config.log.level, log::Level::debug);
  EXPECT_EQ(config.limits.ttl_max, 2min);
}

TEST(Config, a_printed_configuration_reads_back_the_same) {
  Config changed;
  changed.node.name = "a \"quoted\"\n name \u20ac";
  changed.node.labels = "zone=a,rack=7";
  changed.node.member_id = 7;
  changed.listen.insecure = true;
  changed.limits.ttl_min = 1500us;
  changed.raft.segment_bytes = 100'000;
  changed.log.format = log::Format::json;

  Config back;
  const auto read = read_config(print_config(changed), "printed", back);

  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(print_config(back), print_config(changed));
  EXPECT_EQ(back.node.name, changed.node.name);
  EXPECT_EQ(back.limits, changed.limits);
}

// Catches a field of core::Limits without a row in settings.cpp.
TEST(Config, every_limit_of_the_store_can_be_set) {
  std::size_t limits = 0;
  for (const auto& setting : settings()) {
    limits += setting.section() == "limits" ? 1U : 0U;
  }
  EXPECT_EQ(limits * 8, sizeof(core::Limits));
}

TEST(Config, every_setting_prints_what_it_takes) {
  for (const auto& setting : settings()) {
    Config config;
    const auto text = setting.print(config);
    if (!text.empty()) {
      EXPECT_TRUE(setting.assign(config, text)) << setting.key;
    }
    EXPECT_EQ(setting.print(config), text) << setting.key;
    EXPECT_FALSE(setting.help.empty()) << setting.key;
  }
}

TEST(Config, an_unknown_key_is_reported_with_its_position_and_the_nearest_key) {
  EXPECT_EQ(error_of("[node]\nname = \"a\"\ndatadir = \"/x\"\n"),
            "t.toml:3:1: unknown key node.datadir; did you mean node.data_dir?");
  EXPECT_EQ(error_of("[service]\nleases_max = 3\n"),
            "t.toml:2:1: unknown key service.leases_max; did you mean limits.leases_max?");
  EXPECT_EQ(error_of("data_dir = \"x\"\n"),
            "t.toml:1:1: unknown key data_dir; did you mean node.data_dir?");
  EXPECT_EQ(error_of("[lisen]\n"), "t.toml:1:2: unknown section [lisen]; did you mean listen?");
  EXPECT_EQ(error_of("[node]\nxyzzy = 1\n"), "t.toml:2:1: unknown key node.xyzzy");
}

TEST(Config, all_wrong_types_and_ranges_are_reported_at_once) {
  const auto text = error_of(
      "[limits]\nleases_max = \"many\"\nttl_max = 30\nitems_max = 0\n"
      "[log]\nlevel = \"loud\"\n[listen]\ngrpc = \"nowhere\"\ninsecure = 1\n"
      "[raft]\nsegment_bytes = \"8MB\"\n");

  for (const auto* expected :
       {"t.toml:2:14: limits.leases_max must be an integer",
        "t.toml:3:11: limits.ttl_max must be a duration in quotes",
        "t.toml:4:13: limits.items_max: '0' is out of range: 1 to 65535",
        "t.toml:6:9: log.level: 'loud' is not one of debug, info, warning, error",
        "t.toml:8:8: listen.grpc: 'nowhere' is not an address",
        "t.toml:9:12: listen.insecure must be true or false",
        "t.toml:11:17: raft.segment_bytes: '8MB' is not a size such as 64MiB"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\nin\n" << text;
  }
}

// toml++ 3.3 terminates the process for both: by an assertion and by unreachable code.
TEST(Config, a_table_header_or_a_character_out_of_place_is_an_error) {
  EXPECT_TRUE(error_of("[!]\n").starts_with("t.toml:1:")) << error_of("[!]\n");
  EXPECT_TRUE(error_of("\xEF\xBA\xBF").starts_with("t.toml:1:"));
}

TEST(Config, a_toml_syntax_error_is_reported_with_its_position) {
  EXPECT_TRUE(error_of("[node\n").starts_with("t.toml:1:")) << error_of("[node\n");
}

TEST(Config, a_public_address_needs_tls_or_insecure) {
  Config config;
  config.listen.grpc = "0.0.0.0:7420";
  ASSERT_FALSE(check(config));
  EXPECT_NE(check(config).error().detail.find("--insecure"), std::string::npos);
  config.listen.insecure = true;
  EXPECT_TRUE(check(config));

  config = {};
  config.listen.http = "[::]:7421";
  EXPECT_FALSE(check(config));
  config.listen.http = "off";
  EXPECT_TRUE(check(config));
}

TEST(Config, mutual_tls_opens_the_grpc_address_only_with_readable_files) {
  const TemporaryFile file("pem");
  Config config;
  config.listen.grpc = "10.0.0.1:7420";
  config.tls = {.cert = file.name(), .key = file.name(), .client_ca = file.name()};
  EXPECT_TRUE(check(config));

  config.tls.client_ca.clear();
  EXPECT_FALSE(check(config));
  config.tls = {.cert = file.name(), .key = "/nowhere/key.pem", .client_ca = file.name()};
  EXPECT_EQ(check(config).error().detail, "tls.key: cannot read '/nowhere/key.pem'");
  config.tls = {.cert = file.name(), .key = {}, .client_ca = file.name()};
  EXPECT_EQ(check(config).error().detail, "tls.cert: requires tls.key");
}

TEST(Config, http_is_open_to_the_network_with_tls_and_users_or_certificates_only) {
  const TemporaryFile file("pem");
  Config config;
  config.listen.http = "10.0.0.1:7421";
  EXPECT_FALSE(check(config));
  config.tls = {.cert = file.name(), .key = file.name()};
  EXPECT_FALSE(check(config));
  config.auth.file = file.name();
  EXPECT_TRUE(check(config));
  config.auth.file.clear();
  config.tls.client_ca = file.name();
  EXPECT_TRUE(check(config));
  config.listen.http_tls = HttpTls::off;
  EXPECT_FALSE(check(config));
  config.listen.insecure = true;
  EXPECT_TRUE(check(config));
}

TEST(Config, users_open_the_grpc_address_with_tls_alone) {
  const TemporaryFile file("pem");
  Config config;
  config.listen.grpc = "10.0.0.1:7420";
  config.auth.file = file.name();
  EXPECT_FALSE(check(config));
  config.tls = {.cert = file.name(), .key = file.name()};
  EXPECT_TRUE(check(config));
  config.auth.file = "/nowhere/users.toml";
  EXPECT_EQ(check(config).error().detail, "auth.file: cannot read '/nowhere/users.toml'");
}

TEST(CommandLine, the_command_line_exits_with_the_documented_codes) {
  EXPECT_EQ(exit_message({"--no-such-flag"}).code, ExitCode::usage);
  EXPECT_EQ(exit_message({"--limits-ttl-max", "5"}).code, ExitCode::usage);
  EXPECT_EQ(exit_message({"surplus"}).code, ExitCode::usage);
  EXPECT_EQ(exit_message({"--listen-grpc", "0.0.0.0:1"}).code, ExitCode::configuration);
  EXPECT_EQ(exit_message({"--config", "/nowhere/t.toml"}).code, ExitCode::configuration);
  EXPECT_EQ(exit_message({"--help"}).code, ExitCode::stopped);
  EXPECT_EQ(exit_message({"--version"}).code, ExitCode::stopped);
  EXPECT_EQ(exit_message({"--print-config"}).code, ExitCode::stopped);
}

TEST(CommandLine, help_names_every_flag_in_its_group) {
  const auto help = exit_message({"--help"}).text;

  for (const auto& setting : settings()) {
    EXPECT_NE(help.find(setting.flag() + " "), std::string::npos) << setting.flag();
  }
  for (const auto& section : sections()) {
    EXPECT_NE(help.find(section.title), std::string::npos) << section.title;
  }
  EXPECT_EQ(exit_message({"--version"}).text, "tenured " + std::string(version()) + "\n");
}

TEST(Units, durations_sizes_and_addresses_are_read_exactly) {
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("2m"), 2min);
  EXPECT_EQ(print_duration(90s), "90s");
  EXPECT_EQ(print_duration(0s), "0s");
  for (const auto* bad : {"", "5", "ms", "1.5s", "-1s", "1 s", "1s ", "999999999999999d"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
  EXPECT_EQ(parse_size("64KiB"), 65536U);
  EXPECT_EQ(parse_size("1_000"), 1000U);
  EXPECT_EQ(print_size(1536), "1536B");
  EXPECT_FALSE(parse_size("99999999TiB"));
  EXPECT_TRUE(parse_address("[::1]:0")->is_loopback());
  EXPECT_TRUE(parse_address("127.3.2.1:1")->is_loopback());
  EXPECT_TRUE(parse_address("localhost:1")->is_loopback());
  EXPECT_FALSE(parse_address("0.0.0.0:1")->is_loopback());
  EXPECT_FALSE(parse_address("example.org:1")->is_loopback());
  for (const auto* bad : {"", "7420", ":7420", "a:b", "1.2.3.4:70000", "::1:1", "[a]:1", "a b:1"}) {
    EXPECT_FALSE(parse_address(bad)) << bad;
  }
}

}  // namespace
}  // namespace tenure::server
