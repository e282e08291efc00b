// tenure bench: measures latency and throughput of the locks behind a URL.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "backends/url.hpp"
#include "cli/commands.hpp"
#include "cli/load.hpp"
#include "cli/output.hpp"
#include "cli/service.hpp"
#include "cli/signals.hpp"
#include "sys/json_writer.hpp"
#include "sys/random.hpp"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Each client is a thread. The bounds reject typing errors before they exhaust this machine.
constexpr std::uint64_t clients_max = 4096;
constexpr std::uint64_t names_max = 1'000'000;
// Longer runs are cut: they would not change the percentiles.
constexpr milliseconds time_max = std::chrono::hours(1);
/// Width of the longest bar, in characters.
constexpr std::size_t bar_columns = 40;

/// Column of the result, and the fraction of the samples that it covers.
struct Percentile {
  const char* name;
  double part;
};
constexpr std::array<Percentile, 5> percentiles{
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}}};

/// Names of the measured steps of a workload.
struct Steps {
  std::string_view first;
  std::string_view second{};
};
/// A hand-over has one step only: from the release to the next grant.
Steps steps_of(Workload workload) {
  switch (workload) {
    case Workload::mutex: return {"lock", "unlock"};
    case Workload::shared: return {"lock_shared", "unlock"};
    case Workload::handover: return {"hand-over"};
    case Workload::lease: return {"grant", "revoke"};
  }
  return {""};
}

/// Parsed options of a run. URLs are measured one after the other, so that they do not compete for
/// this machine.
struct Plan {
  std::vector<std::string> urls{};
  std::string mode{};
  std::size_t connections = 1;
  Load load{};
};

/// The parser has checked the name against the choices of the option.
Workload workload_of(std::string_view mode) {
  return mode == "shared"     ? Workload::shared
         : mode == "handover" ? Workload::handover
         : mode == "lease"    ? Workload::lease
                              : Workload::mutex;
}

