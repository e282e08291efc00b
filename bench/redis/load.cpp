// Load generator for one redis-server, with this library and with a tight hand-written client.
// Prints one line of JSON.
//
//   redis_load ping PORT                     round trips
//   redis_load cycle ours|raw PORT           one thread, lock + unlock, uncontended
//   redis_load threads ours|scope|raw|raw-scope PORT N
//                                            N threads with a lock each; raw: with a connection
//                                            each. scope: guards are released by their destructor,
//                                            so no thread waits for the reply to the release;
//                                            raw-scope: the same with the hand-written client
//   redis_load threads baseline PORT N       the same commands over one shared connection
//   redis_load pass ours|poll PORT N         N threads acquire one lock in turn
//   redis_load renew ours PORT N             N locks held for two renewals
//   redis_load memory ours|raw PORT N        N locks held until a line arrives on stdin
//   redis_load wait ours PORT N              N threads wait for one lock until a line arrives

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <hiredis/hiredis.h>
#include <time.h>

#include <tenure/client/client.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct Free {
  void operator()(redisContext* context) const { redisFree(context); }
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, Free>;

/// Typical hand-written lock: SET NX PX, and a script that compares and deletes.
class RawLock {
 public:
  RawLock(int port, std::string name) : name_(std::move(name)), id_(fresh_id()) {
    context_.reset(redisConnect("127.0.0.1", port));
    const Reply loaded = run("SCRIPT LOAD %s", release_script);
    sha_ = loaded->str;
  }
  static constexpr auto release_script =
      "if redis.call('GET', KEYS[1]) == ARGV[1] then "
      "return redis.call('DEL', KEYS[1]) end return 0";
  bool try_lock() {
    const Reply reply = run("SET %s %s NX PX 30000", name_.c_str(), id_.c_str());
    return reply->type == REDIS_REPLY_STATUS;
  }
  void unlock() { run("EVALSHA %s 1 %s %s", sha_.c_str(), name_.c_str(), id_.c_str()); }
  /// Sends the release; its reply is read before the next reply.
  void unlock_later() {
    redisAppendCommand(context_.get(), "EVALSHA %s 1 %s %s", sha_.c_str(), name_.c_str(),
                       id_.c_str());
    is_unread_ = true;
  }
  void ping() { run("PING"); }

 private:
  static std::string fresh_id() {
    static std::atomic<int> count = 0;
    char text[40];
    std::snprintf(text, sizeof text, "c8a4f2be-3a5e-4f57-9e8e-%012d", ++count);
    return text;
  }
  template <class... Words>
  Reply run(const char* format, Words... words) {
    redisAppendCommand(context_.get(), format, words...);
    if (std::exchange(is_unread_, false)) {
      read();
    }
    return read();
  }
  Reply read() {
    void* read = nullptr;
    redisGetReply(context_.get(), &read);
    Reply reply(static_cast<redisReply*>(read));
    if (!reply || reply->type == REDIS_REPLY_ERROR) {
      std::fprintf(stderr, "redis: %s\n", reply ? reply->str : context_->errstr);
      std::exit(1);
    }
    return reply;
  }

  std::string name_;
  std::string id_;
  std::string sha_;
  bool is_unread_ = false;
  std::unique_ptr<redisContext, Free> context_;
};

tenure::Client connect(int port) {
  return tenure::connect("redis://127.0.0.1:" + std::to_string(port), {.request_timeout = 10s})
      .value();
}

void must(bool ok) {
  if (!ok) {
    std::fprintf(stderr, "an operation failed\n");
    std::exit(1);
  }
}

double micros(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

void print(std::vector<double> samples, Clock::duration took) {
  std::ranges::sort(samples);
  const auto at = [&](double share) {
    return samples.empty()
               ? 0.0
               : samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1))];
  };
  const auto seconds = std::chrono::duration<double>(took).count();
  std::printf("{\"count\": %zu, \"per_s\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
              samples.size(), static_cast<double>(samples.size()) / seconds, at(0.5), at(0.99));
}

// 000.175, 000.176
/// Runs `work` on `threads` threads for `length`.
template <class Work>
void measure(int threads, Clock::duration length, Work work) {
  std::vector<std::vector<double>> samples(static_cast<std::size_t>(threads));
  const auto begin = Clock::now();
  const auto end = begin + length;
  {
    std::vector<std::jthread> running;
    for (int n = 0; n < threads; ++n) {
      running.emplace_back([&, n] { work(n, end, samples[static_cast<std::size_t>(n)]); });
    }
  }
  const auto took = Clock::now() - begin;
  std::vector<double> all;
  for (const auto& some : samples) {
    all.insert(all.end(), some.begin(), some.end());
  }
  print(std::move(all), took);
}

enum class Contender : std::uint8_t { ours, scope, raw, raw_scope };

