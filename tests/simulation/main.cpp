// tenure_simulation: runs many seeds, each batch in a process of its own, so that a crash counts as
// a result. Prints for each failing seed the failure and the command that replays it with a trace.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "history/lines.hpp"
#include "simulation/options.hpp"
#include "simulation/run.hpp"

namespace tenure::simulation {
namespace {

enum ExitCode : int { good = 0, broken = 1, usage = 64 };

struct Order {
  std::uint64_t first = 1;
  std::uint64_t seeds = 1000;
  std::uint64_t jobs = 2;
  std::uint64_t batch = 50;
  std::uint64_t failures_max = 10;  ///< Number of failures after which the run ends.
  std::uint64_t seconds = 60;
  std::string trace;    ///< File for the trace of one seed.
  std::string history;  ///< File for the history of one seed.
  std::string program;
  Mutant mutant = Mutant::none;
};

// CPU time limit of one seed. Exceeding it is a failure and ends the process of the batch.
constexpr time_t seconds_max = 60;

Options options_for(const Order& order, std::uint64_t seed) {
  auto options = draw(seed);
  options.length = std::chrono::seconds(order.seconds);
  options.mutant = order.mutant;
  return options;
}

std::string replay_command(const Order& order, std::uint64_t seed) {
  std::string command = order.program + " --seeds 1 --first " + std::to_string(seed) +
                        " --seconds " + std::to_string(order.seconds);
  if (order.mutant != Mutant::none) {
    command += " --mutant " + std::string(to_string(order.mutant));
  }
  return command + " --trace trace.txt --history history.jsonl";
}

/// Totals over all runs.
class Sum {
 public:
  void add(const std::string& line) {
    std::istringstream in(line);
    std::string name;
    std::uint64_t value = 0;
    while (in >> name >> value) {
      totals_[name] += value;
    }
  }
  void print() const {
    for (const auto& [name, value] : totals_) {
      std::cout << " " << name << " " << value;
    }
    std::cout << "\n";
  }

 private:
  std::map<std::string, std::uint64_t> totals_;
};

std::string line_of(const Outcome& outcome) {
  std::ostringstream out;
  out << "commands " << outcome.commands << " grants " << outcome.grants << " events "
      << outcome.events << " watched " << outcome.watched << " crashes " << outcome.crashes
      << " faults " << outcome.faults << " reads " << outcome.reads << " terms " << outcome.terms
      << " stale_writes_refused " << outcome.stale_writes << " names_searched "
      << outcome.names_searched;
  return out.str();
}

/// A batch of seeds in a process of its own, which writes one line for each.
class Batch {
 public:
  Batch(const Order& order, std::uint64_t first, std::uint64_t end)
      : order_(&order), next_(first), end_(end) {}

  [[nodiscard]] bool start() {
    int ends[2];
    if (pipe(ends) != 0) {
      return false;
    }
    process_ = fork();
    if (process_ == 0) {
      close(ends[0]);
      work(ends[1]);
      _exit(0);
    }
    close(ends[1]);
    in_ = ends[0];
    return process_ > 0;
  }
  [[nodiscard]] pid_t process() const noexcept { return process_; }
  [[nodiscard]] int descriptor() const noexcept { return in_; }

  /// Reads all lines. The first missing seed is the one that ended the process.
  void finish(Sum& sum, std::vector<std::pair<std::uint64_t, std::string>>& failures) {
    std::string text;
    std::vector<char> room(1U << 16);
    for (ssize_t got = 0; (got = read(in_, room.data(), room.size())) > 0;) {
      text.append(room.data(), static_cast<std::size_t>(got));
    }
    close(in_);
    int status = 0;
    waitpid(process_, &status, 0);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line); ++next_) {
      const auto bar = line.find('|');
      sum.add(line.substr(0, bar));
      if (bar + 1 < line.size()) {
        failures.emplace_back(next_, line.substr(bar + 1));
      }
    }
    if (next_ < end_) {
      failures.emplace_back(next_, WIFSIGNALED(status) ? std::string("the process died: ") +
                                                             strsignal(WTERMSIG(status))
                                                       : std::string("the process ended"));
      ++next_;
    }
  }
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }

 private:
  void work(int out) const {
    for (auto seed = next_; seed < end_; ++seed) {
      // CPU time: wall time is arbitrary on a shared machine.
      const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = seconds_max, .tv_usec = 0}};
      setitimer(ITIMER_PROF, &limit, nullptr);
      const auto outcome = run(options_for(*order_, seed));
      auto failure = outcome.failure;
      for (auto& letter : failure) {
        letter = letter == '\n' || letter == '|' ? ' ' : letter;
      }
      const auto line = line_of(outcome) + "|" + failure + "\n";
      if (write(out, line.data(), line.size()) < 0) {
        return;
      }
    }
  }

  const Order* order_;
  std::uint64_t next_;
  std::uint64_t end_;
  pid_t process_ = 0;
  int in_ = -1;
};

