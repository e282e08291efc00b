// The same load as service_load, by users of the library:
//
//   library_load URL CLIENTS SECONDS           lock + unlock cycles, each client a thread
//   library_load hand-over URL WAITERS SECONDS one lock that all want
//   library_load round-trip                    one byte to another thread and back, by TCP
//
// All threads share one Client, as in a real process. Every client has a lock of its own and begins
// the next cycle when the last one is through. Prints one line of JSON.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <tenure/client.hpp>

namespace tenure::bench {
namespace {

using Clock = std::chrono::steady_clock;

template <class T>
T insist(Result<T> result, const char* what) {
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", what, to_string(result.error()).c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) {
    return *std::move(result);
  }
}

std::uint32_t microseconds_since(Clock::time_point began) {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began).count());
}

void print(std::vector<std::uint32_t> all, std::chrono::seconds duration) {
  std::ranges::sort(all);
  const auto at = [&](double part) {
    return all.empty() ? 0U
                       : all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))];
  };
  std::printf("{\"cycles\": %zu, \"seconds\": %lld, \"p50_us\": %u, \"p99_us\": %u}\n", all.size(),
              static_cast<long long>(duration.count()), at(0.5), at(0.99));
}

/// Runs `turn(number, samples)` in so many threads until the time is over.
template <class Turn>
void run(std::size_t threads, std::chrono::seconds duration, Turn turn) {
  const auto counts_from = Clock::now() + std::chrono::milliseconds(500);
  const auto ends = counts_from + duration;
  std::vector<std::vector<std::uint32_t>> samples(threads);
  {
    std::vector<std::jthread> running;
    for (std::size_t n = 0; n < threads; ++n) {
      running.emplace_back([&, n] {
        while (Clock::now() < ends) {
          const auto began = Clock::now();
          const auto took = turn(n);
          if (began >= counts_from && Clock::now() < ends) {
            samples[n].push_back(took);
          }
        }
      });
    }
  }
  std::vector<std::uint32_t> all;
  for (const auto& one : samples) {
    all.insert(all.end(), one.begin(), one.end());
  }
  print(std::move(all), duration);
}

void cycles(const std::string& url, std::size_t clients, std::chrono::seconds duration) {
  auto client = insist(connect(url), "connect");
  std::vector<Mutex> mutexes;
  for (std::size_t n = 0; n < clients; ++n) {
    mutexes.push_back(client.mutex("bench/" + std::to_string(n)));
  }
  run(clients, duration, [&](std::size_t n) {
    const auto began = Clock::now();
    auto guard = insist(mutexes[n].lock(), "lock");
    insist(guard.unlock(), "unlock");
    return microseconds_since(began);
  });
}

struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::abort(); }
  };
};
Task one_task(Mutex mutex, Clock::time_point from, Clock::time_point ends, std::vector<std::uint32_t>& out, std::atomic<int>& running) {
  while (Clock::now() < ends) {
    const auto began = Clock::now();
    auto guard = insist(co_await mutex.lock_async(), "lock");
    insist(co_await guard.unlock_async(), "unlock");
    if (began >= from && Clock::now() < ends) out.push_back(microseconds_since(began));
  }
  --running; running.notify_all();
}
void tasks(const std::string& url, std::size_t clients, std::chrono::seconds duration) {
  auto client = insist(connect(url), "connect");
  std::vector<std::vector<std::uint32_t>> out(clients);
  std::atomic<int> running = static_cast<int>(clients);
  const auto from = Clock::now() + std::chrono::milliseconds(500);
  for (std::size_t n = 0; n < clients; ++n) {
    one_task(client.mutex("bench/" + std::to_string(n)), from, from + duration, out[n], running);
  }
  for (int left = running; left > 0; left = running) running.wait(left);
  std::vector<std::uint32_t> all;
  for (const auto& one : out) all.insert(all.end(), one.begin(), one.end());
  print(std::move(all), duration);
}

/// From just before the holder gives back until the next one has it.
void hand_over(const std::string& url, std::size_t waiters, std::chrono::seconds duration) {
  auto client = insist(connect(url), "connect");
  const auto mutex = client.mutex("bench/hot");
  std::atomic<Clock::time_point::rep> released = 0;
  run(waiters, duration, [&](std::size_t) {
    auto guard = insist(mutex.lock(), "lock");
    const Clock::time_point last{Clock::duration(released.load())};
    const auto took = microseconds_since(last);
    released = Clock::now().time_since_epoch().count();
    insist(guard.unlock(), "unlock");
    return took;
  });
}

/// What no service can be faster than: the network alone.
void round_trip() {
  boost::asio::io_context loop;
  using boost::asio::ip::tcp;
  tcp::acceptor acceptor(loop, {boost::asio::ip::address_v4::loopback(), 0});
  tcp::socket here(loop);
  here.connect(acceptor.local_endpoint());
  auto there = acceptor.accept();
  for (auto* socket : {&here, &there}) {
    socket->set_option(tcp::no_delay(true));
  }
  constexpr int rounds = 5000;
  const std::jthread echo([&] {
    char byte = 0;
    for (int n = 0; n < rounds; ++n) {
      boost::asio::read(there, boost::asio::buffer(&byte, 1));
      boost::asio::write(there, boost::asio::buffer(&byte, 1));
    }
  });
  std::vector<std::uint32_t> all;
  for (int n = 0; n < rounds; ++n) {
    char byte = 1;
    const auto began = Clock::now();
    boost::asio::write(here, boost::asio::buffer(&byte, 1));
    boost::asio::read(here, boost::asio::buffer(&byte, 1));
    all.push_back(microseconds_since(began));
  }
  print(std::move(all), std::chrono::seconds(0));
}

}  // namespace
}  // namespace tenure::bench

int main(int count, char** arguments) {
  using namespace tenure::bench;
  const std::vector<std::string> given(arguments + 1, arguments + count);
  if (given.size() == 1 && given[0] == "round-trip") {
    round_trip();
  } else if (given.size() == 3) {
    cycles(given[0], std::stoul(given[1]), std::chrono::seconds(std::stoi(given[2])));
  } else if (given.size() == 4 && given[0] == "tasks") {
    tasks(given[1], std::stoul(given[2]), std::chrono::seconds(std::stoi(given[3])));
  } else if (given.size() == 4 && given[0] == "hand-over") {
    hand_over(given[1], std::stoul(given[2]), std::chrono::seconds(std::stoi(given[3])));
  } else {
    std::fputs(
        "usage: library_load [hand-over] URL CLIENTS SECONDS\n"
        "       library_load round-trip\n",
        stderr);
    return 64;
  }
  return 0;
}
