#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <tenure/client.hpp>

#include "backends/memory/memory_backend.hpp"
#include "backends/url.hpp"
#include "client/schemes.hpp"
#include "client/session.hpp"
#include "sys/mutex.hpp"

namespace tenure {
namespace detail {
namespace {

using backends::complain_at;
using backends::Url;

Result<std::unique_ptr<backends::Backend>> open_memory(Url& url, const ConnectOptions&) {
  if (!url.path.text.empty()) {
    return complain_at(url.path.position,
                       "memory://name has no path; a name with '/' is written "
                       "with %2F");
  }
  return std::make_unique<backends::MemoryBackend>(
      backends::MemoryStore::named(url.authority.text));
}

struct Schemes {
  sys::Mutex mutex;
  std::map<std::string, OpenBackend, std::less<>> openers TENURE_GUARDED_BY(mutex) = {
      {"memory", open_memory}};
};

Schemes& schemes() {
  static Schemes all;
  return all;
}

/// What to do about a scheme that is ours, but not in this program.
std::string how_to_get(std::string_view scheme) {
  using Library = std::pair<std::string_view, std::string_view>;
  constexpr std::array<Library, 12> libraries{{{"tenure", "cluster"},
                                               {"redis", "redis"},
                                               {"rediss", "redis"},
                                               {"redis+sentinel", "redis"},
                                               {"rediss+sentinel", "redis"},
                                               {"redis+cluster", "redis"},
                                               {"rediss+cluster", "redis"},
                                               {"redlock", "redis"},
                                               {"redlocks", "redis"},
                                               {"etcd", "etcd"},
                                               {"etcds", "etcd"},
                                               {"zookeeper", "zookeeper"}}};
  const auto* const it = std::ranges::find(libraries, scheme, &Library::first);
  if (it == libraries.end()) {
    return {};
  }
  const std::string library(it->second);
  return ". It is a library of its own: link tenure::" + library +
         " (CMake: find_package(tenure COMPONENTS " + library +
         ")) or what pkg-config --libs tenure_" + library + " says";
}

Result<OpenBackend> opener_of(const std::string& scheme) {
  auto& all = schemes();
  const sys::MutexGuard lock(all.mutex);
  if (const auto it = all.openers.find(scheme); it != all.openers.end()) {
    return it->second;
  }
  std::string known;
  for (const auto& [name, opener] : all.openers) {
    known += (known.empty() ? "" : ", ") + name + "://";
  }
  return fail(Errc::unsupported, "at 0: this program does not know " + scheme + "://; it knows " +
                                     known + how_to_get(scheme));
}

/// `2s`, `500ms`, `1m`.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  std::int64_t count = 0;
  const auto* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  constexpr std::int64_t most = 1'000'000'000;
  if (error != std::errc{} || count < 0 || count > most) {
    return std::nullopt;
  }
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit == "ms") {
    return std::chrono::milliseconds(count);
  }
  if (unit == "s") {
    return std::chrono::seconds(count);
  }
  return unit == "m" ? std::optional(std::chrono::minutes(count)) : std::nullopt;
}

/// Takes the options that every backend has out of the URL.
Result<void> take_options(Url& url, ConnectOptions& options) {
  std::vector<Url::Parameter> others;
  for (auto& parameter : url.parameters) {
    const auto& key = parameter.key.text;
    if (key == "owner") {
      options.owner = std::move(parameter.value.text);
    } else if (key == "key_prefix") {
      options.key_prefix = std::move(parameter.value.text);
    } else if (key == "request_timeout") {
      const auto parsed = parse_duration(parameter.value.text);
      if (!parsed) {
        return complain_at(parameter.value.position,
                           "a time is a number and a unit: 500ms, 2s or 1m");
      }
      options.request_timeout = *parsed;
    } else {
      others.push_back(std::move(parameter));
    }
  }
  url.parameters = std::move(others);
  return {};
}

Result<void> check(const ConnectOptions& options, const backends::Bounds& bounds) {
  if (options.request_timeout <= std::chrono::milliseconds::zero()) {
    return fail(Errc::invalid_argument, "request_timeout must be positive");
  }
  if (options.owner.size() > bounds.owner_bytes_max) {
    return fail(Errc::invalid_argument,
                "the owner has " + std::to_string(options.owner.size()) + " bytes; at most " +
                    std::to_string(bounds.owner_bytes_max) + " are allowed");
  }
  if (std::ranges::any_of(options.owner, [](char byte) {
        return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F;
      })) {
    return fail(Errc::invalid_argument, "the owner has a control character; people read it");
  }
  return {};
}

/// Ends a session where it was begun. In a child of fork() its threads do not exist, and to wait
/// for them would be for ever: there it is left as it is.
struct EndSession {
  void operator()(Session* session) const {
    std::unique_ptr<Session> owned(session);
    if (session->is_inherited()) {
      static_cast<void>(owned.release());
    }
  }
};

Result<std::shared_ptr<Session>> open_session(std::string_view text, ConnectOptions options) {
  auto url = backends::parse_url(text);
  if (!url) {
    return std::unexpected(std::move(url).error());
  }
  const auto open = opener_of(url->scheme);
  if (!open) {
    return std::unexpected(open.error());
  }
  if (auto taken = take_options(*url, options); !taken) {
    return std::unexpected(std::move(taken).error());
  }
  if (url->scheme != "tenure" && !(options.auth_token.empty() && options.auth_token_file.empty())) {
    return fail(Errc::unsupported, "auth_token is for tenure://; " + url->scheme +
                                       ":// has user:password@ in the URL, if anything");
  }
  auto backend = (*open)(*url, options);
  if (!backend) {
    return std::unexpected(std::move(backend).error());
  }
  if (!url->parameters.empty()) {
    const auto& unknown = url->parameters.front().key;
    return complain_at(unknown.position, "unknown option \"" + unknown.text +
                                             "\"; there are owner, key_prefix, request_timeout");
  }
  if (auto checked = check(options, (*backend)->bounds()); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  auto session = std::make_unique<Session>(*std::move(backend), std::move(options));
  return std::shared_ptr<Session>(session.release(), EndSession());
}

}  // namespace

OpenBackend add_scheme(std::string scheme, OpenBackend open) {
  auto& all = schemes();
  const sys::MutexGuard lock(all.mutex);
  return std::exchange(all.openers[std::move(scheme)], std::move(open));
}

}  // namespace detail

Result<Client> connect(std::string_view url, ConnectOptions options) {
  try {
    auto session = detail::open_session(url, std::move(options));
    if (!session) {
      return std::unexpected(std::move(session).error());
    }
    return Client(*std::move(session));
  } catch (const std::runtime_error& error) {
    // How Asio and the standard library report that there is no descriptor or thread left.
    return fail(Errc::resource_exhausted,
                std::string(error.what()) +
                    "; are the limits of open files and of threads (ulimit -n, -u) too low?");
  }
}

}  // namespace tenure
