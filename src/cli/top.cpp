// tenure top: what is going on, as it goes on.

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
#include "cli/top_look.hpp"
#include "cli/top_screen.hpp"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;

TopOrder order_of(const Arguments& arguments) {
  const auto said = arguments.text("--sort").value_or("waiters");
  return said == "wait"     ? TopOrder::longest_wait
         : said == "held"   ? TopOrder::held
         : said == "grants" ? TopOrder::grants
         : said == "name"   ? TopOrder::name
                            : TopOrder::waiters;
}

/// Asks again and again on a thread of its own: a person can quit while a server is silent.
class TopFeed {
 public:
  TopFeed(TopQuestions questions, milliseconds interval)
      : questions_(std::move(questions)),
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

  /// Readable when there is something new.
  [[nodiscard]] int file() const noexcept { return ready_; }
  [[nodiscard]] std::optional<Result<TopLook>> take() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = read(ready_, &count, sizeof(count));
    const std::lock_guard lock(mutex_);
    return std::exchange(newest_, std::nullopt);
  }
  void set(milliseconds interval, bool is_paused) {
    const std::lock_guard lock(mutex_);
    interval_ = interval;
    is_paused_ = is_paused;
    changed_.notify_all();
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      auto look = questions_.ask();
      std::unique_lock lock(mutex_);
      newest_ = std::move(look);
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = write(ready_, &one, sizeof(one));
      const auto asked = std::chrono::steady_clock::now();
      while (!stop.stop_requested() &&
             (is_paused_ || std::chrono::steady_clock::now() < asked + interval_)) {
        const auto until = is_paused_ ? asked + std::chrono::hours(24) : asked + interval_;
        changed_.wait_until(lock, stop, until, [was = is_paused_, had = interval_, this] {
          return is_paused_ != was || interval_ != had;
        });
      }
    }
  }

  TopQuestions questions_;
  std::mutex mutex_;  ///< Guards: the next three.
  milliseconds interval_;
  bool is_paused_ = false;
  std::optional<Result<TopLook>> newest_{};
  std::condition_variable_any changed_;
  int ready_;
  std::jthread thread_;
};

int print_once(TopQuestions questions, const Arguments& arguments, milliseconds interval) {
  // Rates need two looks.
  if (const auto first = questions.ask(); !first) {
    return failed(first.error());
  }
  std::this_thread::sleep_for(interval);
  const auto look = questions.ask();
  if (!look) {
    return failed(look.error());
  }
  switch (format_of(arguments)) {
    case Format::json: print(json_of(*look, order_of(arguments))); break;
    case Format::table: print(text_of(*look, order_of(arguments))); break;
    case Format::quiet: break;
  }
  return code(ExitCode::done);
}

/// Until somebody quits. 0, or the signal that ended it.
int watch_terminal(TopScreen& screen, TopFeed& feed, const Signals& signals, TopChoice choice) {
  std::optional<TopLook> look;
  std::string trouble;
  std::array<pollfd, 3> wakers{{{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                                {.fd = signals.file(), .events = POLLIN, .revents = 0},
                                {.fd = feed.file(), .events = POLLIN, .revents = 0}}};
  while (true) {
    screen.draw(look ? &*look : nullptr, choice, trouble);
    const auto polled = poll(wakers.data(), wakers.size(), -1);
    if (polled < 0 && errno != EINTR) {
      return 0;
    }
    // The terminal is gone, or it said something, or it has another size.
    if ((wakers[0].revents & (POLLHUP | POLLERR)) != 0) {
      return SIGHUP;
    }
    if (screen.take_keys(choice) == TopScreen::Wish::quit) {
      return 0;
    }
    feed.set(choice.interval, choice.is_paused);
    if (const auto signal = signals.next(); signal && is_farewell(*signal)) {
      return *signal == SIGINT ? 0 : *signal;
    }
    if (auto news = feed.take()) {
      trouble = *news ? std::string() : news->error().detail;
      look = *news ? std::optional(std::move(**news)) : std::move(look);
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
  TopQuestions questions(*std::move(service),
                         arguments.words.empty() ? "" : arguments.words.front());
  const bool is_live = isatty(STDOUT_FILENO) == 1 && isatty(STDIN_FILENO) == 1 &&
                       !arguments.has("--once") && format_of(arguments) == Format::table;
  if (!is_live) {
    const FarewellWatch farewell(
        signals, [](int signal) { std::_Exit(code(ExitCode::signalled) + signal); });
    return print_once(std::move(questions), arguments,
                      std::max(interval->value_or(milliseconds(1000)), TopChoice::interval_min));
  }
  TopChoice choice{.order = order_of(arguments)};
  choice.interval = std::max(interval->value_or(choice.interval), TopChoice::interval_min);
  auto screen = TopScreen::open(plain(backends::without_secrets(url_of(arguments))));
  if (!screen) {
    return failed(screen.error());
  }
  TopFeed feed(std::move(questions), choice.interval);
  const auto signal = watch_terminal(*screen, feed, signals, choice);
  screen->close();
  // Nothing is held, and nobody wants to wait for a server that does not answer.
  std::_Exit(signal == 0 ? code(ExitCode::done) : code(ExitCode::signalled) + signal);
}

}  // namespace tenure::cli
