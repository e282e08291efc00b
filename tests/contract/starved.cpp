// A process that connects and locks while it has hardly any file descriptor left:
//
//   tenure_starved URL
//
// 0: every call came back with a lock or an error, and everything works once there are descriptors.

#include <chrono>
#include <cstdio>
#include <string>

#include <sys/resource.h>
#include <unistd.h>

#include <tenure/client/client.hpp>

namespace {

using namespace std::chrono_literals;

constexpr auto timeout = 200ms;
/// More than a client of any backend opens.
constexpr rlim_t descriptors_max = 12;

/// Limits how many more descriptors this process can open.
void leave(rlim_t spare) {
  const int lowest = ::dup(STDIN_FILENO);
  ::close(lowest);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = static_cast<rlim_t>(lowest) + spare;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void leave_plenty() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

bool is_expected(const tenure::Error& error) {
  return error == tenure::Errc::resource_exhausted || error == tenure::Errc::unavailable ||
         error == tenure::Errc::invalid_argument;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    return 64;
  }
  const std::string url = arguments[1];
  for (rlim_t spare = 0; spare < descriptors_max; ++spare) {
    leave(spare);
    const auto client = tenure::connect(url, {.request_timeout = timeout});
    leave_plenty();
    if (spare == 0 && client) {
      std::puts("it connected without a descriptor");
      return 2;
    }
    if (!client && !is_expected(client.error())) {
      std::puts(tenure::to_string(client.error()).c_str());
      return 3;
    }
  }
  const auto client = tenure::connect(url, {.request_timeout = 10s});
  if (!client) {
    std::puts(tenure::to_string(client.error()).c_str());
    return 4;
  }
  leave(0);
  // A client of a Redis Cluster connects to a node when it is first asked.
  const auto early = client->mutex("b").try_lock_for(timeout);
  leave_plenty();
  if (!early && !is_expected(early.error()) && early.error() != tenure::Errc::timed_out) {
    std::puts(tenure::to_string(early.error()).c_str());
    return 7;
  }
  auto guard = client->mutex("a").lock();
  if (!guard) {
    std::puts(tenure::to_string(guard.error()).c_str());
    return 5;
  }
  return guard->unlock() ? 0 : 6;
}
