#include "support/redis/server.hpp"

#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <hiredis/hiredis.h>
#include <signal.h>

#include "support/net/free_port.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

std::string text_of(const redisReply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_INTEGER: return std::to_string(reply.integer);
    case REDIS_REPLY_NIL: return "(nil)";
    case REDIS_REPLY_ARRAY: {
      std::string all;
      for (std::size_t at = 0; at < reply.elements; ++at) {
        all += (at == 0 ? "" : " ") + text_of(*reply.element[at]);
      }
      return all;
    }
    default: return {reply.str, reply.len};
  }
}

std::string content_of(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return std::move(content).str();
}

}  // namespace

void RedisServer::Close::operator()(redisContext* context) const {
  redisFree(context);
}

RedisServer::RedisServer(Options options) : options_(std::move(options)) {
  constexpr int attempts_max = 5;
  if (!options_.cluster_nodes.empty()) {
    std::ofstream(folder_ / "nodes.conf") << options_.cluster_nodes;
    options_.arguments.insert(options_.arguments.end(),
                              {"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"});
  }
  for (int attempt = 1;; ++attempt) {
    // Another process may take the port before the server does.
    port_ = options_.port != 0 ? options_.port : free_port();
    if (options_.has_tls) {
      tls_port_ = options_.tls_port != 0 ? options_.tls_port : free_port();
    }
    try {
      start();
      return;
    } catch (const std::runtime_error&) {
      if (attempt == attempts_max) {
        throw;
      }
    }
  }
}

RedisServer::~RedisServer() = default;

std::vector<std::string> RedisServer::command_line() const {
  if (!options_.sentinel.empty()) {
    // A Sentinel rewrites its configuration file, so it needs one of its own.
    std::ofstream(folder_ / "sentinel.conf")
        << "port " << port_ << "\nbind 127.0.0.1\ndir " << folder_.path().string() << "\nlogfile "
        << (folder_ / "log") << "\n"
        << (options_.has_tls ? "tls-port " + std::to_string(tls_port_) + "\n" : "")
        << options_.sentinel;
    return {"redis-server", folder_ / "sentinel.conf", "--sentinel"};
  }
  std::vector<std::string> words{"redis-server", "--port",       std::to_string(port_),
                                 "--bind",       "127.0.0.1",    "--dir",
                                 folder_.path(), "--save",       "",
                                 "--logfile",    folder_ / "log"};
  if (options_.has_tls) {
    words.insert(words.end(), {"--tls-port", std::to_string(tls_port_)});
  }
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  return words;
}

void RedisServer::start() {
  process_.emplace(Process::Command{.words = command_line(), .log = folder_ / "errors"});
  if (!eventually([this] { return responds() || process_->has_ended(); }) || !responds()) {
    throw std::runtime_error("redis-server does not start (tools/setup.sh test installs it): " +
                             content_of(folder_ / "log") + content_of(folder_ / "errors"));
  }
}

void RedisServer::kill() {
  connection_.reset();
  subscription_.reset();
  process_->signal(SIGKILL);
  process_->wait();
}

bool RedisServer::responds() {
  connection_.reset(redisConnect("127.0.0.1", port_));
  if (connection_ == nullptr || connection_->err != 0) {
    return false;
  }
  if (!options_.password.empty() && command({"AUTH", options_.password}) != "OK") {
    return false;
  }
  return command({"PING"}) == "PONG";
}

std::string RedisServer::url(std::string_view rest) const {
  return "redis://127.0.0.1:" + std::to_string(port_) + std::string(rest);
}

std::string RedisServer::command(const std::vector<std::string>& words) {
  if (connection_ == nullptr) {
    return "no answer";
  }
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const auto& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  const auto send = [&] {
    return static_cast<redisReply*>(redisCommandArgv(
        connection_.get(), static_cast<int>(words.size()), texts.data(), sizes.data()));
  };
  auto* raw = send();
  if (raw == nullptr && words.front() != "PING" && responds()) {
    // The server closes connections when its replication role changes.
    raw = send();
  }
  if (raw == nullptr) {
    return "no answer";
  }
  const std::unique_ptr<redisReply, void (*)(void*)> reply(raw, freeReplyObject);
  return text_of(*reply);
}

void RedisServer::subscribe(const std::string& channel) {
  if (subscription_ == nullptr) {
    subscription_.reset(redisConnect("127.0.0.1", port_));
  }
  const std::unique_ptr<redisReply, void (*)(void*)> reply(
      static_cast<redisReply*>(redisCommand(subscription_.get(), "SUBSCRIBE %s", channel.c_str())),
      freeReplyObject);
}

std::string RedisServer::next_message() {
  void* raw = nullptr;
  if (redisGetReply(subscription_.get(), &raw) != REDIS_OK) {
    return "no answer";
  }
  const std::unique_ptr<redisReply, void (*)(void*)> reply(static_cast<redisReply*>(raw),
                                                           freeReplyObject);
  return text_of(*reply->element[2]);
}

std::int64_t RedisServer::count_of(const std::string& field) {
  const auto all = command({"INFO", "all"});
  const auto at = all.find("\n" + field + ":");
  std::int64_t count = -1;
  if (at != std::string::npos) {
    const auto* const begin = all.data() + at + field.size() + 2;
    std::from_chars(begin, all.data() + all.size(), count);
  }
  return count;
}

}  // namespace tenure::test
