#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <tenure/error.hpp>
#include <tenure/fence.hpp>
#include <tenure/ids.hpp>

struct sqlite3;       // of sqlite3.h
struct sqlite3_stmt;  // of sqlite3.h

namespace tenure {

/// How an SqliteFence stores its tokens.
struct SqliteFenceOptions {
  /// Table of the tokens: 1 to 63 characters of a-z, 0-9 and _, not starting with a digit. Change
  /// it only if the name is taken: all writers of a resource must use the same table.
  std::string table = "tenure_fence";
};

/// Fence in an SQLite database, beside the data it protects (fence.hpp explains fences). Call it in
/// the transaction that writes, so that the token and the write are committed atomically. Link
/// tenure::fence_sqlite.
///
///     BEGIN IMMEDIATE
///     fence.admit("accounts/42", token)     // rejected: ROLLBACK, write nothing
///     UPDATE accounts ...
///     COMMIT                                // from now on smaller tokens are rejected
///
/// A plain BEGIN works too, but two writers may then conflict in the middle of their transactions;
/// one of them gets would_block and has to retry.
///
/// Uses one connection and must be destroyed before it. As thread safe as the connection.
class SqliteFence {
 public:
  /// Creates the table unless it exists. Part of the transaction if one is open.
  [[nodiscard]] static Result<void> create_table(sqlite3& connection,
                                                 const SqliteFenceOptions& options = {});

  /// A fence for this connection. invalid_argument if the table is missing.
  [[nodiscard]] static Result<SqliteFence> on(sqlite3& connection,
                                              const SqliteFenceOptions& options = {});

  /// As Fence::admit(), durable with the COMMIT. Roll back after every error. Further errors
  /// (not_checked):
  ///   - invalid_argument: no transaction is open;
  ///   - would_block: the busy timeout expired while another connection wrote; retry the
  ///     transaction;
  ///   - resource_exhausted: disk full;
  ///   - unavailable: everything else that SQLite reports.
  [[nodiscard]] FenceResult admit(std::string_view resource, FencingToken token);

  /// As Fence::admit_once(), otherwise as above. Also resolves a COMMIT with unknown outcome:
  /// repeat the call; `reused` means that it was committed.
  [[nodiscard]] FenceResult admit_once(std::string_view resource, FencingToken token);

  /// Largest token admitted for `resource`, as visible to this connection; 0 if there is none.
  [[nodiscard]] Result<FencingToken> highest(std::string_view resource);

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

  explicit SqliteFence(sqlite3& connection) : connection_(&connection) {}
  static Result<Statement> prepare(sqlite3& connection, const std::string& text);
  FenceResult decide(const fence::TokenCheck& check);

  sqlite3* connection_;
  Statement admit_;
  Statement admit_once_;
  Statement highest_;
};

}  // namespace tenure
