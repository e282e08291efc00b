#include "server/config/environment.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "server/config/config_errors.hpp"
#include "server/config/settings.hpp"

namespace tenure::server {
namespace {

constexpr std::string_view prefix = "TENURE_";

struct Variable {
  std::string_view name;
  std::string_view value;
};

/// Variables with the prefix that are not empty.
std::vector<Variable> variables_of(Environment environment) {
  std::vector<Variable> found;
  for (const std::string_view text : environment) {
    const auto equals = text.find('=');
    if (text.starts_with(prefix) && equals != std::string_view::npos && equals + 1 < text.size()) {
      found.push_back({.name = text.substr(0, equals), .value = text.substr(equals + 1)});
    }
  }
  // The order of an environment is arbitrary.
  std::ranges::sort(found, {}, &Variable::name);
  return found;
}

/// Null: no setting has this variable.
const Setting* setting_of(std::string_view variable) {
  const auto all = settings();
  const auto it = std::ranges::find(all, variable, &Setting::variable);
  return it == all.end() ? nullptr : &*it;
}

std::string unknown(std::string_view variable) {
  std::string key(variable.substr(prefix.size()));
  std::ranges::transform(key, key.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto* meant = find_setting(nearest_key(key));
  return std::string(variable) + ": unknown variable, ignored" +
         (meant == nullptr ? "" : "; did you mean " + meant->variable() + "?");
}

}  // namespace

std::span<const std::string_view> command_variables() {
  static constexpr std::array<std::string_view, 8> all{
      "TENURE_URL",       "TENURE_CONFIG", "TENURE_CONTEXT", "TENURE_AUTH_TOKEN",
      "TENURE_AUTH_FILE", "TENURE_NAME",   "TENURE_TOKEN",   "TENURE_LEASE_MS"};
  return all;
}

Result<void> read_environment(Environment environment, Config& config) {
  ConfigErrors errors;
  for (const auto& [name, value] : variables_of(environment)) {
    const auto* setting = setting_of(name);
    if (setting == nullptr) {
      continue;
    }
    if (const auto assigned = setting->assign(config, value); !assigned) {
      errors.add(std::string(name) + ": " + assigned.error().detail);
    }
  }
  return errors.result();
}

std::vector<std::string> warnings_about(Environment environment, const Config& config) {
  std::vector<std::string> warnings;
  for (const auto& [name, value] : variables_of(environment)) {
    // A server that silently has no users would allow everything.
    if (name == "TENURE_AUTH_FILE" && config.auth.file.empty()) {
      warnings.emplace_back(
          "TENURE_AUTH_FILE: ignored, it names the token file of the command tenure; the users "
          "file of tenured is TENURE_AUTH_USERS_FILE");
    } else if (setting_of(name) == nullptr &&
               std::ranges::find(command_variables(), name) == command_variables().end()) {
      warnings.push_back(unknown(name));
    }
  }
  return warnings;
}

}  // namespace tenure::server
