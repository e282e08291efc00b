#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <sqlite3.h>

namespace tenure::test {

struct CloseSqlite {
  void operator()(sqlite3* connection) const { sqlite3_close(connection); }
};
struct ClosePostgres {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct CloseRedis {
  void operator()(redisContext* connection) const { redisFree(connection); }
};
struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

using Sqlite = std::unique_ptr<sqlite3, CloseSqlite>;
using Postgres = std::unique_ptr<PGconn, ClosePostgres>;
using Redis = std::unique_ptr<redisContext, CloseRedis>;
using RedisAnswer = std::unique_ptr<redisReply, FreeReply>;

using Rows = std::vector<std::string>;  ///< The first column of each row.

[[nodiscard]] Sqlite connect_sqlite(const std::string& file);
[[nodiscard]] Postgres connect_postgres(const std::string& settings);
[[nodiscard]] Redis connect_redis(const std::string& socket);

/// Each runs a command, with `values` for its parameters, and throws if it fails.
Rows run(sqlite3& connection, const std::string& text, const Rows& values = {});
Rows run(PGconn& connection, const std::string& text, const Rows& values = {});
RedisAnswer run(redisContext& connection, const Rows& words);

}  // namespace tenure::test
