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

/// Structured logs: what happened is a word (`lease_expired`), the rest are fields.
///
///     log::info("lease_expired", {{"lease", id}, {"locks", n}});
///
/// Ours and not spdlog's, because what spdlog has we do not want (patterns that do not escape) and
/// what we want it does not have (fields, a limit for each event). The caller only formats; a
/// thread writes, so a stalled terminal or pipe never stalls a lock. What does not fit into the
/// queue is dropped and counted. Thread safe.
namespace tenure::log {

enum class Level : std::uint8_t { debug, info, warning, error };

/// `automatic` is text if it goes to a terminal, else JSON.
enum class Format : std::uint8_t { automatic, text, json };

/// What a field may hold. Ids are strings in JSON: they are larger than what a double can hold.
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
  /// In milliseconds; end the key in `_ms`.
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

/// Lives only as long as the call it is given to.
struct Field {
  std::string_view key;
  Value value;
};
using Fields = std::initializer_list<Field>;

struct Options {
  Level level = Level::info;  ///< Less than this is not written.
  Format format = Format::automatic;
  /// Lines of one event in one second; the others are counted, and the next line says how many.
  std::size_t lines_per_event_max = 50;
  std::size_t queue_lines_max = 8192;  ///< Lines that wait to be written.
  /// Where whole lines go, '\n' included; stderr if not given. Called by one thread at a time.
  std::function<void(std::string_view)> write{};
  std::function<std::chrono::system_clock::time_point()> now = std::chrono::system_clock::now;
};

/// One stream of lines with a thread that writes them.
class Log {
 public:
  explicit Log(Options options);
  /// Writes what is queued.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void line(Level level, std::string_view event, Fields fields = {});
  /// Waits until all that was logged before is written.
  void flush();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

/// Sets what the functions below write to. Before it, and after stop(), that is nowhere.
void start(Options options);
/// Writes what is queued and ends the thread.
void stop();
void flush();

void debug(std::string_view event, Fields fields = {});
void info(std::string_view event, Fields fields = {});
void warning(std::string_view event, Fields fields = {});
void error(std::string_view event, Fields fields = {});

[[nodiscard]] std::string_view to_string(Level level) noexcept;
[[nodiscard]] std::string_view to_string(Format format) noexcept;

}  // namespace tenure::log
