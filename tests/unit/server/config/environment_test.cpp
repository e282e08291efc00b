#include "server/config/environment.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "server/config/command_line.hpp"
#include "server/config/settings.hpp"

namespace tenure::server {
namespace {

using namespace std::chrono_literals;

using Texts = std::vector<const char*>;

ParsedCommandLine run(Texts arguments, const Texts& environment) {
  arguments.insert(arguments.begin(), "tenured");
  return read_command_line(arguments, environment);
}

ExitMessage exit_message(Texts arguments, const Texts& environment) {
  const auto said = run(std::move(arguments), environment);
  EXPECT_TRUE(std::holds_alternative<ExitMessage>(said));
  return std::holds_alternative<ExitMessage>(said) ? std::get<ExitMessage>(said) : ExitMessage{};
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Catches a setting that the environment cannot change: containers have no other place for it.
TEST(ConfigEnvironment, every_setting_is_read_from_the_environment) {
  std::set<std::string> variables;
  for (const auto& setting : settings()) {
    Config usual;
    const auto variable = setting.variable();
    EXPECT_TRUE(variables.insert(variable).second) << variable;
    const auto value = setting.print(usual);
    const auto text = variable + '=' + (value.empty() ? "no value" : value);
    Config config;
    const Texts environment{text.c_str()};

    const auto read = read_environment(environment, config);

    // "no value" is invalid for some settings; then the error shows that it was read.
    if (!read) {
      EXPECT_TRUE(read.error().detail.starts_with(variable + ": ")) << read.error().detail;
    } else {
      EXPECT_EQ(setting.print(config), value.empty() ? "no value" : value) << setting.key;
    }
    EXPECT_TRUE(warnings_about(environment, config).empty()) << variable;
  }
}

TEST(ConfigEnvironment, flags_win_over_the_environment_and_the_environment_over_the_file) {
  const auto path = std::filesystem::path(testing::TempDir()) /
                    ("tenure_environment_" + std::to_string(::getpid()) + ".toml");
  std::ofstream(path) << "[node]\nname = \"file\"\nlabels = \"a=file\"\n"
                         "[limits]\nttl_max = \"1m\"\n";

  const auto said = run({"--config", path.c_str(), "--name", "flag"},
                        {"TENURE_NODE_NAME=environment", "TENURE_NODE_LABELS=a=environment",
                         "TENURE_LISTEN_GRPC=127.0.0.1:1", "TENURE_LISTEN_INSECURE=true", "A=b"});
  std::filesystem::remove(path);

  ASSERT_TRUE(std::holds_alternative<Config>(said));
  const auto& config = std::get<Config>(said);
  EXPECT_EQ(config.node.name, "flag");
  EXPECT_EQ(config.node.labels, "a=environment");
  EXPECT_EQ(config.limits.ttl_max, 1min);
  EXPECT_EQ(config.listen.grpc, "127.0.0.1:1");
  EXPECT_TRUE(config.listen.insecure);
}

// A compose file passes variables that its user has not set as empty ones.
TEST(ConfigEnvironment, an_empty_variable_counts_as_unset) {
  const auto said = run({}, {"TENURE_LISTEN_GRPC=", "TENURE_LISTEN_INSECURE=", "TENURE_WRONG="});

  ASSERT_TRUE(std::holds_alternative<Config>(said));
  EXPECT_EQ(std::get<Config>(said).listen.grpc, Config{}.listen.grpc);
  EXPECT_TRUE(warnings_about(Texts{"TENURE_WRONG="}, Config{}).empty());
}

TEST(ConfigEnvironment, invalid_values_are_reported_together_with_their_variables) {
  const auto message = exit_message({}, {"TENURE_LIMITS_TTL_MAX=long", "TENURE_LISTEN_INSECURE=1"});

  EXPECT_EQ(message.code, ExitCode::configuration);
  EXPECT_NE(message.text.find("tenured: TENURE_LIMITS_TTL_MAX: 'long'"), std::string::npos);
  EXPECT_NE(message.text.find("tenured: TENURE_LISTEN_INSECURE: '1' is not true or false"),
            std::string::npos);
}

TEST(ConfigEnvironment, an_unknown_variable_is_a_warning_with_the_nearest_one) {
  EXPECT_TRUE(std::holds_alternative<Config>(run({}, {"TENURE_LISTEN_GRCP=x"})));
  EXPECT_EQ(warnings_about(
                Texts{"TENURE_XYZZY=1", "TENURE_LISTEN_GRCP=x", "TENURED=x", "TENURE_DATA_DIR=/x"},
                Config{}),
            (std::vector<std::string>{
                "TENURE_DATA_DIR: unknown variable, ignored; did you mean TENURE_NODE_DATA_DIR?",
                "TENURE_LISTEN_GRCP: unknown variable, ignored; did you mean TENURE_LISTEN_GRPC?",
                "TENURE_XYZZY: unknown variable, ignored"}));
}

// Catches an error about a missing setting that hides why the setting is missing.
TEST(ConfigEnvironment, a_refused_configuration_is_reported_with_the_ignored_variables) {
  const auto message =
      exit_message({}, {"TENURE_LISTEN_GRPC=0.0.0.0:7420", "TENURE_TLS_CERTS=server.pem"});

  EXPECT_EQ(message.code, ExitCode::configuration);
  EXPECT_NE(message.text.find("set tls.cert"), std::string::npos) << message.text;
  EXPECT_NE(message.text.find("TENURE_TLS_CERTS: unknown variable"), std::string::npos);
}

// Catches a server without users whose operator believes that it has some.
TEST(ConfigEnvironment, the_token_file_of_the_command_is_not_the_users_file) {
  const Texts environment{"TENURE_AUTH_FILE=token", "TENURE_URL=x", "TENURE_NAME=a"};
  Config config;

  ASSERT_TRUE(read_environment(environment, config));
  EXPECT_TRUE(config.auth.file.empty());
  EXPECT_EQ(config.node.name, "");
  const auto warnings = warnings_about(environment, config);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("TENURE_AUTH_USERS_FILE"), std::string::npos);

  ASSERT_TRUE(read_environment(Texts{"TENURE_AUTH_USERS_FILE=users.toml"}, config));
  EXPECT_EQ(config.auth.file, "users.toml");
  EXPECT_TRUE(warnings_about(environment, config).empty());
}

// Catches a variable of the command that tenured would take for a setting, or warn about.
TEST(ConfigEnvironment, the_variables_of_the_command_are_known_and_are_no_settings) {
  std::set<std::string_view> known;
  for (const auto variable : command_variables()) {
    known.insert(variable);
    for (const auto& setting : settings()) {
      EXPECT_NE(setting.variable(), variable);
    }
  }
  const std::regex name("\"(TENURE_[A-Z_]+)[=\"]");
  const auto folder = std::filesystem::path(TENURE_SOURCE_DIR) / "src/cli";
  std::size_t found = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const auto text = read_file(file.path());
    for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it, ++found) {
      EXPECT_TRUE(known.contains((*it)[1].str())) << file.path() << ": " << (*it)[1];
    }
  }
  EXPECT_GT(found, 0U);
}

// Catches documents that do not follow the rule of the names.
TEST(ConfigEnvironment, the_reference_and_the_manual_page_explain_the_variables) {
  const auto page =
      read_file(std::filesystem::path(TENURE_SOURCE_DIR) / "docs/reference/settings.md");
  const auto manual = exit_message({"--print-man", "tenured"}, {}).text;
  for (const auto* variable :
       {"TENURE_LISTEN_GRPC", "TENURE_NODE_DATA_DIR", "TENURE_AUTH_USERS_FILE"}) {
    EXPECT_NE(page.find(variable), std::string::npos) << variable;
    EXPECT_NE(manual.find(variable), std::string::npos) << variable;
  }
}

}  // namespace
}  // namespace tenure::server
