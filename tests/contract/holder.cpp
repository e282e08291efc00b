// A process that acquires a lock, reports it, and holds it until it is killed:

#include <chrono>
#include <cstdio>
#include <thread>

#include <tenure/client/client.hpp>

int main(int count, char** arguments) {
  if (count != 3) {
    return 64;
  }
  const auto client = tenure::connect(arguments[1]);
  if (!client) {
    return 1;
  }
  const auto held = client->mutex(arguments[2], {.ttl = std::chrono::milliseconds(500)}).lock();
  if (!held) {
    return 1;
  }
  std::puts("held");
  std::fflush(stdout);
  std::this_thread::sleep_for(std::chrono::minutes(5));
  return 0;
}
