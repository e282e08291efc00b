#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "server/auth/rulebook.hpp"
#include "server/config/toml.hpp"

namespace tenure::server::auth {
namespace {

constexpr std::size_t users_max = 1000;
constexpr std::size_t proofs_max = 64;   ///< Tokens of a user; and certificates.
constexpr std::size_t rules_max = 1000;  ///< Of a user.
/// A reload that somebody asked for by gRPC happens on the thread of the store.
constexpr std::size_t file_bytes_max = std::size_t{1} << 20U;
constexpr std::size_t name_bytes_max = 64;

bool is_user_name(std::string_view name) {
  return !name.empty() && name.size() <= name_bytes_max && std::ranges::all_of(name, [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == '-' || byte == '@';
  });
}

/// Walks through a parsed file and gathers its users, and all that is wrong.
class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name) {}

  void read(const toml::table& file) {
    for (const auto& [key, content] : file) {
      const auto* users = content.as_table();
      if (key.str() != "users" || users == nullptr) {
        complain(key.source(), "there are only users here: [users.NAME]");
        continue;
      }
      for (const auto& [name, user] : *users) {
        read_user(name, user);
      }
    }
    if (complaints_.empty() && entries_.empty()) {
      complain(file.source(), "no user stands here, so that nobody could do anything");
    }
    if (entries_.size() > users_max) {
      complain(file.source(), "more than " + std::to_string(users_max) + " users");
    }
  }

  void complain(const toml::source_region& where, std::string_view why) {
    complaints_ += complaints_.empty() ? "" : "\n";
    complaints_ += std::string(name_) + ':' + std::to_string(where.begin.line) + ':' +
                   std::to_string(where.begin.column) + ": " + std::string(why);
  }

  [[nodiscard]] Result<Rulebook> result() && {
    if (!complaints_.empty()) {
      return fail(Errc::invalid_argument, complaints_);
    }
    auto made = Rulebook::make(std::move(entries_));
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
      complain(key.source(),
               "a user is a table, [users.NAME], and its name has at most 64 letters, digits and "
               "any of . _ - @");
      return;
    }
    Rulebook::Entry entry{.name = name};
    for (const auto& [field, value] : *table) {
      if (field.str() == "tokens") {
        read_tokens(value, entry);
      } else if (field.str() == "certificates") {
        read_certificates(value, entry);
      } else if (field.str() == "rights") {
        read_rights(value, entry);
      } else {
        complain(field.source(), "there is no " + std::string(field.str()) +
                                     " of a user; there are tokens, certificates and rights");
      }
    }
    if (entry.tokens.empty() && entry.certificates.empty()) {
      complain(key.source(), name + " has neither tokens nor certificates: nobody can be it");
    }
    entries_.push_back(std::move(entry));
  }

  /// Calls `take(text)` for each of a list of strings; false from it: it is wrong.
  template <class Take>
  void read_list(const toml::node& value, std::string_view wanted, Take take) {
    const auto* list = value.as_array();
    if (list == nullptr || list->size() > proofs_max) {
      complain(value.source(), wanted);
      return;
    }
    for (const auto& element : *list) {
      const auto text = element.value_exact<std::string>();
      if (!text || !take(*text)) {
        complain(element.source(), wanted);
      }
    }
  }

  void read_tokens(const toml::node& value, Rulebook::Entry& entry) {
    // What stands there is not repeated: somebody may have put the token itself.
    read_list(value, "tokens: a list of at most 64 of \"sha256:…\", which `tenured token` makes",
              [&](const std::string& text) {
                const auto digest = digest_from(text);
                if (digest) {
                  entry.tokens.push_back(*digest);
                }
                return digest.has_value();
              });
  }

  void read_certificates(const toml::node& value, Rulebook::Entry& entry) {
    read_list(value, "certificates: a list of at most 64 names that client certificates have",
              [&](std::string text) {
                const bool is_good = !text.empty() && text.size() <= 1024;
                entry.certificates.push_back(std::move(text));
                return is_good;
              });
  }

  void read_rights(const toml::node& value, Rulebook::Entry& entry) {
    const auto* table = value.as_table();
    if (table == nullptr || table->size() > rules_max) {
      complain(value.source(), "rights: a table of at most 1000 prefixes, { \"app/\" = \"lock\" }");
      return;
    }
    for (const auto& [prefix, content] : *table) {
      const auto word = content.value_exact<std::string>();
      const auto level = word ? level_from(*word) : std::nullopt;
      if (!level) {
        complain(content.source(), "rights: \"none\", \"read\", \"lock\" or \"admin\"");
        continue;
      }
      entry.rules.push_back({.prefix = std::string(prefix.str()), .level = *level});
    }
  }

  std::string_view name_;
  std::vector<Rulebook::Entry> entries_;
  std::string complaints_;
};

}  // namespace

Result<Rulebook> read_rulebook(std::string_view text, std::string_view name) {
  Reader reader(name);
  const auto parsed = toml::parse(text, name);
  if (parsed) {
    reader.read(parsed.table());
  } else {
    reader.complain(parsed.error().source(), parsed.error().description());
  }
  return std::move(reader).result();
}

Result<Rulebook> read_rulebook_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad()) {
    return fail(Errc::invalid_argument,
                file.string() + ": cannot be read: " + std::generic_category().message(errno));
  }
  if (text.size() > file_bytes_max) {
    return fail(Errc::invalid_argument, file.string() + ": has more than 1 MiB");
  }
  return read_rulebook(text, file.string());
}

}  // namespace tenure::server::auth
