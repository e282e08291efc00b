#include "server/config/config_file.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

#include "server/config/settings.hpp"
#include "server/config/toml.hpp"
#include "sys/escape.hpp"

namespace tenure::server {
namespace {

/// Assigns the values of a parsed file to a Config and collects all errors with their positions.
///
/// Converts each value to the notation of a flag, so that the file and the command line share one
/// parser and one range check per setting.
class Reader {
 public:
  Reader(std::string_view name, Config& config) : name_(name), config_(config) {}

  void read(const toml::table& file) {
    for (const auto& [section, content] : file) {
      const auto* table = content.as_table();
      if (table != nullptr && is_section(section.str())) {
        read_section(section.str(), *table);
      } else {
        unknown(section.source(), std::string(section.str()), table != nullptr);
      }
    }
  }

  [[nodiscard]] Result<void> result() const {
    return errors_.empty() ? Result<void>{} : fail(Errc::invalid_argument, errors_);
  }

  void add_error(const toml::source_region& where, std::string_view why) {
    errors_ += errors_.empty() ? "" : "\n";
    errors_ += std::string(name_) + ':' + std::to_string(where.begin.line) + ':' +
               std::to_string(where.begin.column) + ": " + std::string(why);
  }

 private:
  static bool is_section(std::string_view name) {
    const auto all = sections();
    return std::ranges::find(all, name, &Section::name) != all.end();
  }

  /// toml++ rejects a repeated key, so each setting is assigned at most once.
  void read_section(std::string_view section, const toml::table& table) {
    for (const auto& [name, value] : table) {
      const auto key = std::string(section) + '.' + std::string(name.str());
      const auto* setting = find_setting(key);
      if (setting == nullptr) {
        unknown(name.source(), key, false);
      } else {
        assign(*setting, value);
      }
    }
  }

  /// An unknown key is an error and not ignored: a misspelled limit would silently have no effect.
  void unknown(const toml::source_region& where, const std::string& key, bool is_table) {
    std::string why = is_table ? "unknown section [" + key + "]" : "unknown key " + key;
    std::string_view meant = is_table ? nearest_section(key) : nearest_key(key);
    if (!meant.empty()) {
      why += "; did you mean " + std::string(meant) + "?";
    }
    add_error(where, why);
  }

  /// Sections are few and short: two equal first letters are a good enough guess.
  static std::string_view nearest_section(std::string_view name) {
    for (const auto& section : sections()) {
      if (section.name.starts_with(name.substr(0, 2))) {
        return section.name;
      }
    }
    return {};
  }

  /// Converts and assigns one value, or adds the error at its position.
  void assign(const Setting& setting, const toml::node& value) {
    const auto text = text_of(setting.type, value);
    if (!text) {
      add_error(value.source(),
                std::string(setting.key) + " must be " + expected_type(setting.type));
      return;
    }
    // The reader continues after an error, so that one run shows all of them.
    if (const auto assigned = setting.assign(config_, *text); !assigned) {
      add_error(value.source(), std::string(setting.key) + ": " + assigned.error().detail);
    }
  }

  /// The value in the notation of a flag; empty if it has the wrong type.
  static std::optional<std::string> text_of(ValueType type, const toml::node& value) {
    if (type == ValueType::toggle) {
      const auto flag = value.value_exact<bool>();
      return flag ? std::optional<std::string>(*flag ? "true" : "false") : std::nullopt;
    }
    const auto number = value.value_exact<std::int64_t>();
    // A negative number becomes a text that parse_count() rejects with the usual error.
    if (number && (type == ValueType::count || type == ValueType::size)) {
      return std::to_string(*number);
    }
    return type == ValueType::count ? std::nullopt : value.value_exact<std::string>();
  }

  static std::string expected_type(ValueType type) {
    switch (type) {
      case ValueType::toggle: return "true or false";
      case ValueType::count: return "an integer";
      case ValueType::size: return "a size such as \"64MiB\", or an integer of bytes";
      case ValueType::duration: return "a duration in quotes, such as \"250ms\" or \"30s\"";
      case ValueType::text: return "a string in quotes";
    }
    return "a value of another type";
  }

  std::string_view name_;
  Config& config_;
  std::string errors_;
};

/// Value of a setting in the notation of the file.
std::string in_toml(const Setting& setting, const Config& config) {
  auto text = setting.print(config);
  if (setting.type == ValueType::toggle || setting.type == ValueType::count) {
    return text;
  }
  // Every JSON string is a valid TOML basic string.
  std::string quoted;
  sys::append_json(quoted, text);
  return quoted;
}

}  // namespace

Result<void> read_config(std::string_view text, std::string_view name, Config& config) {
  Reader reader(name, config);
  // Without exceptions (toml.hpp): the parser stops at its first syntax error.
  const auto parsed = toml::parse(text, name);
  if (parsed) {
    reader.read(parsed.table());
  } else {
    reader.add_error(parsed.error().source(), parsed.error().description());
  }
  return reader.result();
}

Result<void> read_config_file(const std::filesystem::path& file, Config& config) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad()) {
    return fail(Errc::invalid_argument,
                file.string() + ": cannot read: " + std::generic_category().message(errno));
  }
  return read_config(text, file.string(), config);
}

std::string print_config(const Config& config) {
  std::string out;
  std::string_view section;
  for (const auto& setting : settings()) {
    if (setting.section() != section) {
      out += section.empty() ? "" : "\n";
      section = setting.section();
      out += '[' + std::string(section) + "]\n";
    }
    // The order of settings() keeps the settings of a section together, as TOML requires.
    out += "# " + std::string(setting.help);
    out += setting.expected.empty() ? "" : " (" + setting.expected + ")";
    out += '\n' + std::string(setting.name()) + " = " + in_toml(setting, config) + '\n';
  }
  return out;
}

}  // namespace tenure::server
