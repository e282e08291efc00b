#include "fault/ledger.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <sqlite3.h>

#include <tenure/fence_sqlite.hpp>

#include "fault/recorder.hpp"

namespace tenure::fault {
namespace {

constexpr int busy_ms = 5'000;

}  // namespace

Ledger::Ledger(const std::string& path) {
  // The machine does not crash in these tests, so syncs would only slow them down.
  const bool is_open = sqlite3_open(path.c_str(), &connection_) == SQLITE_OK &&
                       sqlite3_busy_timeout(connection_, busy_ms) == SQLITE_OK &&
                       run("PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL;") &&
                       run("BEGIN IMMEDIATE") &&
                       run("CREATE TABLE IF NOT EXISTS writes (number INTEGER PRIMARY KEY "
                           "AUTOINCREMENT, at INTEGER, resource TEXT, token INTEGER, "
                           "accepted INTEGER);");
  if (!is_open || !SqliteFence::create_table(*connection_) || !run("COMMIT")) {
    std::fprintf(stderr, "tenure_workload: %s: %s\n", path.c_str(), sqlite3_errmsg(connection_));
    std::_Exit(1);
  }
}

Ledger::~Ledger() {
  sqlite3_close(connection_);
}

bool Ledger::write(const std::string& resource, FencingToken token) {
  const std::lock_guard guard(mutex_);
  if (!run("BEGIN IMMEDIATE")) {
    return false;
  }
  auto fence = SqliteFence::on(*connection_);
  if (!fence) {
    run("ROLLBACK");
    return false;
  }
  const auto admitted = fence->admit(resource, token);
  if (admitted) {
    note(resource, token, true);
    return run("COMMIT");
  }
  run("ROLLBACK");
  if (admitted.error().reason == FenceError::Reason::stale && run("BEGIN IMMEDIATE")) {
    note(resource, token, false);
    run("COMMIT");
  }
  return false;
}

void Ledger::note(const std::string& resource, FencingToken token, bool is_accepted) {
  run("INSERT INTO writes (at, resource, token, accepted) VALUES (" + std::to_string(now()) +
      ", '" + resource + "', " + std::to_string(token.get()) + ", " + (is_accepted ? "1" : "0") +
      ")");
}

bool Ledger::run(const std::string& sql) {
  return sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
}

}  // namespace tenure::fault
