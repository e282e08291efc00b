// The same load as service_load, by users of the library:
//
//   library_load threads URL CLIENTS SECONDS    lock + unlock cycles, each client a thread
//   library_load tasks URL CLIENTS SECONDS      the same, each client a coroutine
//   library_load hand-over URL WAITERS SECONDS  one contended lock, each client a thread
//   library_load hand-over-apart URL WAITERS SECONDS  the same, each with a Client of its own
//   library_load hand-over-tasks URL WAITERS SECONDS  the same, each client a coroutine
//   library_load hold URL NAME TTL_SECONDS      acquires, never renews, stays
//   library_load wait URL NAME                  waits until the lock is granted
//   library_load leases URL COUNT SECONDS       keeps leases of ten seconds alive
//   library_load open URL COUNT                 opens clients, each locks and unlocks once
//   library_load round-trip                     one byte to another thread and back, by TCP
//   library_load written-round-trip FILE        the same, with a synced block before the reply
//
// All clients of a load share one Client, as in a real process, unless stated otherwise. Each has a
// lock of its own and starts the next cycle when the last one has completed. Prints one line of
// JSON, also when SIGINT ends a load of cycles early.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <tenure/client/client.hpp>

#include "samples.hpp"

namespace tenure::bench {
namespace {

using Samples = std::vector<std::uint32_t>;

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

/// Long timeout: stalls of a server are measured, not reported as errors.
Client patient_client(const std::string& url) {
  return insist(connect(url, {.request_timeout = std::chrono::seconds(30)}), "connect");
}

std::vector<Mutex> mutexes_of(const Client& client, std::size_t count) {
  std::vector<Mutex> mutexes;
  for (std::size_t n = 0; n < count; ++n) {
    mutexes.push_back(client.mutex("bench/" + std::to_string(n)));
  }
  return mutexes;
}

void threads(const std::string& url, std::size_t clients, std::chrono::seconds duration) {
  const auto client = patient_client(url);
  const auto mutexes = mutexes_of(client, clients);
  run_threads(clients, duration, [&](std::size_t n) {
    const auto began = Clock::now();
    auto guard = insist(mutexes[n].lock(), "lock");
    insist(guard.unlock(), "unlock");
    return microseconds_since(began);
  });
}

/// Detached coroutine: runs to its end.
struct Task {
  struct promise_type {
    [[nodiscard]] static Task get_return_object() noexcept { return {}; }
    [[nodiscard]] static std::suspend_never initial_suspend() noexcept { return {}; }
    [[nodiscard]] static std::suspend_never final_suspend() noexcept { return {}; }
    static void return_void() noexcept {}
    [[noreturn]] static void unhandled_exception() noexcept { std::terminate(); }
  };
};

/// One client of `tasks`. REQUIRES: all references outlive it; `done` is set at its end.
Task cycle(const Mutex& mutex, const Period& period, Samples& samples, std::latch& done) {
  while (!period.is_over()) {
    const auto began = Clock::now();
    auto guard = insist(co_await mutex.lock_async(), "lock");
    insist(co_await guard.unlock_async(), "unlock");
    if (period.counts(began)) {
      samples.push_back(microseconds_since(began));
    }
  }
  done.count_down();
}

void tasks(const std::string& url, std::size_t clients, std::chrono::seconds duration) {
  const auto client = patient_client(url);
  const auto mutexes = mutexes_of(client, clients);
  std::vector<Samples> samples(clients);
  std::latch done(static_cast<std::ptrdiff_t>(clients));
  const Period period{.duration = duration};
  for (std::size_t n = 0; n < clients; ++n) {
    cycle(mutexes[n], period, samples[n], done);
  }
  done.wait();
  print_all(samples, duration);
}

/// Time from just before a release to the next grant, with a number of waiters and one holder.
void hand_over(const std::string& url, std::size_t waiters, std::size_t clients,
               std::chrono::seconds duration) {
  std::vector<Mutex> mutexes;
  for (std::size_t n = 0; n < clients; ++n) {
    mutexes.push_back(patient_client(url).mutex("bench/hot"));
  }
  std::atomic<Clock::time_point::rep> released = 0;
  run_threads(waiters + 1, duration, [&](std::size_t n) {
    auto guard = insist(mutexes[n % clients].lock(), "lock");
    const Clock::time_point last{Clock::duration(released.load())};
    const auto took = microseconds_since(last);
    released = Clock::now().time_since_epoch().count();
    insist(guard.unlock(), "unlock");
    return took;
  });
}

/// One client of `hand-over-tasks`. REQUIRES: as for cycle().
Task take_turns(const Mutex& mutex, const Period& period, std::atomic<Clock::time_point>& released,
                Samples& samples, std::latch& done) {
  while (!period.is_over()) {
    const auto began = Clock::now();
    auto guard = insist(co_await mutex.lock_async(), "lock");
    if (period.counts(began)) {
      samples.push_back(microseconds_since(released));
    }
    released = Clock::now();
    insist(co_await guard.unlock_async(), "unlock");
  }
  done.count_down();
}

void hand_over_tasks(const std::string& url, std::size_t waiters, std::chrono::seconds duration) {
  std::vector<Mutex> mutexes;
  for (std::size_t n = 0; n < waiters + 1; ++n) {
    mutexes.push_back(patient_client(url).mutex("bench/hot"));
  }
  std::vector<Samples> samples(mutexes.size());
  std::latch done(static_cast<std::ptrdiff_t>(mutexes.size()));
  std::atomic<Clock::time_point> released{};
  const Period period{.duration = duration};
  for (std::size_t n = 0; n < mutexes.size(); ++n) {
    take_turns(mutexes[n], period, released, samples[n], done);
  }
  done.wait();
  print_all(samples, duration);
}

/// Holds until it is killed. Prints the moment before it asked for its lease.
void hold(const std::string& url, const std::string& name, std::chrono::seconds ttl) {
  const auto client = insist(connect(url), "connect");
  insist(client.holders(name), "holders");
  const auto asked = Clock::now();
  const auto lease = insist(client.lease({.ttl = ttl, .renewals_per_ttl = 0}), "lease");
  const auto guard = insist(client.mutex(name, {.lease = lease}).lock(), "lock");
  print_moment(asked);
  std::this_thread::sleep_for(std::chrono::minutes(1));
}

/// Prints the moment at which it had the lock.
void wait(const std::string& url, const std::string& name) {
  const auto client = insist(connect(url), "connect");
  const auto guard = insist(client.mutex(name).lock(), "lock");
  print_moment(Clock::now());
}

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Prints a line when all are there, and another at the end.
void leases(const std::string& url, std::size_t count, std::chrono::seconds duration) {
  constexpr std::size_t threads = 64;  // Each waits for the disk; together they share its writes.
  const auto client = insist(connect(url), "connect");
  std::vector<std::vector<Lease>> kept(threads);
  const auto began = Clock::now();
  {
    std::vector<std::jthread> asking;
    for (std::size_t n = 0; n < threads; ++n) {
      asking.emplace_back([&, n] {
        for (std::size_t k = n; k < count; k += threads) {
          kept[n].push_back(insist(client.lease({.ttl = std::chrono::seconds(10)}), "lease"));
        }
      });
    }
  }
  std::printf("{\"granted_s\": %.3f}\n", microseconds_since(began) / 1e6);
  std::fflush(stdout);
  const auto used = cpu_seconds();
  std::this_thread::sleep_for(duration);
  const auto cores = (cpu_seconds() - used) / static_cast<double>(duration.count());
  std::size_t lost = 0;
  for (const auto& some : kept) {
    lost += static_cast<std::size_t>(std::ranges::count_if(some, [](const Lease& lease) {
      return !lease.is_alive() || lease.lost().stop_requested();
    }));
  }
  std::printf("{\"lost\": %zu, \"client_cores\": %.3f}\n", lost, cores);
  std::fflush(stdout);
  // Releasing all of them would take longer than their expiry.
  std::_Exit(0);
}

/// From nothing to a client that has done its first cycle.
void open(const std::string& url, std::size_t count) {
  Samples all;
  for (std::size_t n = 0; n < count; ++n) {
    const auto began = Clock::now();
    const auto client = insist(connect(url), "connect");
    auto guard = insist(client.mutex("bench/open").lock(), "lock");
    insist(guard.unlock(), "unlock");
    all.push_back(microseconds_since(began));
  }
  print(std::move(all), std::chrono::seconds(0));
}

/// What no service can be faster than: the network alone.
void round_trip(int rounds, const std::function<void()>& far_end) {
  boost::asio::io_context loop;
  using boost::asio::ip::tcp;
  tcp::acceptor acceptor(loop, {boost::asio::ip::address_v4::loopback(), 0});
  tcp::socket here(loop);
  here.connect(acceptor.local_endpoint());
  auto there = acceptor.accept();
  for (auto* socket : {&here, &there}) {
    socket->set_option(tcp::no_delay(true));
  }
  const std::jthread echo([&] {
    char byte = 0;
    for (int n = 0; n < rounds; ++n) {
      boost::asio::read(there, boost::asio::buffer(&byte, 1));
      far_end();
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

/// The network and the disk, one after the other as in a service: a block is written and synced
/// before each answer.
void written_round_trip(const std::string& path) {
  constexpr int rounds = 500;
  const std::string block(4096, 'x');
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const auto insist_on = [](bool is_done) {
    if (!is_done) {
      std::perror("written-round-trip");
      std::exit(1);
    }
  };
  const auto write = [&](int number) {
    insist_on(::pwrite(file, block.data(), block.size(), number * 4096L) == 4096);
  };
  insist_on(file >= 0);
  for (int n = 0; n < rounds; ++n) {
    write(n);
  }
  insist_on(::fsync(file) == 0);
  int number = 0;
  round_trip(rounds, [&] {
    write(number++);
    insist_on(::fdatasync(file) == 0);
  });
  ::close(file);
}

/// Runs the load that the arguments name. False: they are invalid.
bool run_command(const std::vector<std::string>& given) {
  const auto has = [&](const char* what, std::size_t arguments) {
    return given.size() == arguments + 1 && given[0] == what;
  };
  const auto seconds = [&] { return std::chrono::seconds(std::stoi(given[3])); };
  if (has("threads", 3)) {
    threads(given[1], std::stoul(given[2]), seconds());
  } else if (has("tasks", 3)) {
    tasks(given[1], std::stoul(given[2]), seconds());
  } else if (has("hand-over", 3)) {
    hand_over(given[1], std::stoul(given[2]), 1, seconds());
  } else if (has("hand-over-apart", 3)) {
    hand_over(given[1], std::stoul(given[2]), std::stoul(given[2]) + 1, seconds());
  } else if (has("hand-over-tasks", 3)) {
    hand_over_tasks(given[1], std::stoul(given[2]), seconds());
  } else if (has("leases", 3)) {
    leases(given[1], std::stoul(given[2]), seconds());
  } else if (has("hold", 3)) {
    hold(given[1], given[2], seconds());
  } else if (has("wait", 2)) {
    wait(given[1], given[2]);
  } else if (has("open", 2)) {
    open(given[1], std::stoul(given[2]));
  } else if (has("round-trip", 0)) {
    round_trip(5000, [] {});
  } else if (has("written-round-trip", 1)) {
    written_round_trip(given[1]);
  } else {
    return false;
  }
  return true;
}

}  // namespace
}  // namespace tenure::bench

int main(int count, char** arguments) {
  std::signal(SIGINT, [](int) { tenure::bench::is_interrupted = true; });
  if (!tenure::bench::run_command(std::vector<std::string>(arguments + 1, arguments + count))) {
    std::fputs(
        "usage: library_load threads|tasks URL CLIENTS SECONDS\n"
        "       library_load hand-over|hand-over-apart|hand-over-tasks URL WAITERS SECONDS\n"
        "       library_load leases URL COUNT SECONDS\n"
        "       library_load hold URL NAME TTL_SECONDS\n"
        "       library_load wait URL NAME\n"
        "       library_load open URL COUNT\n"
        "       library_load round-trip\n"
        "       library_load written-round-trip FILE\n",
        stderr);
    return 64;
  }
  return 0;
}
