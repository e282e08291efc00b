#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tenure/error.hpp>
#include <tenure/fence.hpp>
#include <tenure/ids.hpp>

struct pg_conn;  // PGconn of libpq-fe.h

namespace tenure {

/// How a PostgresFence stores its tokens.
struct PostgresFenceOptions {
  /// Table of the tokens: 1 to 63 characters of a-z, 0-9 and _, not starting with a digit; resolved
  /// by the connection's search_path. Change it only if the name is taken: all writers of a
  /// resource must use the same table.
  std::string table = "tenure_fence";
};

/// Fence in a PostgreSQL database, beside the data it protects (fence.hpp explains fences). Call it
/// in the transaction that writes, so that the token and the write are committed atomically. Link
/// tenure::fence_postgresql.
///
///     BEGIN
///     fence.admit("accounts/42", token)     // rejected: ROLLBACK, write nothing
///     UPDATE accounts ...
///     COMMIT                                // from now on smaller tokens are rejected
///
/// An admitted writer holds the row lock of the resource until its transaction ends, so the next
/// check waits for it and then sees the new token. Writers of different resources do not block each
/// other. Works in every isolation level.
///
/// Uses one connection, on which no command may be in progress, and keeps no state on the server,
/// so it can be constructed for each transaction of a connection pool. As thread safe as the
/// connection.
class PostgresFence {
 public:
  /// Creates the table unless it exists. Several connections may do so concurrently. Part of the
  /// transaction if one is open.
  [[nodiscard]] static Result<void> create_table(pg_conn& connection,
                                                 const PostgresFenceOptions& options = {});

  /// A fence for this connection. Sends nothing to the server: a missing table is reported when the
  /// fence is used.
  [[nodiscard]] static Result<PostgresFence> on(pg_conn& connection,
                                                const PostgresFenceOptions& options = {});

  /// As Fence::admit(), durable with the COMMIT. Roll back after every error. Further errors
  /// (not_checked):
  ///   - invalid_argument: no transaction is open, or the table is missing;
  ///   - would_block: deadlock, serialization failure or lock_timeout; retry the transaction;
  ///   - timed_out: statement_timeout;
  ///   - resource_exhausted: disk full;
  ///   - unavailable: connection lost, and everything else.
  [[nodiscard]] FenceResult admit(std::string_view resource, FencingToken token);

  /// As Fence::admit_once(), otherwise as above. Also resolves a COMMIT with unknown outcome:
  /// repeat the call; `reused` means that it was committed.
  [[nodiscard]] FenceResult admit_once(std::string_view resource, FencingToken token);

  /// Largest token admitted for `resource`, as visible to this connection; 0 if there is none.
  [[nodiscard]] Result<FencingToken> highest(std::string_view resource);

 private:
  PostgresFence(pg_conn& connection, std::string table)
      : connection_(&connection), table_(std::move(table)) {}
  FenceResult decide(const fence::TokenCheck& check);

  pg_conn* connection_;
  std::string table_;
};

}  // namespace tenure
