#include "account.hpp"

#include <string_view>
#include <utility>

using tenure::Errc;
using tenure::FenceError;
using tenure::FenceResult;
using tenure::FencingToken;

namespace {

constexpr std::string_view resource = "account";
constexpr int busy_timeout_ms = 20'000;  // others' transactions are short

tenure::Result<void> execute(sqlite3* connection, const char* text) {
  if (sqlite3_exec(connection, text, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return tenure::fail(Errc::unavailable, sqlite3_errmsg(connection));
  }
  return {};
}

FenceError not_checked(tenure::Error error) {
  return {.error = std::move(error)};
}

FenceError sqlite_failed(sqlite3* connection) {
  return not_checked({.code = Errc::unavailable, .detail = sqlite3_errmsg(connection)});
}

/// A statement with its arguments, executed up to its first row.
struct Statement {
  Statement(sqlite3* connection, const char* text) {
    sqlite3_prepare_v2(connection, text, -1, &statement, nullptr);
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement); }

  sqlite3_stmt* statement = nullptr;
};

}  // namespace

tenure::Result<Account> Account::open(const std::string& file, Fenced fenced) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open(file.c_str(), &opened);
  Connection connection(opened);
  if (code != SQLITE_OK) {
    return tenure::fail(Errc::unavailable, file + ": " + sqlite3_errstr(code));
  }
  sqlite3_busy_timeout(opened, busy_timeout_ms);
  for (const char* text :
       {"BEGIN IMMEDIATE",
        "CREATE TABLE IF NOT EXISTS account (id INTEGER PRIMARY KEY CHECK (id = "
        "1), total INTEGER NOT NULL)",
        "INSERT OR IGNORE INTO account VALUES (1, 0)",
        "CREATE TABLE IF NOT EXISTS writes (number INTEGER PRIMARY KEY, who TEXT, "
        "token INTEGER, total INTEGER)"}) {
    if (auto done = execute(opened, text); !done) {
      return std::unexpected(std::move(done).error());
    }
  }
  auto made = tenure::SqliteFence::create_table(*opened);
  if (made) {
    made = execute(opened, "COMMIT");
  }
  if (!made) {
    return std::unexpected(std::move(made).error());
  }
  auto fence = tenure::SqliteFence::on(*opened);
  if (!fence) {
    return std::unexpected(std::move(fence).error());
  }
  return Account(std::move(connection), *std::move(fence), fenced);
}

std::expected<std::int64_t, FenceError> Account::read(FencingToken token) {
  if (auto begun = begin(token); !begun) {
    return std::unexpected(std::move(begun).error());
  }
  std::int64_t total = 0;
  {
    const Statement select(connection_.get(), "SELECT total FROM account");
    if (sqlite3_step(select.statement) != SQLITE_ROW) {
      return std::unexpected(roll_back(sqlite_failed(connection_.get())).error());
    }
    total = sqlite3_column_int64(select.statement, 0);
  }
  if (auto done = commit(); !done) {
    return std::unexpected(std::move(done).error());
  }
  return total;
}

FenceResult Account::write(std::int64_t total, const std::string& who, FencingToken token) {
  if (auto begun = begin(token); !begun) {
    return begun;
  }
  bool written = false;
  {
    const Statement update(connection_.get(), "UPDATE account SET total = ?");
    sqlite3_bind_int64(update.statement, 1, total);
    const Statement note(connection_.get(),
                         "INSERT INTO writes (who, token, total) VALUES (?, ?, ?)");
    sqlite3_bind_text(note.statement, 1, who.c_str(), -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(note.statement, 2, static_cast<std::int64_t>(token.get()));
    sqlite3_bind_int64(note.statement, 3, total);
    written = sqlite3_step(update.statement) == SQLITE_DONE &&
              sqlite3_step(note.statement) == SQLITE_DONE;
  }
  return written ? commit() : roll_back(sqlite_failed(connection_.get()));
}

FenceResult Account::begin(FencingToken token) {
  if (auto begun = execute(connection_.get(), "BEGIN IMMEDIATE"); !begun) {
    return std::unexpected(not_checked(std::move(begun).error()));
  }
  if (fenced_ == Fenced::none) {
    return {};
  }
  if (auto admitted = fence_.admit(resource, token); !admitted) {
    return roll_back(std::move(admitted).error());
  }
  return {};
}

FenceResult Account::commit() {
  if (auto done = execute(connection_.get(), "COMMIT"); !done) {
    return roll_back(not_checked(std::move(done).error()));
  }
  return {};
}

FenceResult Account::roll_back(FenceError why) {
  static_cast<void>(execute(connection_.get(), "ROLLBACK"));
  return std::unexpected(std::move(why));
}