int run_many(const Order& order) {
  const auto began = std::chrono::steady_clock::now();
  Sum sum;
  std::vector<std::pair<std::uint64_t, std::string>> failures;
  std::vector<Batch> open;
  auto next = order.first;
  const auto end = order.first + order.seeds;
  const auto begin = [&](std::uint64_t from, std::uint64_t to) {
    open.emplace_back(order, from, to);
    return open.back().start();
  };
  while ((next < end && failures.size() < order.failures_max) || !open.empty()) {
    while (next < end && open.size() < order.jobs && failures.size() < order.failures_max) {
      const auto to = std::min(next + order.batch, end);
      if (!begin(next, to)) {
        std::cerr << "tenure_simulation: no more processes\n";
        return broken;
      }
      next = to;
    }
    auto batch = std::move(open.front());
    open.erase(open.begin());
    batch.finish(sum, failures);
    if (batch.next() < batch.end() && failures.size() < order.failures_max) {
      static_cast<void>(begin(batch.next(), batch.end()));
    }
  }
  for (const auto& [seed, why] : failures) {
    std::cout << "FAILED " << to_string(options_for(order, seed)) << "\n  " << why
              << "\n  again: " << replay_command(order, seed) << "\n";
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::cout << "seeds " << order.first << ".." << next - 1 << " of " << order.seconds
            << " s, failed " << failures.size() << ", wall seconds " << took.count() << ",";
  sum.print();
  return failures.empty() ? good : broken;
}

int run_one(const Order& order) {
  const auto options = options_for(order, order.first);
  std::cout << to_string(options) << "\n";
  std::ofstream trace;
  if (!order.trace.empty()) {
    trace.open(order.trace);
    trace << to_string(options) << std::endl;
  }
  history::Events events;
  const auto outcome = run(options, trace.is_open() ? &trace : nullptr, &events);
  if (!order.history.empty()) {
    std::ofstream out(order.history);
    for (const auto& event : events) {
      out << history::to_line(event) << "\n";
    }
  }
  std::cout << line_of(outcome) << "\n"
            << (outcome.failure.empty() ? "good" : outcome.failure) << "\n";
  return outcome.failure.empty() ? good : broken;
}

bool parse(std::span<char*> arguments, Order& order) {
  order.program = arguments[0];
  const std::map<std::string_view, std::uint64_t*> numbers{
      {"--first", &order.first},     {"--seeds", &order.seeds},
      {"--jobs", &order.jobs},       {"--batch", &order.batch},
      {"--seconds", &order.seconds}, {"--failures", &order.failures_max}};
  for (std::size_t i = 1; i + 1 < arguments.size(); i += 2) {
    const std::string_view name = arguments[i];
    const std::string value = arguments[i + 1];
    if (const auto number = numbers.find(name); number != numbers.end()) {
      if (value.empty() || value.find_first_not_of("0123456789") != std::string::npos) {
        return false;
      }
      *number->second = std::stoull(value);
    } else if (name == "--trace") {
      order.trace = value;
    } else if (name == "--history") {
      order.history = value;
    } else if (name == "--mutant" && mutant_of(value).has_value()) {
      order.mutant = *mutant_of(value);
    } else {
      return false;
    }
  }
  return arguments.size() % 2 == 1 && order.jobs > 0 && order.batch > 0;
}

}  // namespace
}  // namespace tenure::simulation

int main(int argc, char** argv) {
  using namespace tenure::simulation;
  Order order;
  if (!parse(std::span(argv, static_cast<std::size_t>(argc)), order)) {
    std::cerr << "usage: tenure_simulation [--first SEED] [--seeds N] [--jobs N] [--batch N]\n"
                 "                         [--seconds N] [--failures N] [--mutant NAME]\n"
                 "                         [--trace FILE] [--history FILE]\n";
    return usage;
  }
  const bool is_one = order.seeds == 1 && (!order.trace.empty() || !order.history.empty());
  return is_one ? run_one(order) : run_many(order);
}
