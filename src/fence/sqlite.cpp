#include <cstdint>
#include <utility>

#include <sqlite3.h>

#include <tenure/fence_sqlite.hpp>

#include "fence/token_check.hpp"

namespace tenure {
namespace {

/// Maps a result code of SQLite to the next step of the caller.
Errc code_of(int answer) {
  switch (answer & 0xFF) {  // The other bits are subtypes of the error.
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return Errc::would_block;
    case SQLITE_FULL:
    case SQLITE_NOMEM: return Errc::resource_exhausted;
    case SQLITE_ERROR:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_MISUSE: return Errc::invalid_argument;
    default: return Errc::unavailable;
  }
}

/// REQUIRES: no other call on the connection since the failure, which would replace the message.
Error error_of(sqlite3& connection, int answer) {
  const auto code = code_of(answer);
  std::string detail = "SQLite: ";
  detail += sqlite3_errmsg(&connection);
  if (code == Errc::would_block) {
    detail += "; roll back and retry the transaction";
  }
  return {.code = code, .detail = std::move(detail)};
}

/// Resets a prepared statement after its use. Without the reset, the statement would keep its
/// locks; without the clearing, it would keep a pointer to the name.
class Use {
 public:
  explicit Use(sqlite3_stmt* statement) : statement_(statement) {}
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }

  /// REQUIRES: `resource` has at most resource_bytes_max bytes and outlives this object.
  int bind_resource(std::string_view resource) {
    return sqlite3_bind_blob(statement_, 1, resource.data(), static_cast<int>(resource.size()),
                             SQLITE_STATIC);
  }
  int bind_token(FencingToken token) {
    return sqlite3_bind_int64(statement_, 2, static_cast<sqlite3_int64>(token.get()));
  }
  int step() { return sqlite3_step(statement_); }
  FencingToken token() {
    return FencingToken{static_cast<std::uint64_t>(sqlite3_column_int64(statement_, 0))};
  }

 private:
  sqlite3_stmt* statement_;
};

/// Stores the token unless a larger one is stored. A single statement, so that SQLite acquires the
/// write lock before it reads: no other token can be stored before the end of the transaction.
std::string admit_text(const std::string& table, std::string_view comparison) {
  std::string text = "INSERT INTO " + table + " (resource, token) VALUES (?1, ?2) ";
  text += "ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE excluded.token ";
  text += comparison;
  text += ' ';
  return text + table + ".token";
}

}  // namespace

void SqliteFence::Finalize::operator()(sqlite3_stmt* statement) const noexcept {
  sqlite3_finalize(statement);
}

Result<void> SqliteFence::create_table(sqlite3& connection, const SqliteFenceOptions& options) {
  if (auto why = fence::validate_table(options.table)) {
    return std::unexpected(*std::move(why));
  }
  // The constraints reject what no comparison could order. WITHOUT ROWID stores each row in the
  // index of the primary key, so a check searches one tree.
  const auto text = "CREATE TABLE IF NOT EXISTS " + options.table +
                    " (resource BLOB NOT NULL PRIMARY KEY,"
                    " token INTEGER NOT NULL CHECK (token > 0)) WITHOUT ROWID";
  const int answer = sqlite3_exec(&connection, text.c_str(), nullptr, nullptr, nullptr);
  if (answer != SQLITE_OK) {
    return std::unexpected(error_of(connection, answer));
  }
  return {};
}

Result<SqliteFence> SqliteFence::on(sqlite3& connection, const SqliteFenceOptions& options) {
  if (auto why = fence::validate_table(options.table)) {
    return std::unexpected(*std::move(why));
  }
  auto admit = prepare(connection, admit_text(options.table, ">="));
  if (!admit) {
    return std::unexpected(std::move(admit).error());
  }
  auto admit_once = prepare(connection, admit_text(options.table, ">"));
  if (!admit_once) {
    return std::unexpected(std::move(admit_once).error());
  }
  auto highest = prepare(connection, "SELECT token FROM " + options.table + " WHERE resource = ?1");
  if (!highest) {
    return std::unexpected(std::move(highest).error());
  }
  SqliteFence made(connection);
  made.admit_ = *std::move(admit);
  made.admit_once_ = *std::move(admit_once);
  made.highest_ = *std::move(highest);
  return made;
}

FenceResult SqliteFence::admit(std::string_view resource, FencingToken token) {
  return decide({.resource = resource, .token = token, .repeated = fence::Repeated::admit});
}

FenceResult SqliteFence::admit_once(std::string_view resource, FencingToken token) {
  return decide({.resource = resource, .token = token, .repeated = fence::Repeated::reject});
}

Result<FencingToken> SqliteFence::highest(std::string_view resource) {
  if (auto why = fence::validate(resource)) {
    return std::unexpected(*std::move(why));
  }
  Use use(highest_.get());
  int answer = use.bind_resource(resource);
  // A failure of an earlier call is kept in `answer` and reported below.
  if (answer == SQLITE_OK) {
    answer = use.step();
  }
  if (answer == SQLITE_ROW) {
    return use.token();
  }
  // No row: no token has been admitted for this resource.
  if (answer == SQLITE_DONE) {
    return FencingToken{};
  }
  return std::unexpected(error_of(*connection_, answer));
}

Result<SqliteFence::Statement> SqliteFence::prepare(sqlite3& connection, const std::string& text) {
  sqlite3_stmt* statement = nullptr;
  // Prepared once for each fence: a check then costs no parsing. PERSISTENT, because the statement
  // lives as long as the fence.
  const int answer = sqlite3_prepare_v3(&connection, text.c_str(), -1, SQLITE_PREPARE_PERSISTENT,
                                        &statement, nullptr);
  if (answer != SQLITE_OK) {
    auto error = error_of(connection, answer);
    if (error.detail.contains("no such table")) {
      error.detail += "; SqliteFence::create_table() creates it";
    }
    return std::unexpected(std::move(error));
  }
  return Statement(statement);
}

FenceResult SqliteFence::decide(const fence::TokenCheck& check) {
  if (auto why = validate(check)) {
    return not_checked(check, *std::move(why));
  }
  // In autocommit mode the write lock would end with the statement, before the caller has written.
  if (sqlite3_get_autocommit(connection_) != 0) {
    return not_checked(check, {.code = Errc::invalid_argument,
                               .detail = "no transaction is open on the connection: BEGIN "
                                         "IMMEDIATE, check the fence, write, COMMIT"});
  }
  {
    // In a block of its own: the statement is reset before highest() runs the next one.
    Use use(check.repeated == fence::Repeated::admit ? admit_.get() : admit_once_.get());
    int answer = use.bind_resource(check.resource);
    if (answer == SQLITE_OK) {
      answer = use.bind_token(check.token);
    }
    if (answer == SQLITE_OK) {
      answer = use.step();
    }
    if (answer != SQLITE_DONE) {
      return not_checked(check, error_of(*connection_, answer));
    }
  }
  // A changed row is the proof that this token is stored.
  if (sqlite3_changes(connection_) > 0) {
    return {};
  }
  // No change: a larger token is stored, or an equal one with admit_once(). The transaction holds
  // the write lock, so the value cannot change before this query.
  const auto highest = this->highest(check.resource);
  if (!highest) {
    return not_checked(check, highest.error());
  }
  return not_stored(check, *highest);
}

}  // namespace tenure
