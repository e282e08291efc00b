#pragma once

#include <memory>
#include <mutex>
#include <string>

#include <tenure/ids.hpp>

struct sqlite3;

namespace tenure::fault {

/// Storage that several processes write to, each write with a fencing token. It lists the writes in
/// its own order, which the driver puts into the history. Thread safe.
class Ledger {
 public:
  /// Makes the tables unless they are there; ends the process if it cannot.
  explicit Ledger(const std::string& path);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Whether the fence let it through. What the database itself refused (it was busy for too long)
  /// is not a write.
  bool write(const std::string& resource, FencingToken token);

 private:
  bool run(const std::string& sql);
  void note(const std::string& resource, FencingToken token, bool is_accepted);

  std::mutex mutex_;
  sqlite3* connection_ = nullptr;
};

}  // namespace tenure::fault
