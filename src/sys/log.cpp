#include "sys/log.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <unistd.h>

#include "sys/escape.hpp"
#include "sys/json_writer.hpp"

namespace tenure::log {
namespace {

/// Bound of the table of event names. Names are literals, so it is not reached in practice.
constexpr std::size_t events_known_max = 1024;

template <class Number>
void append_number(std::string& out, Number number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

/// Text for an infinite duration, which JSON cannot represent as a number.
constexpr std::string_view infinite = "infinite";

bool is_finite(double number) {
  return number - number == 0;
}

/// Formats a time as 2024-05-01T12:00:00.123Z.
std::string timestamp(std::chrono::system_clock::time_point when) {
  const auto since = std::chrono::floor<std::chrono::milliseconds>(when.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const std::time_t whole = seconds.count();
  std::tm parts{};
  gmtime_r(&whole, &parts);
  std::array<char, 24> text{};
  std::string out(text.data(), std::strftime(text.data(), text.size(), "%FT%T.", &parts));
  const auto thousandths = std::to_string((since - seconds).count());
  return out.append(3 - thousandths.size(), '0') + thousandths + 'Z';
}

void write_to_stderr(std::string_view lines) {
  while (!lines.empty()) {
    const auto written = ::write(STDERR_FILENO, lines.data(), lines.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return;  // The reader of stderr is gone, so there is no place to report the error.
    }
    lines.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool wants_colour() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread changes the environment.
  return ::isatty(STDERR_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
}

std::string_view colour(Level level) {
  switch (level) {
    case Level::debug: return "\033[2m";
    case Level::info: return "\033[32m";
    case Level::warning: return "\033[33m";
    case Level::error: return "\033[1;31m";
  }
  return "";
}

}  // namespace

void Value::write(sys::JsonWriter& json) const {
  if (const auto* real = std::get_if<double>(&what_)) {
    is_finite(*real) ? json.exact_value(*real) : json.value(infinite);
  } else if (const auto* id = std::get_if<Id>(&what_)) {
    json.id(id->number);
  } else {
    std::visit(
        [&](const auto& value) {
          if constexpr (!std::same_as<std::decay_t<decltype(value)>, Id>) {
            json.value(value);
          }
        },
        what_);
  }
}

void Value::append_text(std::string& out) const {
  if (const auto* flag = std::get_if<bool>(&what_)) {
    out += *flag ? "true" : "false";
  } else if (const auto* whole = std::get_if<std::int64_t>(&what_)) {
    append_number(out, *whole);
  } else if (const auto* count = std::get_if<std::uint64_t>(&what_)) {
    append_number(out, *count);
  } else if (const auto* real = std::get_if<double>(&what_)) {
    is_finite(*real) ? append_number(out, *real) : sys::append_plain(out, infinite);
  } else if (const auto* id = std::get_if<Id>(&what_)) {
    append_number(out, id->number);
  } else {
    sys::append_plain(out, std::get<std::string_view>(what_));
  }
}

class Log::Core {
 public:
  explicit Core(Options options) : options_(std::move(options)) {
    if (!options_.write) {
      has_colour_ = wants_colour();
      options_.write = write_to_stderr;
    }
    if (options_.format == Format::automatic) {
      options_.format = ::isatty(STDERR_FILENO) == 1 ? Format::text : Format::json;
    }
    writer_ = std::thread([this] { write_lines(); });
  }

  ~Core() {
    {
      const std::lock_guard lock(mutex_);
      report_silenced();
      is_stopping_ = true;
    }
    changed_.notify_all();
    writer_.join();
  }

  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  void line(Level level, std::string_view event, Fields fields) {
    if (level < options_.level) {
      return;
    }
    {
      const auto when = options_.now();
      const std::lock_guard lock(mutex_);
      const auto silenced = admit(event, when);
      if (!silenced) {
        return;
      }
      push(format(level, event, fields, {when, *silenced}));
    }
    changed_.notify_all();
  }

  void flush() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.empty() && !is_writing_; });
  }

 private:
  struct Window {
    std::chrono::system_clock::time_point began{};
    std::size_t lines = 0;
    std::size_t silenced = 0;
  };
  struct Circumstances {
    std::chrono::system_clock::time_point when;
    std::size_t silenced;
  };

  /// Rate limit: number of suppressed lines of this event before this one; nothing if this line is
  /// suppressed too.
  std::optional<std::size_t> admit(std::string_view event,
                                   std::chrono::system_clock::time_point when) {
    auto it = windows_.find(event);
    if (it == windows_.end()) {
      if (windows_.size() >= events_known_max) {
        windows_.clear();
      }
      it = windows_.emplace(event, Window{.began = when}).first;
    }
    auto& window = it->second;
    const bool is_over = when - window.began >= std::chrono::seconds(1) || when < window.began;
    if (!is_over && window.lines >= options_.lines_per_event_max) {
      ++window.silenced;
      return std::nullopt;
    }
    if (is_over) {
      window.began = when;
      window.lines = 0;
    }
    ++window.lines;
    return std::exchange(window.silenced, 0);
  }

  void report_silenced() {
    for (const auto& [event, window] : windows_) {
      if (window.silenced > 0) {
        push(format(Level::warning, "log_lines_silenced",
                    {{"of", event}, {"count", window.silenced}}, {options_.now(), 0}));
      }
    }
  }

  [[nodiscard]] std::string format(Level level, std::string_view event, Fields fields,
                                   Circumstances around) const {
    return options_.format == Format::json ? json(level, event, fields, around)
                                           : text(level, event, fields, around);
  }

  [[nodiscard]] static std::string json(Level level, std::string_view event, Fields fields,
                                        Circumstances around) {
    sys::JsonWriter json;
    json.begin_object()
        .field("ts", timestamp(around.when))
        .field("lvl", to_string(level))
        .field("event", event);
    for (const auto& [key, value] : fields) {
      json.key(key);
      value.write(json);
    }
    if (around.silenced > 0) {
      json.field("silenced", around.silenced);
    }
    return json.end_object().take() + '\n';
  }

  [[nodiscard]] std::string text(Level level, std::string_view event, Fields fields,
                                 Circumstances around) const {
    std::string out = timestamp(around.when) + ' ';
    if (has_colour_) {
      out += colour(level);
    }
    out += to_string(level);
    out.append(8 - to_string(level).size(), ' ');
    out += has_colour_ ? "\033[0m" : "";
    sys::append_plain(out, event);
    const auto field = [&](std::string_view key, const Value& value) {
      out += ' ';
      out += key;
      out += '=';
      value.append_text(out);
    };
    for (const auto& [key, value] : fields) {
      field(key, value);
    }
    if (around.silenced > 0) {
      field("silenced", around.silenced);
    }
    return out += '\n';
  }

  void push(std::string line) {
    if (queue_.size() >= options_.queue_lines_max) {
      ++dropped_;
      return;
    }
    if (dropped_ > 0) {
      const auto count = std::exchange(dropped_, 0);
      queue_.push_back(
          format(Level::warning, "log_lines_dropped", {{"count", count}}, {options_.now(), 0}));
    }
    queue_.push_back(std::move(line));
  }

  void write_lines() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !queue_.empty() || is_stopping_; });
      if (queue_.empty()) {
        return;
      }
      std::string lines;
      for (const auto& line : std::exchange(queue_, {})) {
        lines += line;
      }
      is_writing_ = true;
      lock.unlock();
      options_.write(lines);
      lock.lock();
      is_writing_ = false;
      changed_.notify_all();
    }
  }

  Options options_;
  bool has_colour_ = false;
  std::mutex mutex_;  ///< Guards the members below.
  std::condition_variable changed_;
  std::deque<std::string> queue_;
  std::map<std::string, Window, std::less<>> windows_;
  std::size_t dropped_ = 0;
  bool is_writing_ = false;
  bool is_stopping_ = false;
  std::thread writer_;
};

