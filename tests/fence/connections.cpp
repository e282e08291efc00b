#include "fence/connections.hpp"

namespace tenure::test {

Sqlite connect_sqlite(const std::string& file) {
  sqlite3* connection = nullptr;
  const int answer = sqlite3_open(file.c_str(), &connection);
  Sqlite opened(connection);
  if (answer != SQLITE_OK) {
    throw std::runtime_error(sqlite3_errmsg(connection));
  }
  return opened;
}

Postgres connect_postgres(const std::string& settings) {
  Postgres connection(PQconnectdb(settings.c_str()));
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    throw std::runtime_error(PQerrorMessage(connection.get()));
  }
  PQsetNoticeProcessor(connection.get(), [](void*, const char*) {}, nullptr);
  return connection;
}

Redis connect_redis(const std::string& socket) {
  Redis connection(redisConnectUnix(socket.c_str()));
  if (connection == nullptr || connection->err != 0) {
    throw std::runtime_error("no connection to Redis at " + socket);
  }
  return connection;
}

Rows run(sqlite3& connection, const std::string& text, const Rows& values) {
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  sqlite3_stmt* raw = nullptr;
  sqlite3_prepare_v2(&connection, text.c_str(), -1, &raw, nullptr);
  const std::unique_ptr<sqlite3_stmt, Finalize> statement(raw);
  int parameter = 0;
  for (const auto& value : values) {
    sqlite3_bind_blob(raw, ++parameter, value.data(), static_cast<int>(value.size()),
                      SQLITE_STATIC);
  }
  Rows rows;
  int answer = sqlite3_step(raw);
  for (; answer == SQLITE_ROW; answer = sqlite3_step(raw)) {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(raw, 0));
    rows.emplace_back(bytes, static_cast<std::size_t>(sqlite3_column_bytes(raw, 0)));
  }
  if (answer != SQLITE_DONE) {
    throw std::runtime_error(text + ": " + sqlite3_errmsg(&connection));
  }
  return rows;
}

Rows run(PGconn& connection, const std::string& text, const Rows& values) {
  constexpr int binary = 1;
  std::vector<const char*> bytes;
  std::vector<int> lengths;
  const std::vector<int> formats(values.size(), binary);
  for (const auto& value : values) {
    bytes.push_back(value.data());
    lengths.push_back(static_cast<int>(value.size()));
  }
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(
      PQexecParams(&connection, text.c_str(), static_cast<int>(values.size()), nullptr,
                   bytes.data(), lengths.data(), formats.data(), 0),
      &PQclear);
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    throw std::runtime_error(text + ": " + PQerrorMessage(&connection));
  }
  Rows rows;
  for (int row = 0; row < PQntuples(result.get()); ++row) {
    rows.emplace_back(PQgetvalue(result.get(), row, 0));
  }
  return rows;
}

RedisAnswer run(redisContext& connection, const Rows& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const auto& word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  RedisAnswer answer(static_cast<redisReply*>(
      redisCommandArgv(&connection, static_cast<int>(words.size()), texts.data(), lengths.data())));
  if (answer == nullptr || answer->type == REDIS_REPLY_ERROR) {
    throw std::runtime_error(words.front() + ": " +
                             (answer == nullptr ? connection.errstr : answer->str));
  }
  return answer;
}

}  // namespace tenure::test
