#include "support/redis_server.hpp"

#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

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

std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): the sockets API.
  const bool is_bound = ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                        ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  ::close(socket);
  if (!is_bound) {
    throw std::runtime_error("no free port");
  }
  return ntohs(address.sin_port);
}

void RedisServer::Close::operator()(redisContext* context) const {
  redisFree(context);
}

RedisServer::RedisServer(Options options) : options_(std::move(options)) {
  constexpr int attempts_max = 5;
  for (int attempt = 1;; ++attempt) {
    // Somebody else may take the port before the server does.
    port_ = free_port();
    tls_port_ = options_.has_tls ? free_port() : 0;
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

void RedisServer::start() {
  std::vector<std::string> words{"redis-server", "--port",       std::to_string(port_),
                                 "--bind",       "127.0.0.1",    "--dir",
                                 folder_.path(), "--save",       "",
                                 "--logfile",    folder_ / "log"};
  if (options_.has_tls) {
    words.insert(words.end(), {"--tls-port", std::to_string(tls_port_)});
  }
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  process_.emplace(Process::Command{.words = words, .log = folder_ / "errors"});
  if (!eventually([this] { return answers() || process_->has_ended(); }) || !answers()) {
    throw std::runtime_error("redis-server does not start (tools/setup.sh test installs it): " +
                             content_of(folder_ / "log") + content_of(folder_ / "errors"));
  }
}

void RedisServer::kill() {
  connection_.reset();
  process_->signal(SIGKILL);
  process_->wait();
}

bool RedisServer::answers() {
  connection_.reset(redisConnect("127.0.0.1", port_));
  if (connection_ == nullptr || connection_->err != 0) {
    return false;
  }
  if (!options_.password.empty() && ask({"AUTH", options_.password}) != "OK") {
    return false;
  }
  return ask({"PING"}) == "PONG";
}

std::string RedisServer::url(std::string_view rest) const {
  return "redis://127.0.0.1:" + std::to_string(port_) + std::string(rest);
}

std::string RedisServer::ask(const std::vector<std::string>& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const auto& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  auto* const raw = static_cast<redisReply*>(redisCommandArgv(
      connection_.get(), static_cast<int>(words.size()), texts.data(), sizes.data()));
  if (raw == nullptr) {
    return "no answer";
  }
  const std::unique_ptr<redisReply, void (*)(void*)> reply(raw, freeReplyObject);
  return text_of(*reply);
}

void RedisServer::listen(const std::string& channel) {
  if (listener_ == nullptr) {
    listener_.reset(redisConnect("127.0.0.1", port_));
  }
  const std::unique_ptr<redisReply, void (*)(void*)> reply(
      static_cast<redisReply*>(redisCommand(listener_.get(), "SUBSCRIBE %s", channel.c_str())),
      freeReplyObject);
}

std::string RedisServer::hear() {
  void* raw = nullptr;
  if (redisGetReply(listener_.get(), &raw) != REDIS_OK) {
    return "no answer";
  }
  const std::unique_ptr<redisReply, void (*)(void*)> reply(static_cast<redisReply*>(raw),
                                                           freeReplyObject);
  return text_of(*reply->element[2]);
}

std::int64_t RedisServer::count_of(const std::string& field) {
  const auto all = ask({"INFO", "all"});
  const auto at = all.find("\n" + field + ":");
  std::int64_t count = -1;
  if (at != std::string::npos) {
    const auto* const begin = all.data() + at + field.size() + 2;
    std::from_chars(begin, all.data() + all.size(), count);
  }
  return count;
}

}  // namespace tenure::test
