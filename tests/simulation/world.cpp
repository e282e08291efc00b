#include "simulation/world.hpp"

#include <algorithm>
#include <utility>

#include "history/lines.hpp"

namespace tenure::simulation {

World::World(const Options& options, std::ostream* trace)
    : options_(options), trace_(trace), random_(options.seed * 2 + 1) {}

void World::at(VirtualTime when, Task task) {
  heap_.push_back({.when = std::max(when, now_), .order = ++tasks_made_, .task = std::move(task)});
  std::ranges::push_heap(heap_, is_later);
}

void World::run_until(VirtualTime end) {
  while (!has_failed() && !heap_.empty() && heap_.front().when <= end) {
    std::ranges::pop_heap(heap_, is_later);
    auto due = std::move(heap_.back());
    heap_.pop_back();
    now_ = due.when;
    due.task();
  }
  if (!has_failed()) {
    now_ = std::max(now_, end);
  }
}

void World::fail(const std::string& why) {
  if (has_failed()) {
    return;
  }
  failure_ = "at " + std::to_string(now_.count()) + " us: " + why;
  if (is_tracing()) {
    trace("FAILURE " + why);
  }
}

void World::heal() {
  is_healed_ = true;
  record({.kind = history::Kind::healed});
}

void World::record(history::Event event) {
  event.at = now_.count();
  if (is_tracing()) {
    trace(history::to_line(event));
  }
  events_.push_back(std::move(event));
}

void World::trace(const std::string& what) {
  *trace_ << now_.count() << " " << what << "\n";
}

}  // namespace tenure::simulation
