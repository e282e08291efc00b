// One worker or the observer of `make demo`. A worker increments an account in a loop: lock, read,
// think, write, unlock. It prints each step as a tab-separated line, which tools/demo.py explains.
//   demo_worker URL NAME FILE [--ttl-ms N] [--think-ms N] [--no-fence]
//   demo_worker URL NAME --watch
// Commands on stdin: `hesitate` pauses the next turn between read and write until `go`. The worker
// ends with its stdin.

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <tenure/tenure.hpp>

#include "account.hpp"

using namespace std::chrono_literals;
using std::chrono::milliseconds;

namespace {

constexpr const char* lock_name = "account";

struct Job {
  std::string url{};
  std::string name{};
  std::string file{};
  milliseconds ttl = 2s;
  milliseconds think = 150ms;
  Fenced fenced = Fenced::yes;
  bool watches = false;
};

template <class... Words>
void print_step(std::string_view what, const Words&... words) {
  std::cout << what;
  ((std::cout << '\t' << words), ...);
  std::cout << '\n' << std::flush;
}

/// Commands on stdin, and the conditions the worker waits for.
class Commands {
 public:
  void handle(std::string_view word) {
    const std::lock_guard lock(mutex_);
    if (word == "hesitate") {
      hesitates_ = true;
      may_go_ = false;
    } else if (word == "go") {
      may_go_ = true;
    }
    changed_.notify_all();
  }

  /// Simulates the work between read and write. Returns false when the worker must end.
  bool think(milliseconds time, const std::stop_token& end) {
    std::unique_lock lock(mutex_);
    if (hesitates_) {
      hesitates_ = false;
      print_step("hesitates");
      return changed_.wait(lock, end, [this] { return may_go_; });
    }
    changed_.wait_for(lock, end, time, [] { return false; });
    return !end.stop_requested();
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool hesitates_ = false;  // guarded by mutex_
  bool may_go_ = false;     // guarded by mutex_
};

void report_rejection(const tenure::FenceError& why, std::int64_t total) {
  if (why.reason == tenure::FenceError::Reason::stale) {
    print_step("fenced", why.token.get(), why.highest.get(), total);
  } else {
    print_step("error", to_string(why));
  }
}

/// Increments the account whenever it holds the lock.
class Worker {
 public:
  Worker(const Job& job, const tenure::Client& client, Account account, Commands& commands)
      : job_(job),
        mutex_(client.mutex(lock_name, {.ttl = job.ttl})),
        account_(std::move(account)),
        commands_(commands) {}

  void work(const std::stop_token& end) {
    while (!end.stop_requested()) {
      print_step("waits");
      auto guard = mutex_.lock(end);
      if (guard) {
        take_turn(*guard, end);
        release(*guard);
      } else if (guard.error() != tenure::Errc::cancelled) {
        print_step("error", to_string(guard.error()));
        commands_.think(100ms, end);
      }
    }
  }

 private:
  /// Does not check whether the lock is still held, as most programs do not between two statements.
  /// Storage does.
  void take_turn(const tenure::Guard& guard, const std::stop_token& end) {
    const auto report = guard.report();
    print_step("holds", guard.token().get(),
               std::chrono::duration_cast<milliseconds>(report.waited).count(),
               report.queue_position);
    const auto total = account_.read(guard.token());
    if (!total) {
      report_rejection(total.error(), 0);
      return;
    }
    print_step("read", *total);
    if (!commands_.think(job_.think, end)) {
      return;
    }
    if (const auto written = account_.write(*total + 1, job_.name, guard.token()); !written) {
      report_rejection(written.error(), *total + 1);
    } else {
      print_step("wrote", *total + 1, guard.token().get());
    }
  }

  static void release(tenure::Guard& guard) {
    if (const auto unlocked = guard.unlock(); !unlocked) {
      print_step(unlocked.error() == tenure::Errc::lease_lost ? "lost" : "error",
                 to_string(unlocked.error()));
    }
  }

  const Job& job_;
  tenure::Mutex mutex_;
  Account account_;
  Commands& commands_;
};

/// Prints the events of the service, which are independent of workers and storage.
void watch(const tenure::Client& client, const std::stop_token& end) {
  auto events = client.watch(lock_name).or_throw();
  print_step("watches");
  while (const auto event = events.next(end)) {
    print_step("event", to_string(event->type), event->owner, event->token.get());
  }
}

std::optional<Job> read_arguments(std::span<char*> words) {
  if (words.size() < 4) {
    return std::nullopt;
  }
  Job job{.url = words[1], .name = words[2]};
  if (words[3] == std::string_view("--watch")) {
    job.watches = true;
    return job;
  }
  job.file = words[3];
  for (std::size_t at = 4; at < words.size(); ++at) {
    const std::string_view word = words[at];
    const auto number = [&] { return milliseconds(std::atoi(words[++at])); };
    if (word == "--no-fence") {
      job.fenced = Fenced::none;
    } else if (word == "--ttl-ms" && at + 1 < words.size()) {
      job.ttl = number();
    } else if (word == "--think-ms" && at + 1 < words.size()) {
      job.think = number();
    } else {
      return std::nullopt;
    }
  }
  return job;
}

int run(const Job& job) {
  const auto client = tenure::connect(job.url, {.owner = job.name});
  if (!client) {
    print_step("error", to_string(client.error()));
    return EXIT_FAILURE;
  }
  Commands commands;
  std::optional<Worker> worker;
  if (!job.watches) {
    auto account = Account::open(job.file, job.fenced);
    if (!account) {
      print_step("error", to_string(account.error()));
      return EXIT_FAILURE;
    }
    worker.emplace(job, *client, *std::move(account), commands);
  }
  const std::jthread busy([&](const std::stop_token& end) {
    if (worker) {
      worker->work(end);
    } else {
      watch(*client, end);
    }
  });
  for (std::string line; std::getline(std::cin, line);) {
    commands.handle(line);
  }
  return EXIT_SUCCESS;
}

}  // namespace

int main(int count, char** words) {
  const auto job = read_arguments({words, static_cast<std::size_t>(count)});
  if (!job) {
    std::cerr << "demo_worker URL NAME (FILE [--ttl-ms N] [--think-ms N] [--no-fence] | --watch)\n";
    return 64;
  }
  return run(*job);
}
