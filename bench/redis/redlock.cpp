// Load generator for several voting redis-servers, with this library and with a tight hand-written
// client. Prints one line of JSON.
//
//   redlock_load round PORT,PORT,…              one command to all servers: time to a quorum, to
//   all redlock_load cycle ours|raw PORT,PORT,…     one thread, lock + unlock, uncontended
//   redlock_load acquire ours PORT,PORT,…       the same; time of lock() only
//   redlock_load threads ours PORT,PORT,… N     N threads with a lock each
//   redlock_load pass ours PORT,PORT,… N        N clients acquire one lock in turn

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <hiredis/hiredis.h>
#include <poll.h>

#include <tenure/client/client.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
using Ports = std::vector<int>;

struct Free {
  void operator()(redisContext* context) const { redisFree(context); }
};

void must(bool ok) {
  if (!ok) {
    std::fprintf(stderr, "an operation failed\n");
    std::exit(1);
  }
}

double micros(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

/// Hand-written quorum client: one connection for each server; a command is written to all of them,
/// then replies are read in order of arrival.
class ServerGroup {
 public:
  explicit ServerGroup(const Ports& ports) : waiting_(ports.size()) {
    for (const auto port : ports) {
      contexts_.emplace_back(redisConnect("127.0.0.1", port));
      must(contexts_.back()->err == 0);
      auto* const loaded =
          static_cast<redisReply*>(redisCommand(contexts_.back().get(), "SCRIPT LOAD %s",
                                                "if redis.call('GET', KEYS[1]) == ARGV[1] then "
                                                "return redis.call('DEL', KEYS[1]) end return 0"));
      sha_ = loaded->str;
      freeReplyObject(loaded);
      contexts_.back()->flags &= ~REDIS_BLOCK;
    }
  }

  /// Sends a command to all servers and waits for `answers` replies.
  void call(const std::string& command, std::size_t answers) {
    for (std::size_t n = 0; n < contexts_.size(); ++n) {
      redisAppendFormattedCommand(contexts_[n].get(), command.data(), command.size());
      int is_done = 0;
      must(redisBufferWrite(contexts_[n].get(), &is_done) == REDIS_OK && is_done == 1);
      ++waiting_[n];
    }
    ++round_;
    read_until(answers);
  }
  void drain() { read_until(contexts_.size()); }

  [[nodiscard]] static std::string encode(const std::vector<std::string>& words) {
    std::string text = "*" + std::to_string(words.size()) + "\r\n";
    for (const auto& word : words) {
      text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
    return text;
  }
  [[nodiscard]] const std::string& sha() const { return sha_; }
  [[nodiscard]] std::size_t quorum() const { return contexts_.size() / 2 + 1; }
  [[nodiscard]] std::size_t size() const { return contexts_.size(); }

 private:
  void read_until(std::size_t answers) {
    for (;;) {
      const auto up_to_date = std::ranges::count(waiting_, 0U);
      if (static_cast<std::size_t>(up_to_date) >= answers) {
        return;
      }
      std::vector<pollfd> some;
      std::vector<std::size_t> who;
      for (std::size_t n = 0; n < contexts_.size(); ++n) {
        if (waiting_[n] > 0) {
          some.push_back({.fd = contexts_[n]->fd, .events = POLLIN, .revents = 0});
          who.push_back(n);
        }
      }
      ::poll(some.data(), some.size(), -1);
      for (std::size_t at = 0; at < some.size(); ++at) {
        if ((some[at].revents & POLLIN) != 0) {
          read(who[at]);
        }
      }
    }
  }
  void read(std::size_t n) {
    must(redisBufferRead(contexts_[n].get()) == REDIS_OK);
    void* reply = nullptr;
    while (redisGetReplyFromReader(contexts_[n].get(), &reply) == REDIS_OK && reply != nullptr) {
      freeReplyObject(reply);
      --waiting_[n];
    }
  }

  std::vector<std::unique_ptr<redisContext, Free>> contexts_;
  std::vector<unsigned> waiting_;
  std::string sha_;
  std::size_t round_ = 0;
};

void print(std::vector<double> samples, Clock::duration took, double last_p50 = 0) {
  std::ranges::sort(samples);
  const auto at = [&](double share) {
    return samples.empty()
               ? 0.0
               : samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1))];
  };
  const auto seconds = std::chrono::duration<double>(took).count();
  std::printf(
      "{\"count\": %zu, \"per_s\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, "
      "\"max_us\": %.1f, \"last_p50_us\": %.1f}\n",
      samples.size(), static_cast<double>(samples.size()) / seconds, at(0.5), at(0.99), at(0.999),
      at(1.0), last_p50);
}

/// Repeats `work` for `length`; `work` returns the duration of one run.
template <class Work>
void repeat(Clock::duration length, Work work) {
  std::vector<double> samples;
  const auto begin = Clock::now();
  while (Clock::now() - begin < length) {
    samples.push_back(micros(work()));
  }
  print(std::move(samples), Clock::now() - begin);
}

