// One leader among several members, its published address, and the events that the others receive
// when it resigns.

#include <chrono>
#include <string>

#include <tenure/tenure.hpp>

#include "check.hpp"

using namespace std::chrono_literals;
using tenure::LockEventType;

int main() {
  // Two members; in production two processes and tenure://host:7420.
  const auto one = tenure::connect("memory://cluster", {.owner = "one"}).or_throw();
  const auto two = tenure::connect("memory://cluster", {.owner = "two"}).or_throw();

  auto changes = two.election("leader").observe().or_throw();
  auto leadership = one.election("leader").campaign("10.0.0.1:80").or_throw();
  check(two.election("leader").leader().or_throw()->metadata == "10.0.0.1:80",
        "two knows that 10.0.0.1:80 leads");

  check(tenure::Election::resign(leadership).has_value(), "one resigns");
  const auto successor = two.election("leader").campaign("10.0.0.2:80").or_throw();
  check(successor.token() > leadership.token(), "two leads, with a larger token");

  int seen = 0;
  for (const auto& event : changes) {
    const bool is_two = event.type == LockEventType::granted && event.owner == "two";
    ++seen;
    if (is_two) {
      changes.stop();
    }
  }
  check(seen == 3, "the watch received: granted, released, granted");
}
