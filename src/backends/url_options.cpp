#include "backends/url_options.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace tenure::backends {
namespace {

using std::chrono::microseconds;

/// A number and a unit: `50us`, `500ms`, `2s`, `1m`.
std::optional<microseconds> parse_duration(std::string_view text) {
  constexpr std::int64_t count_max = 1'000'000'000;
  std::int64_t count = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc{} || count < 0 || count > count_max) {
    return std::nullopt;
  }
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit == "us") {
    return microseconds(count);
  }
  if (unit == "ms") {
    return std::chrono::milliseconds(count);
  }
  if (unit == "s") {
    return std::chrono::seconds(count);
  }
  return unit == "m" ? std::optional<microseconds>(std::chrono::minutes(count)) : std::nullopt;
}

std::string to_text(microseconds time) {
  if (time % std::chrono::minutes(1) == microseconds::zero() && time > microseconds::zero()) {
    return std::to_string(time / std::chrono::minutes(1)) + "m";
  }
  return time % std::chrono::milliseconds(1) == microseconds::zero()
             ? std::to_string(time / std::chrono::milliseconds(1)) + "ms"
             : std::to_string(time.count()) + "us";
}

std::string bounds_of(const UrlOptions::DurationLimits& limits) {
  if (limits.most) {
    return " from " + to_text(limits.least) + " to " + to_text(*limits.most);
  }
  return limits.least > microseconds::zero() ? " of at least " + to_text(limits.least) : "";
}

}  // namespace

UrlOptions& UrlOptions::add(std::string_view name, Set set) {
  known_ += (known_.empty() ? "" : ", ") + std::string(name);
  options_.push_back({.name = std::string(name), .set = std::move(set)});
  return *this;
}

UrlOptions& UrlOptions::text(std::string_view name, std::string& target, Check check) {
  return add(name, [&target, check = std::move(check)](const Url::Part& value) -> Result<void> {
    if (const auto expected = check ? check(value.text) : std::string(); !expected.empty()) {
      return url_error(value.position, expected);
    }
    target = value.text;
    return {};
  });
}

UrlOptions& UrlOptions::flag(std::string_view name, bool& target) {
  return add(name, [name = std::string(name), &target](const Url::Part& value) -> Result<void> {
    if (value.text != "true" && value.text != "false") {
      return url_error(value.position, name + " is true or false");
    }
    target = value.text == "true";
    return {};
  });
}

UrlOptions& UrlOptions::add_duration(std::string_view name, microseconds unit,
                                     const DurationLimits& limits,
                                     std::function<void(microseconds)> set) {
  return add(name,
             [name = std::string(name), unit, limits,
              set = std::move(set)](const Url::Part& value) -> Result<void> {
               const auto time = parse_duration(value.text);
               if (!time || *time % unit != microseconds::zero() || *time < limits.least ||
                   (limits.most && *time > *limits.most)) {
                 const auto* const examples =
                     unit < std::chrono::milliseconds(1) ? "50us or 1ms" : "50ms, 2s or 1m";
                 return url_error(value.position, name + " is a time" + bounds_of(limits) +
                                                      ", such as " + examples);
               }
               set(*time);
               return {};
             });
}

UrlOptions& UrlOptions::file(std::string_view name, std::optional<File>& target) {
  return add(name, [&target](const Url::Part& value) -> Result<void> {
    std::ifstream stream(value.text, std::ios::binary);
    if (!stream) {
      return url_error(value.position, "cannot read " + value.text);
    }
    std::ostringstream content;  // a folder can be opened, and fails only now
    content << stream.rdbuf();
    File file{.content = std::move(content).str(), .position = value.position};
    if (file.content.empty()) {
      // Not the same as an option that is missing: without tls_ca the system's authorities count.
      return url_error(value.position, value.text + " is empty or not a file");
    }
    target = std::move(file);
    return {};
  });
}

Result<void> UrlOptions::consume(Url& url) {
  if (auto consumed = consume_known(url); !consumed) {
    return consumed;
  }
  if (url.parameters.empty()) {
    return {};
  }
  const auto& key = url.parameters.front().key;
  return url_error(key.position, "unknown option \"" + key.text + "\"; known options: " + known_);
}

Result<void> UrlOptions::consume_known(Url& url) {
  std::vector<Url::Parameter> others;
  for (auto& parameter : url.parameters) {
    const auto option = std::ranges::find(options_, parameter.key.text, &Option::name);
    if (option == options_.end()) {
      others.push_back(std::move(parameter));
      continue;
    }
    if (std::exchange(option->is_given, true)) {
      return url_error(parameter.key.position,
                       "the option \"" + option->name + "\" is given twice; give it once");
    }
    if (auto set = option->set(parameter.value); !set) {
      return set;
    }
  }
  url.parameters = std::move(others);
  return {};
}

Result<void> consume_common_options(Url& url, ConnectOptions& options) {
  return UrlOptions()
      .text("owner", options.owner)
      .text("key_prefix", options.key_prefix)
      .duration("request_timeout", options.request_timeout, {})
      .duration("busy_poll", options.busy_poll, {})
      .consume_known(url);
}

}  // namespace tenure::backends