Log::Log(Options options) : core_(std::make_unique<Core>(std::move(options))) {}
Log::~Log() = default;

void Log::line(Level level, std::string_view event, Fields fields) {
  core_->line(level, event, fields);
}

void Log::flush() {
  core_->flush();
}

namespace {

/// Log of this process. A shared_ptr, so that stop() does not destroy it while another thread logs.
struct Current {
  std::mutex mutex;
  std::shared_ptr<Log> log;

  std::shared_ptr<Log> get() {
    const std::lock_guard lock(mutex);
    return log;
  }
  void set(std::shared_ptr<Log> next) {
    {
      const std::lock_guard lock(mutex);
      std::swap(log, next);
    }
    // The previous log is destroyed here, outside of the mutex, because it writes its queue.
  }
};

Current& current() {
  static Current instance;
  return instance;
}

void write(Level level, std::string_view event, Fields fields) {
  if (const auto log = current().get()) {
    log->line(level, event, fields);
  }
}

}  // namespace

void start(Options options) {
  current().set(std::make_shared<Log>(std::move(options)));
}
void stop() {
  current().set(nullptr);
}
void flush() {
  if (const auto log = current().get()) {
    log->flush();
  }
}

void debug(std::string_view event, Fields fields) {
  write(Level::debug, event, fields);
}
void info(std::string_view event, Fields fields) {
  write(Level::info, event, fields);
}
void warning(std::string_view event, Fields fields) {
  write(Level::warning, event, fields);
}
void error(std::string_view event, Fields fields) {
  write(Level::error, event, fields);
}

std::string_view to_string(Level level) noexcept {
  constexpr std::array<std::string_view, 4> names{"debug", "info", "warning", "error"};
  return names[static_cast<std::size_t>(level)];
}

std::string_view to_string(Format format) noexcept {
  constexpr std::array<std::string_view, 3> names{"auto", "text", "json"};
  return names[static_cast<std::size_t>(format)];
}

}  // namespace tenure::log
