#include "backends/memory/scheme.hpp"

#include <memory>

#include "backends/memory/backend.hpp"
#include "backends/schemes.hpp"

namespace tenure::backends {
namespace {

/// Opens memory:// (a store of its own) or memory://name (a store shared within the process).
Result<std::unique_ptr<Backend>> open_memory(Url& url, const ConnectOptions& /*options*/) {
  if (!url.path.text.empty()) {
    return url_error(url.path.position,
                     "memory://name has no path; write a '/' in the name as %2F");
  }
  return std::make_unique<MemoryBackend>(MemoryStore::named(url.authority.text));
}

}  // namespace

void add_memory_scheme() {
  // A static local: the language runs the initializer once, also with concurrent callers.
  [[maybe_unused]] static const bool is_added = [] {
    add_scheme("memory", open_memory);
    return true;
  }();
}

}  // namespace tenure::backends
