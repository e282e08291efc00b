#include "support/contract/contract.hpp"

#include <charconv>
#include <chrono>
#include <string>

#include "backends/redis/backend.hpp"
#include "backends/redis/command_encoder.hpp"
#include "support/redis/cluster.hpp"
#include "support/redis/group.hpp"
#include "support/redis/server.hpp"

namespace tenure::test {
namespace {

namespace redis = backends::redis;

class AnyRedisService : public ContractService {
 public:
  [[nodiscard]] std::unique_ptr<backends::Backend> open() override {
    constexpr std::chrono::seconds test_timeout{5};
    auto url = backends::parse_url(this->url()).value();
    return redis::RedisBackend::open(redis::deployment_from(url, test_timeout).value(),
                                     test_timeout)
        .value();
  }
  bool force_release(const std::string& name) override {
    const auto head = encoder_.head_of(name);
    const auto held =
        command(head, {"EVAL", std::string(redis::text_of(redis::Script::force_release).text), "4",
                       head, head + ":m", head + ":e", head + ":q"});
    return held != "0";
  }
  [[nodiscard]] std::optional<std::size_t> waiters(const std::string& name) override {
    const auto head = encoder_.head_of(name);
    const auto text = command(head, {"ZCARD", head + ":q"});
    std::size_t count = 0;
    std::from_chars(text.data(), text.data() + text.size(), count);
    return count;
  }

 protected:
  /// Runs a command on the server that owns this key.
  virtual std::string command(const std::string& key, const std::vector<std::string>& words) = 0;

 private:
  redis::CommandEncoder encoder_{"tenure", "operator"};
};

class RedisService final : public AnyRedisService {
 public:
  [[nodiscard]] std::string url() const override { return server_.url(); }

 private:
  std::string command(const std::string& /*key*/, const std::vector<std::string>& words) override {
    return server_.command(words);
  }
  RedisServer server_;
};

// Starting five or six servers for each test takes too long: these are shared, and flushed.

class RedisGroupService final : public AnyRedisService {
 public:
  RedisGroupService() { group().primary().command({"FLUSHALL"}); }
  [[nodiscard]] std::string url() const override { return group().url(); }

 private:
  static RedisGroup& group() {
    static RedisGroup group;
    return group;
  }
  std::string command(const std::string& /*key*/, const std::vector<std::string>& words) override {
    return group().primary().command(words);
  }
};

class RedisClusterService final : public AnyRedisService {
 public:
  RedisClusterService() {
    cluster().for_each_primary([](RedisServer& one) { one.command({"FLUSHALL"}); });
  }
  [[nodiscard]] std::string url() const override { return cluster().url(); }

 private:
  static RedisCluster& cluster() {
    static RedisCluster cluster;
    return cluster;
  }
  std::string command(const std::string& key, const std::vector<std::string>& words) override {
    return cluster().command(key, words);
  }
};

}  // namespace

std::unique_ptr<ContractService> start_redis_service() {
  return std::make_unique<RedisService>();
}

std::unique_ptr<ContractService> start_redis_group_service() {
  return std::make_unique<RedisGroupService>();
}

std::unique_ptr<ContractService> start_redis_cluster_service() {
  return std::make_unique<RedisClusterService>();
}

}  // namespace tenure::test
