#include <array>
#include <memory>
#include <optional>
#include <utility>

#include <libpq-fe.h>

#include <tenure/fence_postgresql.hpp>

#include "fence/token_check.hpp"

namespace tenure {
namespace {

/// Deleter for results of libpq.
struct Clear {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using Reply = std::unique_ptr<PGresult, Clear>;

/// Maps an SQLSTATE (PostgreSQL 15, appendix A).
Errc code_of(std::string_view state) {
  // Transaction rollback (serialization failure, deadlock) and lock_not_available: a retry of the
  // whole transaction may succeed.
  if (state.starts_with("40") || state == "55P03") {
    return Errc::would_block;
  }
  // query_canceled, which includes statement_timeout.
  if (state == "57014") {
    return Errc::timed_out;
  }
  // Insufficient resources: disk full, out of memory, too many connections.
  if (state.starts_with("53")) {
    return Errc::resource_exhausted;
  }
  // Syntax error, missing table or permission, and invalid transaction state: a retry cannot help.
  if (state.starts_with("42") || state.starts_with("25")) {
    return Errc::invalid_argument;
  }
  return Errc::unavailable;
}

/// Error of a failed command. Without an SQLSTATE it comes from libpq itself, for example after the
/// loss of the connection.
Error error_of(pg_conn& connection, const PGresult* result) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  Error error{.code = state == nullptr ? Errc::unavailable : code_of(state),
              .detail = "PostgreSQL: "};
  error.detail += primary == nullptr ? PQerrorMessage(&connection) : primary;
  // PQerrorMessage() ends with a newline.
  while (error.detail.ends_with('\n')) {
    error.detail.pop_back();
  }
  if (error.code == Errc::would_block) {
    error.detail += "; roll back and retry the transaction";
  }
  // The class undefined_table.
  if (state != nullptr && std::string_view(state) == "42P01") {
    error.detail += "; PostgresFence::create_table() creates it";
  }
  return error;
}

/// Error if the connection cannot be used now, or std::nullopt. A transaction is required, because
/// the row lock of the check has to last until the write is committed. Outside one, another token
/// could be admitted between the check and the write.
std::optional<Error> validate(pg_conn& connection) {
  switch (PQtransactionStatus(&connection)) {
    case PQTRANS_INTRANS: return std::nullopt;
    case PQTRANS_IDLE:
      return Error{.code = Errc::invalid_argument,
                   .detail =
                       "no transaction is open on the connection: BEGIN, check the fence, "
                       "write, COMMIT"};
    case PQTRANS_ACTIVE:
      return Error{.code = Errc::invalid_argument,
                   .detail = "a command is in progress on the connection; read its results first"};
    case PQTRANS_INERROR:
      return Error{.code = Errc::invalid_argument,
                   .detail = "the transaction has failed; roll back and retry it"};
    case PQTRANS_UNKNOWN: break;
  }
  return Error{.code = Errc::unavailable, .detail = "the connection to PostgreSQL is lost"};
}

/// Stores the token unless a larger one is stored. Locks the row in both cases (PostgreSQL 15,
/// INSERT, ON CONFLICT DO UPDATE), so no other token can be stored before the end of the
/// transaction.
std::string admit_text(const std::string& table, std::string_view comparison) {
  std::string text = "INSERT INTO " + table + " AS seen (resource, token) VALUES ($1, $2) ";
  text += "ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE excluded.token ";
  text += comparison;
  return text + " seen.token RETURNING seen.token";
}

/// Runs `text` with the resource as $1 and the token, if there is one, as $2.
/// REQUIRES: the resource is not empty, nor longer than resource_bytes_max.
Reply run(pg_conn& connection, const std::string& text, std::string_view resource,
          std::optional<FencingToken> token) {
  constexpr Oid bytes_type = 17;
  constexpr Oid integer_type = 20;
  constexpr std::array types{bytes_type, integer_type};
  constexpr std::array formats{1, 0};  // Binary name, decimal token.
  const auto digits = std::to_string(token.value_or(FencingToken{}).get());
  // Bytes need no terminator in binary format; the digits are text, whose length libpq ignores.
  const std::array values{&resource.front(), digits.c_str()};
  const std::array lengths{static_cast<int>(resource.size()), 0};
  const int count = token ? 2 : 1;
  return Reply(PQexecParams(&connection, text.c_str(), count, types.data(), values.data(),
                            lengths.data(), formats.data(), 0));
}

}  // namespace

Result<void> PostgresFence::create_table(pg_conn& connection, const PostgresFenceOptions& options) {
  if (auto why = fence::validate_table(options.table)) {
    return std::unexpected(*std::move(why));
  }
  // Concurrent CREATE TABLE IF NOT EXISTS can fail, so an advisory lock serializes them. Statements
  // in one PQexec are one transaction. The number is "tenure" in ASCII.
  const auto text = "SELECT pg_advisory_xact_lock(127978993709669); CREATE TABLE IF NOT EXISTS " +
                    options.table +
                    " (resource bytea PRIMARY KEY, token bigint NOT NULL CHECK (token > 0))";
  const Reply reply(PQexec(&connection, text.c_str()));
  if (PQresultStatus(reply.get()) != PGRES_COMMAND_OK) {
    return std::unexpected(error_of(connection, reply.get()));
  }
  return {};
}

Result<PostgresFence> PostgresFence::on(pg_conn& connection, const PostgresFenceOptions& options) {
  if (auto why = fence::validate_table(options.table)) {
    return std::unexpected(*std::move(why));
  }
  return PostgresFence(connection, options.table);
}

FenceResult PostgresFence::admit(std::string_view resource, FencingToken token) {
  return decide({.resource = resource, .token = token, .repeated = fence::Repeated::admit});
}

FenceResult PostgresFence::admit_once(std::string_view resource, FencingToken token) {
  return decide({.resource = resource, .token = token, .repeated = fence::Repeated::reject});
}

Result<FencingToken> PostgresFence::highest(std::string_view resource) {
  if (auto why = fence::validate(resource)) {
    return std::unexpected(*std::move(why));
  }
  const auto text = "SELECT token FROM " + table_ + " WHERE resource = $1";
  // Reads the row in the transaction of the caller, if there is one, and takes no lock.
  const auto reply = run(*connection_, text, resource, std::nullopt);
  if (PQresultStatus(reply.get()) != PGRES_TUPLES_OK) {
    return std::unexpected(error_of(*connection_, reply.get()));
  }
  if (PQntuples(reply.get()) == 0) {
    return FencingToken{};
  }
  const auto token = fence::token_from(PQgetvalue(reply.get(), 0, 0));
  if (!token) {
    // Another program has changed the table. No token can be compared with such a value.
    return fail(Errc::unavailable, "the table " + table_ + " contains an invalid token");
  }
  return *token;
}

FenceResult PostgresFence::decide(const fence::TokenCheck& check) {
  if (auto why = validate(check)) {
    return not_checked(check, *std::move(why));
  }
  if (auto why = validate(*connection_)) {
    return not_checked(check, *std::move(why));
  }
  const auto text = admit_text(table_, check.repeated == fence::Repeated::admit ? ">=" : ">");
  const auto reply = run(*connection_, text, check.resource, check.token);
  if (PQresultStatus(reply.get()) != PGRES_TUPLES_OK) {
    return not_checked(check, error_of(*connection_, reply.get()));
  }
  // A returned row is the proof that this token is stored.
  if (PQntuples(reply.get()) > 0) {
    return {};
  }
  // No row: a larger token is stored, an equal one with admit_once(), or the table rejected the
  // write silently. The row is locked, so the second query sees the value that decided.
  const auto highest = this->highest(check.resource);
  if (!highest) {
    return not_checked(check, highest.error());
  }
  return not_stored(check, *highest);
}

}  // namespace tenure
