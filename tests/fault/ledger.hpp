#pragma once

#include <memory>
#include <mutex>
#include <string>

#include <tenure/ids.hpp>

struct sqlite3;

namespace tenure::fault {

/// SQLite storage behind a fence, shared by several processes. It records accepted and rejected
/// writes in its own order, which the driver merges into the history. Thread safe.
class Ledger {
 public:
  /// Creates missing tables; ends the process on failure.
  explicit Ledger(const std::string& path);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Returns whether the fence admitted the write. A write that the database rejected (busy
  /// timeout) is not recorded.
  bool write(const std::string& resource, FencingToken token);

 private:
  bool run(const std::string& sql);
  void note(const std::string& resource, FencingToken token, bool is_accepted);

  std::mutex mutex_;
  sqlite3* connection_ = nullptr;
};

}  // namespace tenure::fault
