// One leader among many, its address for all to see, and what the others hear when it steps down.

#include <chrono>
#include <string>

#include <tenure/tenure.hpp>

#include "promise.hpp"

using namespace std::chrono_literals;
using tenure::LockEventType;

int main() {
  // Two members; in real life two processes, and tenure://host:7420.
  const auto one = tenure::connect("memory://cluster", {.owner = "one"}).value();
  const auto two = tenure::connect("memory://cluster", {.owner = "two"}).value();

  auto changes = two.election("leader").observe().value();
  auto leadership = one.election("leader").campaign("10.0.0.1:80").value();
  promise(two.election("leader").leader().value()->metadata == "10.0.0.1:80",
          "two knows that 10.0.0.1:80 leads");

  promise(tenure::Election::resign(leadership).has_value(), "one resigns");
  const auto successor = two.election("leader").campaign("10.0.0.2:80").value();
  promise(successor.token() > leadership.token(), "two leads, with a larger token");

  int seen = 0;
  for (const auto& event : changes) {
    const bool is_two = event.type == LockEventType::granted && event.owner == "two";
    ++seen;
    if (is_two) {
      changes.stop();
    }
  }
  promise(seen == 3, "the watch told: granted, released, granted");
}
