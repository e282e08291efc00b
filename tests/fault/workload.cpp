// Workload process of the fault tests: acquires and releases locks of every kind through the client
// library until SIGTERM, whatever happens to the service, and records a history:
//
//   tenure_workload --url tenure://a:1,b:2 --name left --history left.jsonl --ledger writes.db

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>

#include "fault/watcher.hpp"
#include "fault/worker.hpp"

namespace tenure::fault {
namespace {

struct Options {
  std::string url{};
  std::string name = "w";
  std::string history{};
  std::string ledger{};
  std::uint64_t seed = 1;
  int workers = 10;
  std::chrono::milliseconds ttl{3'000};
  std::chrono::milliseconds hold_max{10};
  std::chrono::milliseconds pause_max{20};
  /// Longer than any fault, so that requests survive faults instead of failing.
  std::chrono::milliseconds request_timeout{20'000};
};

bool read(Options& options, std::span<char*> words) {
  const auto milliseconds = [](const std::string& text) {
    return std::chrono::milliseconds(std::stoll(text));
  };
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string flag = words[i];
    const std::string value = words[i + 1];
    if (flag == "--url") {
      options.url = value;
    } else if (flag == "--name") {
      options.name = value;
    } else if (flag == "--history") {
      options.history = value;
    } else if (flag == "--ledger") {
      options.ledger = value;
    } else if (flag == "--seed") {
      options.seed = std::stoull(value);
    } else if (flag == "--workers") {
      options.workers = std::stoi(value);
    } else if (flag == "--ttl-ms") {
      options.ttl = milliseconds(value);
    } else if (flag == "--hold-ms") {
      options.hold_max = milliseconds(value);
    } else if (flag == "--pause-ms") {
      options.pause_max = milliseconds(value);
    } else if (flag == "--request-timeout-ms") {
      options.request_timeout = milliseconds(value);
    } else {
      return false;
    }
  }
  return words.size() % 2 == 0 && !options.url.empty() && !options.history.empty() &&
         !options.ledger.empty();
}

int run(const Options& options) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  auto client =
      connect(options.url, {.owner = options.name, .request_timeout = options.request_timeout});
  if (!client) {
    std::fprintf(stderr, "tenure_workload: %s\n", to_string(client.error()).c_str());
    return 1;
  }
  Recorder recorder(options.history);
  Ledger ledger(options.ledger);
  std::stop_source stop;
  WorkloadContext context{.client = *client,
                          .recorder = recorder,
                          .ledger = ledger,
                          .name = options.name,
                          .ttl = options.ttl,
                          .hold_max = options.hold_max,
                          .pause_max = options.pause_max,
                          .stop = stop.get_token()};
  {
    std::vector<std::jthread> threads;
    threads.emplace_back([&context] { Watcher(context).run(); });
    for (int i = 0; i < options.workers; ++i) {
      const auto role = static_cast<Worker::Role>(i % Worker::roles);
      threads.emplace_back([&context, role, i, seed = options.seed] {
        Worker(context, role, i, seed * 1'000 + static_cast<std::uint64_t>(i)).run();
      });
    }
    int signal = 0;
    sigwait(&signals, &signal);
    context.stopped = now();
    stop.request_stop();
  }
  std::puts("stopped");
  return 0;
}

}  // namespace
}  // namespace tenure::fault

int main(int count, char** words) {
  tenure::fault::Options options;
  const std::span all(words, static_cast<std::size_t>(count));
  if (!tenure::fault::read(options, all.subspan(1))) {
    std::fputs("usage: tenure_workload --url U --history F --ledger F [--name N] [--seed N]\n",
               stderr);
    return 64;
  }
  return tenure::fault::run(options);
}
