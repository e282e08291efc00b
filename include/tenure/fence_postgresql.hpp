#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tenure/error.hpp>
#include <tenure/fence.hpp>
#include <tenure/ids.hpp>

struct pg_conn;  // PGconn of libpq-fe.h

namespace tenure {

/// Where a PostgresFence keeps its tokens.
struct PostgresFenceOptions {
  /// The table of the tokens: 1 to 63 of a-z, 0-9 and _, no digit in front; found by the
  /// connection's search_path. Another one only if the name is taken; whoever writes the same
  /// resources must use the same table.
  std::string table = "tenure_fence";
};

/// A fence in a PostgreSQL database, beside what it protects (see fence.hpp for what a fence is).
/// Ask it inside the transaction that writes: the token and the write are then kept or lost
/// together. Link tenure::fence_postgresql.
///
///     BEGIN
///     fence.admit("accounts/42", token)     // refused: ROLLBACK, write nothing
///     UPDATE accounts ...
///     COMMIT                                // from here on older tokens are refused
///
/// Who has been admitted keeps the row of the resource locked until its transaction ends, so the
/// next one who asks waits for that end and then meets the new token. Writers of different
/// resources do not meet. Every isolation level will do.
///
/// Belongs to one connection, on which no command is in progress, and keeps nothing on the server:
/// it may be made anew for each transaction of a pool. As thread-safe as that connection.
class PostgresFence {
 public:
  /// Makes the table unless it is there; several connections may do it at once. Part of a
  /// transaction if one is open.
  [[nodiscard]] static Result<void> create_table(pg_conn& connection,
                                                 const PostgresFenceOptions& options = {});

  /// A fence for this connection. The server is not asked: a table that is missing shows when the
  /// fence is used.
  [[nodiscard]] static Result<PostgresFence> on(pg_conn& connection,
                                                const PostgresFenceOptions& options = {});

  /// As Fence::admit(), durable with the COMMIT. What can go wrong besides (not_checked):
  /// no transaction is open, or the table is missing: invalid_argument · a deadlock, a
  /// serialization failure, a lock_timeout: would_block; roll back and begin again · a
  /// statement_timeout: timed_out · a full disk: resource_exhausted · a broken connection and
  /// anything else: unavailable. After any refusal roll back.
  [[nodiscard]] Admission admit(std::string_view resource, FencingToken token);

  /// As Fence::admit_once(), otherwise as above. When a COMMIT may or may not have happened, asking
  /// again tells: `reused` means that it has.
  [[nodiscard]] Admission admit_once(std::string_view resource, FencingToken token);

  /// The newest token that has been at `resource`, as this connection sees it; 0 if none has.
  [[nodiscard]] Result<FencingToken> highest(std::string_view resource);

 private:
  PostgresFence(pg_conn& connection, std::string table)
      : connection_(&connection), table_(std::move(table)) {}
  Admission decide(const fence::Question& question);

  pg_conn* connection_;
  std::string table_;
};

}  // namespace tenure
