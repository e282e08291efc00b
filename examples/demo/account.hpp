#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include <sqlite3.h>

#include <tenure/fence_sqlite.hpp>

/// Whether the account asks its fence. `none` shows what happens where storage does not.
enum class Fenced : std::uint8_t { yes, none };

/// One number in an SQLite file, and a list of who wrote what to it. Whoever comes with an older
/// token than somebody before is refused, inside the transaction that would write.
class Account {
 public:
  /// Makes the tables if nobody has; several may do so at once.
  static tenure::Result<Account> open(const std::string& file, Fenced fenced);

  /// Shows the token before it reads: from here on older holders can no longer write, so what is
  /// read stays true until the write.
  std::expected<std::int64_t, tenure::Refusal> read(tenure::FencingToken token);

  /// Writes `total` in the name of `who`.
  tenure::Admission write(std::int64_t total, const std::string& who, tenure::FencingToken token);

 private:
  struct Close {
    void operator()(sqlite3* connection) const noexcept { sqlite3_close_v2(connection); }
  };
  using Connection = std::unique_ptr<sqlite3, Close>;

  Account(Connection connection, tenure::SqliteFence fence, Fenced fenced)
      : connection_(std::move(connection)), fence_(std::move(fence)), fenced_(fenced) {}
  tenure::Admission begin(tenure::FencingToken token);
  tenure::Admission commit();
  tenure::Admission roll_back(tenure::Refusal why);

  Connection connection_;
  tenure::SqliteFence fence_;  // ends before the connection does
  Fenced fenced_;
};
