#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

namespace tenure::server {

/// All that is wrong with a configuration, a line for each.
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

/// An empty path names nothing, and that is fine.
inline void check_readable(std::string_view key, const std::filesystem::path& path,
                           ConfigErrors& errors) {
  if (!path.empty() && !std::ifstream(path)) {
    errors.add(std::string(key) + ": cannot read '" + path.string() + "'");
  }
}

}  // namespace tenure::server
