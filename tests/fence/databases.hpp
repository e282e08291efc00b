#pragma once

#include <memory>
#include <string>

#include "fence/storage.hpp"

namespace tenure::test {

/// A real database that the test started, with nothing in it. Throws, and so fails the test, if it
/// cannot be started.
class Database {
 public:
  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  virtual ~Database() = default;

  /// As connect_storage() takes it.
  [[nodiscard]] virtual std::string address() const = 0;
  /// Kills the server without warning and starts it again on the same files.
  virtual void crash() = 0;
  /// Forgets everything.
  virtual void wipe() = 0;
};

/// "sqlite", "postgresql" or "redis". Started when it is asked for first, and then kept until the
/// end of the program: an initdb takes a second.
[[nodiscard]] Database& database(const std::string& kind);

}  // namespace tenure::test