/// Parses and validates the options, before any connection is opened.
Result<Plan> plan_of(const Arguments& arguments) {
  const auto clients = arguments.number("--clients", clients_max);
  const auto names = arguments.number("--names", names_max);
  const auto connections = arguments.number("--connections", clients_max);
  const auto count = arguments.number("--count", UINT64_MAX);
  for (const auto* number : {&clients, &names, &connections, &count}) {
    if (!*number) {
      return std::unexpected(number->error());
    }
  }
  const auto time = arguments.duration("--time");
  const auto ttl = arguments.duration("--ttl");
  if (!time || !ttl) {
    return std::unexpected(!time ? time.error() : ttl.error());
  }
  Plan plan{.urls = arguments.words, .mode = arguments.text("--mode").value_or("mutex")};
  if (plan.urls.empty()) {
    plan.urls.push_back(url_of(arguments));
  }
  auto& load = plan.load;
  load.workload = workload_of(plan.mode);
  load.clients = clients->value_or(load.clients);
  // One name for each client measures the service without contention; a hand-over needs contention.
  const auto usual = load.workload == Workload::handover ? 1 : load.clients;
  load.names = names->value_or(usual);
  load.time = std::min(time->value_or(load.time), time_max);
  load.count = count->value_or(0);
  load.ttl = ttl->value_or(load.ttl);
  // A random prefix, so that the run neither disturbs other clients nor is disturbed by them.
  load.prefix = "tenure-bench/" + std::to_string(sys::random_id()) + "/";
  // More connections than clients would stay idle.
  plan.connections =
      std::clamp<std::size_t>(connections->value_or(1), 1, std::max<std::size_t>(load.clients, 1));
  if (auto checked = check(load); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  return plan;
}

/// Throughput; 0 for a run that ended before the clock advanced.
double per_second(std::uint64_t count, nanoseconds took) {
  const auto seconds = std::chrono::duration<double>(took).count();
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

/// Integer with thousands separators. Decimals of a throughput are noise.
std::string rounded(double number) {
  return grouped(static_cast<std::uint64_t>(std::llround(number)));
}

/// Measurements of one URL.
struct Measured {
  std::string url{};
  LoadFigures figures{};
};

/// Progress line on stderr, if that is a terminal.
///
/// Not thread safe: only the thread that runs the load calls it.
class ProgressLine {
 public:
  ProgressLine(const Arguments& arguments, std::string url, milliseconds time)
      : is_shown_(isatty(STDERR_FILENO) == 1 && format_of(arguments) != Format::quiet),
        url_(std::move(url)),
        time_(time) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (is_shown_) {
      // Erases the line, so that the results begin in the first column.
      std::fputs("\r\033[K", stderr);
    }
  }

  /// Replaces the line by the figures so far.
  void tell(const LoadFigures& figures) const {
    if (!is_shown_) {
      return;
    }
    std::uint64_t errors = 0;
    for (const auto& [name, count] : figures.errors) {
      errors += count;
    }
    const auto line = sanitized(url_) + "  " +
                      format_duration(std::chrono::duration_cast<milliseconds>(figures.took)) +
                      " of " + format_duration(time_) + "  " + grouped(figures.first.count()) +
                      " done, " + rounded(per_second(figures.first.count(), figures.took)) +
                      "/s, p99 " + format_short(figures.first.quantile(0.99)) +
                      (errors > 0 ? ", " + grouped(errors) + " errors" : "");
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
  }

 private:
  bool is_shown_;
  std::string url_;
  milliseconds time_;
};

/// Creates the clients, then runs the load on one URL.
Result<Measured> measure(const Arguments& arguments, const Plan& plan, const std::string& url,
                         const std::stop_token& stop) {
  auto there = arguments;
  there.options["--url"] = url;
  std::vector<Client> connections;
  for (std::size_t number = 0; number < plan.connections; ++number) {
    auto client = open_client(there);
    if (!client) {
      return std::unexpected(std::move(client).error());
    }
    connections.push_back(*std::move(client));
  }
  // From here on only this text is printed: the URL may contain a password.
  const auto shown = backends::without_secrets(url);
  const ProgressLine line(arguments, shown, plan.load.time);
  return Measured{
      .url = shown,
      .figures = run_load(connections, plan.load,
                          {.tell = [&](const LoadFigures& figures) { line.tell(figures); }}, stop)};
}

/// Adds the row of one step of one URL.
void add_row(Table& table, const Measured& measured, std::string_view step,
             const Latencies& latencies) {
  std::vector<std::string> row{plain(measured.url), std::string(step), grouped(latencies.count()),
                               rounded(per_second(latencies.count(), measured.figures.took))};
  for (const auto& [name, part] : percentiles) {
    row.push_back(format_short(latencies.quantile(part)));
  }
  table.add(std::move(row));
}

/// Prints the distribution of one step, with bars on a terminal. A pipe gets the numbers only.
void print_histogram(const Latencies& latencies) {
  const auto ranges = latencies.ranges();
  // At least 1, so that the bars can be scaled without a division by zero.
  std::uint64_t most = 1;
  for (const auto& range : ranges) {
    most = std::max(most, range.count);
  }
  const bool has_bars = isatty(STDOUT_FILENO) == 1;
  Table table({"FROM", "TO", "COUNT", "SHARE", ""});
  for (const auto& range : ranges) {
    const auto share =
        100 * static_cast<double>(range.count) / static_cast<double>(latencies.count());
    std::array<char, 32> percent{};
    std::snprintf(percent.data(), percent.size(), "%.2f %%", share);
    std::vector<std::string> row{format_short(range.from), format_short(range.to),
                                 grouped(range.count), percent.data()};
    if (has_bars) {
      std::string bar;
      // Rounded up, so that a range with samples has a visible bar.
      const auto columns = (range.count * bar_columns + most - 1) / most;
      for (std::uint64_t column = 0; column < columns; ++column) {
        bar += "█";
      }
      row.push_back(colored(Color::green, bar));
    }
    table.add(std::move(row));
  }
  print(table.text());
}

/// First the comparison of all URLs, then the histogram of the first step of each.
void print_tables(const std::vector<Measured>& all, const Plan& plan) {
  const auto [first, second] = steps_of(plan.load.workload);
  Table table({"URL", "OPERATION", "COUNT", "PER SECOND", "P50", "P90", "P99", "P99.9", "MAX"});
  for (const auto& measured : all) {
    add_row(table, measured, first, measured.figures.first);
    if (!second.empty()) {
      add_row(table, measured, second, measured.figures.second);
    }
  }
  print(table.text());
  for (const auto& measured : all) {
    if (measured.figures.first.count() > 0) {
      print("\n" + std::string(first) + " on " + plain(measured.url) + ", " + plan.mode + " with " +
            grouped(plan.load.clients) + " clients and " + grouped(plan.load.names) + " names\n");
      print_histogram(measured.figures.first);
    }
  }
}

/// Writes count, throughput, percentiles in microseconds and histogram of one step.
void write(sys::JsonWriter& json, std::string_view name, const Latencies& latencies,
           nanoseconds took) {
  const auto in_us = [](nanoseconds time) { return static_cast<double>(time.count()) / 1000; };
  json.key(name).begin_object().field("count", latencies.count());
  json.field("per_second", per_second(latencies.count(), took)).key("latency_us").begin_object();
  for (const auto& [percentile, part] : percentiles) {
    json.field(percentile, in_us(latencies.quantile(part)));
  }
  json.end_object().key("histogram").begin_array();
  for (const auto& range : latencies.ranges()) {
    json.begin_object()
        .field("from_us", in_us(range.from))
        .field("to_us", in_us(range.to))
        .field("count", range.count)
        .end_object();
  }
  json.end_array().end_object();
}

/// Prints one array with an element for each URL, also if there is only one.
void print_json(const std::vector<Measured>& all, const Plan& plan) {
  const auto [first, second] = steps_of(plan.load.workload);
  sys::JsonWriter json;
  json.begin_array();
  for (const auto& [url, figures] : all) {
    json.begin_object()
        .field("url", std::string_view(url))
        .field("mode", std::string_view(plan.mode))
        .field("clients", std::uint64_t{plan.load.clients})
        .field("names", std::uint64_t{plan.load.names})
        .field("connections", std::uint64_t{plan.connections})
        .field("seconds", std::chrono::duration<double>(figures.took).count());
    write(json, first, figures.first, figures.took);
    if (!second.empty()) {
      write(json, second, figures.second, figures.took);
    }
    json.key("errors").begin_object();
    for (const auto& [name, count] : figures.errors) {
      json.field(name, count);
    }
    json.end_object().end_object();
  }
  print(json.end_array().text() + "\n");
}

/// Prints the errors and returns the exit code: 0 if there are measurements. Errors beside
/// measurements, such as a failover during the run, do not make the run a failure.
int report_errors(const Measured& measured) {
  const auto& [url, figures] = measured;
  if (!figures.first_error) {
    return code(ExitCode::done);
  }
  for (const auto& [name, count] : figures.errors) {
    print_error(url + ": " + grouped(count) + " x " + name);
  }
  // Prints the first error with its detail, whatever the exit code is.
  const auto ended = failed(*figures.first_error);
  return figures.first.count() > 0 ? code(ExitCode::done) : ended;
}

}  // namespace

int bench(const Arguments& arguments) {
  const Signals signals;
  const auto plan = plan_of(arguments);
  if (!plan) {
    return failed(plan.error());
  }
  std::stop_source stop;
  // Ctrl-C ends the run and prints the measurements so far. A second Ctrl-C has no effect: the run
  // is already ending.
  const TerminationWatch termination(signals, [&](int) { stop.request_stop(); });
  std::vector<Measured> all;
  int worst = 0;
  for (const auto& url : plan->urls) {
    if (stop.stop_requested()) {
      break;
    }
    auto measured = measure(arguments, *plan, url, stop.get_token());
    if (!measured) {
      // Measures the next URL: a comparison without this one is still useful.
      worst = std::max(worst, failed(measured.error()));
      continue;
    }
    worst = std::max(worst, report_errors(*measured));
    all.push_back(*std::move(measured));
  }
  switch (format_of(arguments)) {
    case Format::json: print_json(all, *plan); break;
    case Format::table: print_tables(all, *plan); break;
    case Format::quiet: break;
  }
  return worst;
}

}  // namespace tenure::cli
