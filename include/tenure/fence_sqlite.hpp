#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <tenure/error.hpp>
#include <tenure/fence.hpp>
#include <tenure/ids.hpp>

struct sqlite3;       // of sqlite3.h
struct sqlite3_stmt;  // likewise

namespace tenure {

/// Where an SqliteFence keeps its tokens.
struct SqliteFenceOptions {
  /// The table of the tokens: 1 to 63 of a-z, 0-9 and _, no digit in front. Another one only if the
  /// name is taken; whoever writes the same resources must use the same table.
  std::string table = "tenure_fence";
};

/// A fence in an SQLite database, beside what it protects (see fence.hpp for what a fence is). Ask
/// it inside the transaction that writes: the token and the write are then kept or lost together.
/// Link tenure::fence_sqlite.
///
///     BEGIN IMMEDIATE
///     fence.admit("accounts/42", token)     // refused: ROLLBACK, write nothing
///     UPDATE accounts ...
///     COMMIT                                // from here on older tokens are refused
///
/// With a plain BEGIN it works too, but two writers may then meet in the middle of their
/// transactions, where one of them is refused with would_block and has to begin again.
///
/// Belongs to one connection and must end before it does. As thread-safe as that connection.
class SqliteFence {
 public:
  /// Makes the table unless it is there. Part of a transaction if one is open.
  [[nodiscard]] static Result<void> create_table(sqlite3& connection,
                                                 const SqliteFenceOptions& options = {});

  /// A fence for this connection. Without the table: invalid_argument.
  [[nodiscard]] static Result<SqliteFence> on(sqlite3& connection,
                                              const SqliteFenceOptions& options = {});

  /// As Fence::admit(), durable with the COMMIT. What can go wrong besides (not_checked):
  /// no transaction is open: invalid_argument · another connection writes: would_block, after the
  /// connection's busy timeout; roll back and begin again · the disk is full: resource_exhausted ·
  /// anything else that SQLite reports: unavailable. After any refusal roll back.
  [[nodiscard]] Admission admit(std::string_view resource, FencingToken token);

  /// As Fence::admit_once(), otherwise as above. When a COMMIT may or may not have happened, asking
  /// again tells: `reused` means that it has.
  [[nodiscard]] Admission admit_once(std::string_view resource, FencingToken token);

  /// The newest token that has been at `resource`, as this connection sees it; 0 if none has.
  [[nodiscard]] Result<FencingToken> highest(std::string_view resource);

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

  explicit SqliteFence(sqlite3& connection) : connection_(&connection) {}
  static Result<Statement> prepare(sqlite3& connection, const std::string& text);
  Admission decide(const fence::Question& question);

  sqlite3* connection_;
  Statement admit_;
  Statement admit_once_;
  Statement highest_;
};

}  // namespace tenure
