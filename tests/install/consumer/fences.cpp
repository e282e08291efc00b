#include <iostream>

#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include <tenure/fence_postgresql.hpp>
#include <tenure/fence_redis.hpp>
#include <tenure/fence_sqlite.hpp>

int main() {
  sqlite3* connection = nullptr;
  if (sqlite3_open(":memory:", &connection) != SQLITE_OK ||
      !tenure::SqliteFence::create_table(*connection)) {
    return 1;
  }
  {
    auto fence = tenure::SqliteFence::on(*connection).value();
    sqlite3_exec(connection, "BEGIN", nullptr, nullptr, nullptr);
    if (!fence.admit("a", tenure::FencingToken{100})) {
      return 1;
    }
    sqlite3_exec(connection, "COMMIT", nullptr, nullptr, nullptr);
    std::cout << "admitted: " << fence.highest("a").value().get() << '\n';
  }
  sqlite3_close(connection);

  PGconn* nowhere = PQconnectdb("host=/nowhere");
  const auto refused =
      tenure::PostgresFence::on(*nowhere).value().admit("a", tenure::FencingToken{1});
  PQfinish(nowhere);
  return refused || tenure::RedisFence::lua().empty() ? 1 : 0;
}