Contender contender_from(const std::string& word) {
  for (const auto& [name, contender] :
       {std::pair("ours", Contender::ours), std::pair("scope", Contender::scope),
        std::pair("raw", Contender::raw), std::pair("raw-scope", Contender::raw_scope)}) {
    if (word == name) {
      return contender;
    }
  }
  std::fprintf(stderr, "%s: expected ours, scope, raw or raw-scope\n", word.c_str());
  std::exit(64);
}

void cycles(Contender contender, int port, int threads, Clock::duration length) {
  const auto client = connect(port);
  measure(threads, length, [&](int n, Clock::time_point end, std::vector<double>& samples) {
    const auto name = "bench:" + std::to_string(n);
    const auto mutex = client.mutex(name);
    RawLock raw(port, name);
    for (auto now = Clock::now(); now < end;) {
      if (contender == Contender::ours || contender == Contender::scope) {
        auto guard = mutex.lock();
        must(guard.has_value() && (contender == Contender::scope || guard->unlock().has_value()));
      } else {
        must(raw.try_lock());
        contender == Contender::raw ? raw.unlock() : raw.unlock_later();
      }
      const auto after = Clock::now();
      samples.push_back(micros(after - now));
      now = after;
    }
    raw.ping();  // Sends the last release, and reads its reply.
  });
}

/// Lower bound for a library whose threads block: each thread queues its command and sleeps; one
/// thread sends all queued commands at once and wakes the threads whose replies have arrived. The
/// commands are those of RawLock: no queue, no token, no renewal, no error handling.
class Baseline {
 public:
  explicit Baseline(int port) : context_(redisConnect("127.0.0.1", port)) {
    const Reply loaded(static_cast<redisReply*>(
        redisCommand(context_.get(), "SCRIPT LOAD %s", RawLock::release_script)));
    sha_ = loaded->str;
    sender_ = std::jthread([this](const std::stop_token& stop) { send_loop(stop); });
  }
  Baseline(const Baseline&) = delete;
  Baseline& operator=(const Baseline&) = delete;
  ~Baseline() {
    sender_.request_stop();
    ++posted_;
    posted_.notify_one();
  }

  /// Sends a command and waits for its reply.
  void run(const std::string& encoded) {
    Command pending{.encoded = encoded};
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(&pending);
    }
    ++posted_;
    posted_.notify_one();
    pending.is_done.wait(0);
  }
  [[nodiscard]] const std::string& sha() const { return sha_; }

 private:
  struct Command {
    const std::string& encoded;
    std::atomic<int> is_done = 0;
  };

  void send_loop(const std::stop_token& stop) {
    std::vector<Command*> sent;
    while (!stop.stop_requested()) {
      const int seen = posted_;
      {
        const std::lock_guard lock(mutex_);
        sent.swap(waiting_);
      }
      if (sent.empty()) {
        posted_.wait(seen);
        continue;
      }
      for (const auto* command : sent) {
        redisAppendFormattedCommand(context_.get(), command->encoded.data(),
                                    command->encoded.size());
      }
      for (auto* command : sent) {
        void* reply = nullptr;
        must(redisGetReply(context_.get(), &reply) == REDIS_OK);
        freeReplyObject(reply);
        command->is_done = 1;
        command->is_done.notify_one();
      }
      sent.clear();
    }
  }

  std::unique_ptr<redisContext, Free> context_;
  std::string sha_;
  std::mutex mutex_;
  std::vector<Command*> waiting_;
  std::atomic<int> posted_ = 0;
  std::jthread sender_;  // Declared last: uses all other members.
};

