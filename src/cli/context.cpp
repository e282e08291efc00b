#include "cli/context.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// CLI11 has a parser for a subset of TOML, which is sufficient for a table of strings.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>

namespace tenure::cli {
namespace {

/// Keys of a context, and the options that they set.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> context_keys{
    {{"url", "--url"},
     {"token_file", "--token-file"},
     {"owner", "--owner"},
     {"timeout", "--timeout"}}};

/// Contents of the file.
struct Contexts {
  std::string chosen{};  ///< Default context; empty: none.
  /// Options by name of the context.
  std::map<std::string, std::map<std::string, std::string>, std::less<>> all{};
};

/// Value of a variable; none if it is not set or empty.
std::optional<std::string> variable(const char* name) {
  const auto* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

/// Path of the file; none without a home directory.
std::optional<std::filesystem::path> config_path() {
  if (const auto path = variable("TENURE_CONFIG")) {
    return *path;
  }
  const std::filesystem::path below("tenure/config.toml");
  if (const auto folder = variable("XDG_CONFIG_HOME")) {
    return *folder / below;
  }
  const auto home = variable("HOME");
  return home ? std::optional(std::filesystem::path(*home) / ".config" / below) : std::nullopt;
}

/// Adds one `key = value` of the file. The error names the key.
Result<void> add_entry(const CLI::ConfigItem& item, Contexts& contexts) {
  const auto wrong = [&](std::string_view why) {
    return fail(Errc::invalid_argument, item.fullname() + ": " + std::string(why));
  };
  // Markers of CLI11 for the begin and the end of a section.
  if (item.name == "++" || item.name == "--") {
    return {};
  }
  if (item.inputs.size() != 1) {
    return wrong("one value in quotes is expected");
  }
  if (item.parents.empty() && item.name == "context") {
    contexts.chosen = item.inputs.front();
    return {};
  }
  if (item.parents.size() != 2 || item.parents.front() != "contexts") {
    return wrong("unknown key; the file has `context` and sections [contexts.NAME]");
  }
  const auto* const key = std::ranges::find(context_keys, item.name,
                                            &std::pair<std::string_view, std::string_view>::first);
  if (key == context_keys.end()) {
    return wrong("unknown key; a context has url, token_file, owner and timeout");
  }
  contexts.all[item.parents.back()][std::string(key->second)] = item.inputs.front();
  return {};
}

/// Reads the file. A missing file has no contexts.
Result<Contexts> read_contexts(const std::filesystem::path& path) {
  Contexts contexts;
  std::ifstream file(path);
  if (!file) {
    return contexts;
  }
  try {
    for (const auto& item : CLI::ConfigTOML().from_config(file)) {
      if (auto added = add_entry(item, contexts); !added) {
        return fail(Errc::invalid_argument, path.string() + ": " + added.error().detail);
      }
    }
  } catch (const CLI::Error& error) {
    return fail(Errc::invalid_argument, path.string() + ": " + error.what());
  }
  return contexts;
}

/// Names of the contexts, for an error.
std::string names_of(const Contexts& contexts) {
  std::string text;
  for (const auto& [name, options] : contexts.all) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? "none" : text;
}

}  // namespace

Result<void> apply_context(Arguments& arguments) {
  const auto demanded = arguments.text("--context");
  if (demanded && arguments.has("--url")) {
    return fail(Errc::invalid_argument, "--context and --url exclude each other");
  }
  // Another source of the URL: the token of a context must not be sent there.
  if (!demanded && (arguments.has("--url") || variable("TENURE_URL"))) {
    return {};
  }
  const auto path = config_path();
  const auto contexts = path ? read_contexts(*path) : Contexts();
  if (!contexts) {
    return std::unexpected(contexts.error());
  }
  const auto name = demanded ? *demanded : variable("TENURE_CONTEXT").value_or(contexts->chosen);
  if (name.empty()) {
    return {};
  }
  const auto found = contexts->all.find(name);
  if (found == contexts->all.end()) {
    return fail(Errc::invalid_argument, "there is no context \"" + name + "\" in " +
                                            (path ? path->string() : "a configuration file") +
                                            "; contexts: " + names_of(*contexts));
  }
  // Without it, the token of the context would be sent to the server of TENURE_URL.
  if (!found->second.contains("--url")) {
    return fail(Errc::invalid_argument, "the context \"" + name + "\" has no url");
  }
  for (const auto& [option, value] : found->second) {
    // The lease has an owner.
    if (option != "--owner" || !arguments.has("--lease")) {
      // Options of the command line take precedence.
      arguments.options.try_emplace(option, value);
    }
  }
  return {};
}

}  // namespace tenure::cli
