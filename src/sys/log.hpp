#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include <tenure/error.hpp>
#include <tenure/strong.hpp>

namespace tenure::sys {
class JsonWriter;
}  // namespace tenure::sys

/// Structured asynchronous logging: an event name (`lease_expired`) and fields.
///
///     log::info("lease_expired", {{"lease", id}, {"locks", n}});
///
/// The caller formats the line and queues it; a thread writes it, so a stalled terminal or pipe
/// never delays a lock operation. Lines that exceed the queue or the rate limit of their event are
/// dropped and counted. Values are escaped, so that they cannot forge lines. (Not spdlog: its
/// patterns do not escape, and it has neither fields nor rate limits by event.)
///
/// Thread safe.
namespace tenure::log {

enum class Level : std::uint8_t { debug, info, warning, error };

/// Format of lines. `automatic`: text on a terminal, else JSON.
enum class Format : std::uint8_t { automatic, text, json };

/// Value of a field. Ids are strings in JSON, because a double cannot represent all 64-bit numbers.
class Value {
 public:
  // NOLINTBEGIN(google-explicit-constructor): so that a field is written {"locks", 3}.
  Value(bool value) : what_(value) {}
  Value(std::signed_integral auto value) : what_(static_cast<std::int64_t>(value)) {}
  Value(std::unsigned_integral auto value) : what_(static_cast<std::uint64_t>(value)) {}
  Value(double value) : what_(value) {}
  Value(const char* value) : what_(std::string_view(value)) {}
  Value(std::string_view value) : what_(value) {}
  Value(const std::string& value) : what_(std::string_view(value)) {}
  template <class Tag>
  Value(Strong<std::uint64_t, Tag> id) : what_(Id{id.get()}) {}
  /// Duration in milliseconds; the key ends in `_ms`.
  template <class Rep, class Period>
  Value(std::chrono::duration<Rep, Period> value)
      : what_(std::chrono::duration<double, std::milli>(value).count()) {}
  // NOLINTEND(google-explicit-constructor)

  /// Writes the value of a JSON field.
  void write(sys::JsonWriter& json) const;
  void append_text(std::string& out) const;

 private:
  struct Id {
    std::uint64_t number;
  };
  std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view, Id> what_;
};

/// Key and value of a field. Refers to the arguments, so it is valid during the call only.
struct Field {
  std::string_view key;
  Value value;
};
using Fields = std::initializer_list<Field>;

struct Options {
  Level level = Level::info;  ///< Minimum level of written lines.
  Format format = Format::automatic;
  /// Maximum number of lines of one event per second. Further lines are counted; the next line has
  /// their number.
  std::size_t lines_per_event_max = 50;
  std::size_t queue_lines_max = 8192;  ///< Maximum number of queued lines.
  /// Writes whole lines, each with its '\n'; by default to stderr. Called by one thread at a time.
  std::function<void(std::string_view)> write{};
  std::function<std::chrono::system_clock::time_point()> now = std::chrono::system_clock::now;
};

/// Log with its writer thread. Thread safe.
class Log {
 public:
  explicit Log(Options options);
  /// Writes the queued lines.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void line(Level level, std::string_view event, Fields fields = {});
  /// Waits until all lines logged before are written.
  void flush();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

/// Starts the log of the process, which the functions below use. Before start() and after stop()
/// they do nothing.
void start(Options options);
/// Writes the queued lines and ends the writer thread.
void stop();
void flush();

void debug(std::string_view event, Fields fields = {});
void info(std::string_view event, Fields fields = {});
void warning(std::string_view event, Fields fields = {});
void error(std::string_view event, Fields fields = {});

[[nodiscard]] std::string_view to_string(Level level) noexcept;
[[nodiscard]] std::string_view to_string(Format format) noexcept;

}  // namespace tenure::log