std::string encode(const std::vector<std::string>& words) {
  std::string text = "*" + std::to_string(words.size()) + "\r\n";
  for (const auto& word : words) {
    text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return text;
}

void baseline_cycles(int port, int threads, Clock::duration length) {
  Baseline baseline(port);
  measure(threads, length, [&](int n, Clock::time_point end, std::vector<double>& samples) {
    const auto name = "bench:" + std::to_string(n);
    const auto lock = encode({"SET", name, "c8a4f2be-3a5e-4f57-9e8e", "NX", "PX", "30000"});
    const auto unlock = encode({"EVALSHA", baseline.sha(), "1", name, "c8a4f2be-3a5e-4f57-9e8e"});
    for (auto now = Clock::now(); now < end;) {
      baseline.run(lock);
      baseline.run(unlock);
      const auto after = Clock::now();
      samples.push_back(micros(after - now));
      now = after;
    }
  });
}

/// Time from the start of a release to the next grant.
void pass(bool is_ours, int port, int threads, Clock::duration length) {
  std::vector<tenure::Client> clients;
  for (int n = 0; n < std::min(threads, 4); ++n) {
    clients.push_back(connect(port));
  }
  std::atomic<Clock::rep> let_go = 0;
  measure(threads, length, [&](int n, Clock::time_point end, std::vector<double>& samples) {
    const auto mutex = clients[static_cast<std::size_t>(n) % clients.size()].mutex("bench:pass");
    RawLock raw(port, "bench:poll");
    while (Clock::now() < end) {
      if (is_ours) {
        auto guard = mutex.lock();
        must(guard.has_value());
        const auto since = let_go.load();
        if (since != 0) {
          samples.push_back(micros(Clock::now() - Clock::time_point(Clock::duration(since))));
        }
        let_go = Clock::now().time_since_epoch().count();
        must(guard->unlock().has_value());
      } else {
        while (!raw.try_lock()) {
          std::this_thread::sleep_for(50ms);
        }
        const auto since = let_go.load();
        if (since != 0) {
          samples.push_back(micros(Clock::now() - Clock::time_point(Clock::duration(since))));
        }
        let_go = Clock::now().time_since_epoch().count();
        raw.unlock();
        std::this_thread::sleep_for(1ms);
      }
    }
  });
}

/// N locks with a TTL of 6 s, so that all are renewed every 2 s.
void renew(int port, int locks) {
  const auto client = connect(port);
  std::vector<tenure::Guard> guards;
  for (int n = 0; n < locks; ++n) {
    guards.push_back(client.mutex("bench:" + std::to_string(n), {.ttl = 6s}).lock().value());
  }
  std::puts("{\"held\": true}");
  std::fflush(stdout);
  const auto cpu = cpu_seconds();
  const auto begin = Clock::now();
  std::this_thread::sleep_for(8s);
  const auto seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  int kept = 0;
  for (const auto& guard : guards) {
    kept += guard.state() == tenure::GuardState::held ? 1 : 0;
  }
  std::printf("{\"kept\": %d, \"cpu_share\": %.5f}\n", kept, (cpu_seconds() - cpu) / seconds);
}

void memory(bool is_ours, int port, int locks) {
  const auto client = connect(port);
  std::vector<tenure::Guard> guards;
  std::vector<std::unique_ptr<RawLock>> raws;
  raws.push_back(std::make_unique<RawLock>(port, "none"));
  const std::unique_ptr<redisContext, Free> context(redisConnect("127.0.0.1", port));
  for (int n = 0; n < locks; ++n) {
    const auto name = "bench:" + std::to_string(n);
    if (is_ours) {
      guards.push_back(client.mutex(name, {.ttl = 60s}).lock().value());
    } else {
      const Reply reply(static_cast<redisReply*>(redisCommand(
          context.get(), "SET %s c8a4f2be-3a5e-4f57-9e8e-%012d NX PX 60000", name.c_str(), n)));
    }
  }
  std::puts("{\"held\": true}");
  std::fflush(stdout);
  std::getchar();
}

void wait(int port, int waiters) {
  const auto client = connect(port);
  auto guard = client.mutex("bench:wait").lock().value();
  std::vector<std::jthread> threads;
  for (int n = 0; n < waiters; ++n) {
    threads.emplace_back([&] { must(client.mutex("bench:wait").lock().has_value()); });
  }
  const std::unique_ptr<redisContext, Free> context(redisConnect("127.0.0.1", port));
  const auto waiting = [&] {
    const Reply reply(
        static_cast<redisReply*>(redisCommand(context.get(), "ZCARD {tenure:bench:wait}:q")));
    return reply->integer;
  };
  while (waiting() < waiters) {
    std::this_thread::sleep_for(10ms);
  }
  std::puts("{\"waiting\": true}");
  std::fflush(stdout);
  std::getchar();
  must(guard.unlock().has_value());
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    return 64;
  }
  const std::string what = words[1];
  if (what == "ping") {
    RawLock raw(std::atoi(words[2]), "none");
    measure(1, 2s, [&](int, Clock::time_point end, std::vector<double>& samples) {
      for (auto now = Clock::now(); now < end;) {
        raw.ping();
        const auto after = Clock::now();
        samples.push_back(micros(after - now));
        now = after;
      }
    });
    return 0;
  }
  if (count < 4) {
    return 64;
  }
  const bool is_ours = std::strcmp(words[2], "ours") == 0;
  const int port = std::atoi(words[3]);
  const int number = count > 4 ? std::atoi(words[4]) : 1;
  if (what == "cycle") {
    cycles(contender_from(words[2]), port, 1, 3s);
  } else if (what == "threads" && std::strcmp(words[2], "baseline") == 0) {
    baseline_cycles(port, number, 3s);
  } else if (what == "threads") {
    cycles(contender_from(words[2]), port, number, 3s);
  } else if (what == "pass") {
    pass(is_ours, port, number, 3s);
  } else if (what == "renew") {
    renew(port, number);
  } else if (what == "memory") {
    memory(is_ours, port, number);
  } else if (what == "wait") {
    wait(port, number);
  } else {
    return 64;
  }
  return 0;
}
