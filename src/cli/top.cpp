// tenure top: live view of the most contended locks.

#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/url.hpp"
#include "cli/commands.hpp"
#include "cli/signals.hpp"
#include "cli/top_data.hpp"
#include "cli/top_screen.hpp"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;

/// The parser has checked the key; the default shows the longest queues.
TopOrder order_of(const Arguments& arguments) {
  const auto key = arguments.text("--sort").value_or("waiters");
  return key == "wait"     ? TopOrder::longest_wait
         : key == "held"   ? TopOrder::held
         : key == "grants" ? TopOrder::grants
         : key == "name"   ? TopOrder::name
                           : TopOrder::waiters;
}

/// Polls the service on a thread of its own, so that the terminal stays responsive while a server
/// does not reply. Only the newest sample is kept. Thread safe.
class TopFeed {
 public:
  TopFeed(TopSampler sampler, milliseconds interval)
      : sampler_(std::move(sampler)),
        interval_(interval),
        ready_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}
  TopFeed(const TopFeed&) = delete;
  TopFeed& operator=(const TopFeed&) = delete;
  ~TopFeed() {
    thread_.request_stop();
    thread_.join();
    close(ready_);
  }

  /// File descriptor that is readable when there is a new sample.
  [[nodiscard]] int file() const noexcept { return ready_; }
  /// Newest sample or error since the last call; std::nullopt if there is none.
  [[nodiscard]] std::optional<Result<TopSample>> take() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = read(ready_, &count, sizeof(count));
    const std::lock_guard lock(mutex_);
    return std::exchange(newest_, std::nullopt);
  }
  /// Applies a choice of the user at once, also during a wait.
  void set(milliseconds interval, bool is_paused) {
    const std::lock_guard lock(mutex_);
    interval_ = interval;
    is_paused_ = is_paused;
    changed_.notify_all();
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      // Without the mutex: the request may last until its timeout, and take() must not wait for it.
      auto sample = sampler_.ask();
      std::unique_lock lock(mutex_);
      newest_ = std::move(sample);
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(ready_, &one, sizeof(one));
      // The interval begins after the reply, so that a slow server is not polled without a break.
      const auto polled = std::chrono::steady_clock::now();
      while (!stop.stop_requested() &&
             (is_paused_ || std::chrono::steady_clock::now() < polled + interval_)) {
        // While paused, only set() or the end wakes the thread; the time is arbitrary.
        const auto until = is_paused_ ? polled + std::chrono::hours(24) : polled + interval_;
        changed_.wait_until(lock, stop, until, [was = is_paused_, had = interval_, this] {
          return is_paused_ != was || interval_ != had;
        });
      }
    }
  }

  TopSampler sampler_;
  std::mutex mutex_;  ///< Guards interval_, is_paused_ and newest_.
  milliseconds interval_;
  bool is_paused_ = false;
  std::optional<Result<TopSample>> newest_{};
  std::condition_variable_any changed_;
  /// Event file descriptor of file().
  int ready_;
  /// Declared last: it uses every other member.
  std::jthread thread_;
};

/// Prints one sample with its rates, for scripts and pipes.
int print_once(TopSampler sampler, const Arguments& arguments, milliseconds interval) {
  // Rates need two samples.
  if (const auto first = sampler.ask(); !first) {
    return failed(first.error());
  }
  // Sampled over a fixed time, so that rates of two calls can be compared.
  std::this_thread::sleep_for(interval);
  const auto sample = sampler.ask();
  if (!sample) {
    return failed(sample.error());
  }
  switch (format_of(arguments)) {
    case Format::json: print(json_of(*sample, order_of(arguments))); break;
    case Format::table: print(text_of(*sample, order_of(arguments))); break;
    case Format::quiet: break;
  }
  return code(ExitCode::done);
}

/// Runs until the user quits: 0; or until a termination signal, which it returns.
int watch_terminal(TopScreen& screen, TopFeed& feed, const Signals& signals, TopChoice choice) {
  std::optional<TopSample> sample;
  std::string error;
  std::array<pollfd, 3> wakers{{{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                                {.fd = signals.file(), .events = POLLIN, .revents = 0},
                                {.fd = feed.file(), .events = POLLIN, .revents = 0}}};
  while (true) {
    // At each turn, because each event changes what is shown: a key, a sample, the size.
    screen.draw(sample ? &*sample : nullptr, choice, error);
    const auto polled = poll(wakers.data(), wakers.size(), -1);
    // ncurses handles SIGWINCH, which interrupts poll(); the new size is read as a key below.
    if (polled < 0 && errno != EINTR) {
      return 0;
    }
    // Input, a change of size, or the end of the terminal.
    if ((wakers[0].revents & (POLLHUP | POLLERR)) != 0) {
      return SIGHUP;
    }
    if (screen.take_keys(choice) == TopScreen::Action::quit) {
      return 0;
    }
    feed.set(choice.interval, choice.is_paused);
    if (const auto signal = signals.next(); signal && is_termination(*signal)) {
      return *signal == SIGINT ? 0 : *signal;
    }
    if (auto news = feed.take()) {
      error = *news ? std::string() : news->error().detail;
      // After a failed poll the last sample stays visible, with the error in the last row.
      sample = *news ? std::optional(std::move(**news)) : std::move(sample);
    }
  }
}

}  // namespace

int top(const Arguments& arguments) {
  const Signals signals;
  auto service = Service::open(arguments);
  const auto interval = arguments.duration("--interval");
  if (!service || !interval) {
    return failed(!service ? service.error() : interval.error());
  }
  TopSampler sampler(*std::move(service), arguments.words.empty() ? "" : arguments.words.front());
  // The live view needs keys and a screen.
  const bool is_live = isatty(STDOUT_FILENO) == 1 && isatty(STDIN_FILENO) == 1 &&
                       !arguments.has("--once") && format_of(arguments) == Format::table;
  if (!is_live) {
    const TerminationWatch watch(
        signals, [](int signal) { std::_Exit(code(ExitCode::signalled) + signal); });
    return print_once(std::move(sampler), arguments,
                      std::max(interval->value_or(milliseconds(1000)), TopChoice::interval_min));
  }
  TopChoice choice{.order = order_of(arguments)};
  choice.interval = std::max(interval->value_or(choice.interval), TopChoice::interval_min);
  auto screen = TopScreen::open(plain(backends::without_secrets(url_of(arguments))));
  if (!screen) {
    return failed(screen.error());
  }
  TopFeed feed(std::move(sampler), choice.interval);
  const auto signal = watch_terminal(*screen, feed, signals, choice);
  // First: exit without destructors would leave the terminal in full-screen mode.
  screen->close();
  // Exit at once instead of waiting for a server that does not reply.
  std::_Exit(signal == 0 ? code(ExitCode::done) : code(ExitCode::signalled) + signal);
}

}  // namespace tenure::cli