/// Cost of a compare-and-delete, the smaller half of a hand-written cycle.
void round_trip(const Ports& ports) {
  ServerGroup group(ports);
  const auto command = ServerGroup::encode({"EVALSHA", group.sha(), "1", "bench:x", "mine"});
  std::vector<double> samples;
  std::vector<double> last;
  const auto begin = Clock::now();
  while (Clock::now() - begin < 2s) {
    const auto asked = Clock::now();
    group.call(command, group.quorum());
    samples.push_back(micros(Clock::now() - asked));
    group.drain();
    last.push_back(micros(Clock::now() - asked));
  }
  std::ranges::sort(last);
  print(std::move(samples), Clock::now() - begin, last[last.size() / 2]);
}

tenure::Client connect(const Ports& ports) {
  std::string url = "redlock://";
  for (const auto port : ports) {
    url += (url.ends_with('/') ? "" : ",") + ("127.0.0.1:" + std::to_string(port));
  }
  return tenure::connect(url + "?restart_wait=0s", {.request_timeout = 10s}).value();
}

void cycles(bool is_ours, const Ports& ports) {
  if (is_ours) {
    const auto client = connect(ports);
    const auto mutex = client.mutex("bench");
    repeat(3s, [&] {
      const auto began = Clock::now();
      auto guard = mutex.lock();
      must(guard.has_value() && guard->unlock().has_value());
      return Clock::now() - began;
    });
    return;
  }
  ServerGroup group(ports);
  const auto lock = ServerGroup::encode({"SET", "bench", "mine", "NX", "PX", "30000"});
  const auto unlock = ServerGroup::encode({"EVALSHA", group.sha(), "1", "bench", "mine"});
  repeat(3s, [&] {
    const auto began = Clock::now();
    group.call(lock, group.quorum());
    group.call(unlock, group.quorum());
    return Clock::now() - began;
  });
}

void acquisitions(const Ports& ports) {
  const auto client = connect(ports);
  const auto mutex = client.mutex("bench");
  repeat(10s, [&] {
    const auto began = Clock::now();
    auto guard = mutex.lock();
    const auto took = Clock::now() - began;
    must(guard.has_value() && guard->unlock().has_value());
    return took;
  });
}

/// Runs `work(n, samples)` on `threads` threads for `length`.
template <class Work>
void measure(int threads, Clock::duration length, Work work) {
  std::vector<std::vector<double>> samples(static_cast<std::size_t>(threads));
  const auto begin = Clock::now();
  {
    std::vector<std::jthread> running;
    for (int n = 0; n < threads; ++n) {
      running.emplace_back([&, n] {
        while (Clock::now() - begin < length) {
          work(n, samples[static_cast<std::size_t>(n)]);
        }
      });
    }
  }
  std::vector<double> all;
  for (const auto& some : samples) {
    all.insert(all.end(), some.begin(), some.end());
  }
  print(std::move(all), Clock::now() - begin);
}

void threads(const Ports& ports, int count) {
  const auto client = connect(ports);
  measure(count, 3s, [&](int n, std::vector<double>& samples) {
    const auto began = Clock::now();
    auto guard = client.mutex("bench:" + std::to_string(n)).lock();
    must(guard.has_value() && guard->unlock().has_value());
    samples.push_back(micros(Clock::now() - began));
  });
}

/// Time from the start of a release to the next grant.
void pass(const Ports& ports, int count) {
  std::vector<tenure::Client> clients;
  for (int n = 0; n < count; ++n) {
    clients.push_back(connect(ports));
  }
  std::atomic<Clock::rep> let_go = 0;
  measure(count, 3s, [&](int n, std::vector<double>& samples) {
    auto guard = clients[static_cast<std::size_t>(n)].mutex("bench").lock();
    must(guard.has_value());
    const auto since = let_go.load();
    if (since != 0) {
      samples.push_back(micros(Clock::now() - Clock::time_point(Clock::duration(since))));
    }
    let_go = Clock::now().time_since_epoch().count();
    must(guard->unlock().has_value());
  });
}

Ports ports_from(const char* text) {
  Ports ports;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    ports.push_back(std::atoi(word.c_str()));
  }
  return ports;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  if (what == "round" && count == 3) {
    round_trip(ports_from(words[2]));
    return 0;
  }
  if (count < 4) {
    return 64;
  }
  const bool is_ours = std::strcmp(words[2], "ours") == 0;
  const auto ports = ports_from(words[3]);
  const int number = count > 4 ? std::atoi(words[4]) : 1;
  if (what == "cycle") {
    cycles(is_ours, ports);
  } else if (what == "acquire") {
    acquisitions(ports);
  } else if (what == "threads") {
    threads(ports, number);
  } else if (what == "pass") {
    pass(ports, number);
  } else {
    return 64;
  }
  return 0;
}
