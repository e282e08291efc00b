#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "server/auth/policy.hpp"
#include "server/config/toml.hpp"

namespace tenure::server::auth {
namespace {

// Limits of the file; every lookup stays fast, and an error in a generated file is noticed.
constexpr std::size_t users_max = 1000;
constexpr std::size_t credentials_max =
    64;  ///< Maximum number of tokens, and of certificates, of a user.
constexpr std::size_t rules_max = 1000;  ///< Maximum number of rules of a user.
/// A reload by gRPC parses the file on the store's thread, which must not block for long.
constexpr std::size_t file_bytes_max = std::size_t{1} << 20U;
constexpr std::size_t name_bytes_max = 64;

/// Excludes '/', which separates the user from the label in client names.
bool is_user_name(std::string_view name) {
  return !name.empty() && name.size() <= name_bytes_max && std::ranges::all_of(name, [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-' || byte == '@';
  });
}

/// Converts the parsed file into policy entries and collects all errors.
class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name) {}

  void read(const toml::table& file) {
    for (const auto& [key, content] : file) {
      const auto* users = content.as_table();
      if (key.str() != "users" || users == nullptr) {
        add_error(key.source(), "unknown key; the file contains only tables [users.NAME]");
        continue;
      }
      for (const auto& [name, user] : *users) {
        read_user(name, user);
      }
    }
    // Most likely a truncated or wrong file; accepting it would lock out all users.
    if (errors_.empty() && entries_.empty()) {
      add_error(file.source(), "no users are defined; every request would be denied");
    }
    if (entries_.size() > users_max) {
      add_error(file.source(), "more than " + std::to_string(users_max) + " users");
    }
  }

  void add_error(const toml::source_region& where, std::string_view why) {
    errors_ += errors_.empty() ? "" : "\n";
    errors_ += std::string(name_) + ':' + std::to_string(where.begin.line) + ':' +
               std::to_string(where.begin.column) + ": " + std::string(why);
  }

  [[nodiscard]] Result<Policy> result() && {
    if (!errors_.empty()) {
      return fail(Errc::invalid_argument, errors_);
    }
    // Conflicts between users have no single position, so their errors name only the file.
    auto made = Policy::make(std::move(entries_));
    if (!made) {
      return fail(Errc::invalid_argument, std::string(name_) + ": " + made.error().detail);
    }
    return made;
  }

 private:
  void read_user(const toml::key& key, const toml::node& content) {
    const std::string name(key.str());
    const auto* table = content.as_table();
    if (!is_user_name(name) || table == nullptr) {
      add_error(key.source(),
                "a user is a table [users.NAME] with a name of at most 64 letters, digits and "
                "the characters . _ - @");
      return;
    }
    Policy::Entry entry{.name = name};
    for (const auto& [field, value] : *table) {
      if (field.str() == "tokens") {
        read_tokens(value, entry);
      } else if (field.str() == "certificates") {
        read_certificates(value, entry);
      } else if (field.str() == "rights") {
        read_rights(value, entry);
      } else {
        add_error(field.source(), "unknown field " + std::string(field.str()) +
                                      "; a user has tokens, certificates and rights");
      }
    }
    if (entry.tokens.empty() && entry.certificates.empty()) {
      add_error(key.source(),
                name + " has neither tokens nor certificates and cannot authenticate");
    }
    entries_.push_back(std::move(entry));
  }

  /// Calls `take(text)` for each string of a list; a false result reports `wanted` as the error.
  template <class Take>
  void read_list(const toml::node& value, std::string_view wanted, Take take) {
    const auto* list = value.as_array();
    if (list == nullptr || list->size() > credentials_max) {
      add_error(value.source(), wanted);
      return;
    }
    for (const auto& element : *list) {
      const auto text = element.value_exact<std::string>();
      if (!text || !take(*text)) {
        add_error(element.source(), wanted);
      }
    }
  }

  void read_tokens(const toml::node& value, Policy::Entry& entry) {
    // The error does not repeat the value: it may be the token itself.
    read_list(value,
              "tokens: a list of at most 64 digests \"sha256:…\"; `tenured token` prints one",
              [&](const std::string& text) {
                const auto digest = digest_from(text);
                if (digest) {
                  entry.tokens.push_back(*digest);
                }
                return digest.has_value();
              });
  }

  void read_certificates(const toml::node& value, Policy::Entry& entry) {
    read_list(value, "certificates: a list of at most 64 names in client certificates",
              [&](std::string text) {
                const bool is_good = !text.empty() && text.size() <= 1024;
                entry.certificates.push_back(std::move(text));
                return is_good;
              });
  }

  void read_rights(const toml::node& value, Policy::Entry& entry) {
    const auto* table = value.as_table();
    if (table == nullptr || table->size() > rules_max) {
      add_error(value.source(),
                "rights: a table of at most 1000 prefixes, such as { \"app/\" = \"lock\" }");
      return;
    }
    for (const auto& [prefix, content] : *table) {
      const auto word = content.value_exact<std::string>();
      const auto level = word ? level_from(*word) : std::nullopt;
      if (!level) {
        add_error(content.source(), "rights: expected \"none\", \"read\", \"lock\" or \"admin\"");
        continue;
      }
      entry.rules.push_back({.prefix = std::string(prefix.str()), .level = *level});
    }
  }

  std::string_view name_;
  std::vector<Policy::Entry> entries_;
  std::string errors_;
};

}  // namespace

Result<Policy> parse_policy(std::string_view text, std::string_view name) {
  Reader reader(name);
  const auto parsed = toml::parse(text, name);
  if (parsed) {
    reader.read(parsed.table());
  } else {
    reader.add_error(parsed.error().source(), parsed.error().description());
  }
  return std::move(reader).result();
}

Result<Policy> load_policy_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad()) {
    return fail(Errc::invalid_argument, file.string() + ": cannot read the file: " +
                                            std::generic_category().message(errno));
  }
  if (text.size() > file_bytes_max) {
    return fail(Errc::invalid_argument, file.string() + ": file is larger than 1 MiB");
  }
  return parse_policy(text, file.string());
}

}  // namespace tenure::server::auth
