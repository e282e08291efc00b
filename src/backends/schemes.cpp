#include "backends/schemes.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "sys/mutex.hpp"

namespace tenure::backends {
namespace {

struct Schemes {
  sys::Mutex mutex;
  std::map<std::string, OpenBackend, std::less<>> openers TENURE_GUARDED_BY(mutex);
};

// Function-local static: registration runs in static initialisers of other translation units.
Schemes& schemes() {
  static Schemes all;
  return all;
}

/// Remedy for a scheme that this program does not contain: names the library to link; empty for
/// unknown schemes.
std::string link_hint(std::string_view scheme) {
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
  return ". Link the library tenure::" + library + " (CMake: find_package(tenure COMPONENTS " +
         library + "); pkg-config: tenure_" + library + ")";
}

}  // namespace

OpenBackend add_scheme(std::string scheme, OpenBackend open) {
  auto& all = schemes();
  const sys::MutexGuard lock(all.mutex);
  return std::exchange(all.openers[std::move(scheme)], std::move(open));
}

Result<OpenBackend> find_scheme(const std::string& scheme) {
  auto& all = schemes();
  const sys::MutexGuard lock(all.mutex);
  if (const auto it = all.openers.find(scheme); it != all.openers.end()) {
    return it->second;
  }
  std::string known;
  for (const auto& [name, opener] : all.openers) {
    known += (known.empty() ? "" : ", ") + name + "://";
  }
  return fail(Errc::unsupported, "at 0: this program does not contain " + scheme +
                                     "://; it contains " + known + link_hint(scheme));
}

}  // namespace tenure::backends
