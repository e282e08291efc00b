// docs/explanation/fencing.md shows parts of this.

#include <iostream>
#include <string>

#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include <tenure/fence_postgresql.hpp>
#include <tenure/fence_redis.hpp>
#include <tenure/fence_sqlite.hpp>

using tenure::FenceResult;
using tenure::FencingToken;

namespace {

FenceResult write_sqlite(sqlite3* connection, FencingToken token) {
  const auto execute = [&](const char* text) {
    sqlite3_exec(connection, text, nullptr, nullptr, nullptr);
  };
  tenure::SqliteFence::create_table(*connection).or_throw();     // once, as part of your schema
  auto fence = tenure::SqliteFence::on(*connection).or_throw();  // per connection; ends before it

  execute("BEGIN IMMEDIATE");
  if (auto admitted = fence.admit("accounts/42", token); !admitted) {
    execute("ROLLBACK");
    return admitted;
  }
  execute("UPDATE accounts SET balance = 70 WHERE id = 42");
  execute("COMMIT");
  return {};
}

FenceResult write_postgres(PGconn* connection, FencingToken token) {
  const auto execute = [&](const char* text) { PQclear(PQexec(connection, text)); };
  execute("BEGIN");
  auto fence = tenure::PostgresFence::on(*connection).or_throw();
  if (auto admitted = fence.admit("accounts/42", token); !admitted) {
    execute("ROLLBACK");
    return admitted;
  }
  execute("UPDATE accounts SET balance = 70 WHERE id = 42");
  execute("COMMIT");
  return {};
}

FenceResult write_redis(redisContext* connection, FencingToken token) {
  auto fence = tenure::RedisFence::on(*connection).or_throw();
  return fence.admit("accounts/42", token, {{"HSET", "{accounts/42}", {"balance", "70"}}});
}

}  // namespace

int main(int count, char** words) {
  sqlite3* connection = nullptr;
  if (sqlite3_open(":memory:", &connection) != SQLITE_OK) {
    return 1;
  }
  const bool is_written = write_sqlite(connection, FencingToken{100}).has_value();
  const auto late = write_sqlite(connection, FencingToken{99});
  sqlite3_close(connection);
  if (!is_written || late) {
    return 1;
  }
  std::cout << to_string(late.error()) << '\n';

  // There are no servers here: that the other two can be linked is all.
  PGconn* nowhere = PQconnectdb("host=/nowhere");
  const bool is_refused = !write_postgres(nowhere, FencingToken{1}).has_value();
  PQfinish(nowhere);
  if (count > 1 && !write_redis(redisConnectUnix(words[1]), FencingToken{1})) {
    return 1;
  }
  return is_refused ? 0 : 1;
}
