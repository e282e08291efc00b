#include <charconv>
#include <chrono>
#include <string>

#include "backends/redis/commands.hpp"
#include "backends/redis/redis_backend.hpp"
#include "support/contract.hpp"
#include "support/redis_server.hpp"

namespace tenure::test {
namespace {

namespace redis = backends::redis;

class RedisService : public ContractService {
 public:
  [[nodiscard]] std::unique_ptr<backends::Backend> open() override {
    constexpr std::chrono::seconds patience{5};
    auto url = backends::parse_url(this->url()).value();
    return redis::RedisBackend::open(redis::address_from(url, patience).value(), patience).value();
  }
  bool force_release(const std::string& name) override {
    const auto head = commands_.head_of(name);
    const auto held = server_.ask({"EVAL", std::string(redis::text_of(redis::Script::force).text),
                                   "4", head, head + ":m", head + ":e", head + ":q"});
    return held != "0";
  }
  [[nodiscard]] std::optional<std::size_t> waiters(const std::string& name) override {
    const auto text = server_.ask({"ZCARD", commands_.head_of(name) + ":q"});
    std::size_t count = 0;
    std::from_chars(text.data(), text.data() + text.size(), count);
    return count;
  }
  [[nodiscard]] std::string url() const override { return server_.url(); }

 private:
  RedisServer server_;
  redis::Commands commands_{"tenure", "operator"};
};

}  // namespace

std::unique_ptr<ContractService> start_redis_service() {
  return std::make_unique<RedisService>();
}

}  // namespace tenure::test
