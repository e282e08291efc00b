#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include <sqlite3.h>

#include <tenure/fence_sqlite.hpp>

/// Whether the account checks its fence. `none` shows the effect of storage without a fence.
enum class Fenced : std::uint8_t { yes, none };

/// A balance in an SQLite file, with a list of its writes. A write with an older token than an
/// earlier write is rejected inside its transaction.
class Account {
 public:
  /// Creates the tables if they do not exist; safe to call concurrently.
  static tenure::Result<Account> open(const std::string& file, Fenced fenced);

  /// Presents the token before it reads: from then on older holders cannot write, so the value
  /// stays valid until the write.
  std::expected<std::int64_t, tenure::FenceError> read(tenure::FencingToken token);

  /// Writes `total` and records `who` as the writer.
  tenure::FenceResult write(std::int64_t total, const std::string& who, tenure::FencingToken token);

 private:
  struct Close {
    void operator()(sqlite3* connection) const noexcept { sqlite3_close_v2(connection); }
  };
  using Connection = std::unique_ptr<sqlite3, Close>;

  Account(Connection connection, tenure::SqliteFence fence, Fenced fenced)
      : connection_(std::move(connection)), fence_(std::move(fence)), fenced_(fenced) {}
  tenure::FenceResult begin(tenure::FencingToken token);
  tenure::FenceResult commit();
  tenure::FenceResult roll_back(tenure::FenceError why);

  Connection connection_;
  tenure::SqliteFence fence_;  // ends before the connection does
  Fenced fenced_;
};
