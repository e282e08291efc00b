#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

namespace tenure::server {

/// Errors of a configuration, one line each. A start reports all of them at once, so that one
/// attempt suffices to fix a file. Not thread safe.
class ConfigErrors {
 public:
  void add(std::string_view line) {
    text_ += text_.empty() ? "" : "\n";
    text_ += line;
  }
  [[nodiscard]] Result<void> result() const {
    return text_.empty() ? Result<void>{} : fail(Errc::invalid_argument, text_);
  }

 private:
  std::string text_;
};

/// Adds an error if the file cannot be opened. An empty path means that the setting is unset.
/// A file that becomes unreadable later is reported when it is loaded.
inline void check_readable(std::string_view key, const std::filesystem::path& path,
                           ConfigErrors& errors) {
  if (!path.empty() && !std::ifstream(path)) {
    errors.add(std::string(key) + ": cannot read '" + path.string() + "'");
  }
}

}  // namespace tenure::server
