#include "cli/waiting_line.hpp"

#include <chrono>
#include <cstdio>
#include <utility>

#include <unistd.h>

#include "cli/acquire.hpp"
#include "cli/output.hpp"
#include "cli/service.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;

/// Who gets the lock sooner sees no line.
constexpr milliseconds first_after{300};
constexpr milliseconds refreshed_after{1000};

}  // namespace

std::unique_ptr<WaitingLine> WaitingLine::for_terminal(const Arguments& arguments,
                                                       const std::vector<std::string>& names) {
  if (isatty(STDERR_FILENO) != 1 || format_of(arguments) == Format::quiet) {
    return nullptr;
  }
  return std::make_unique<WaitingLine>(arguments, names);
}

WaitingLine::WaitingLine(Arguments arguments, std::vector<std::string> names)
    : arguments_(std::move(arguments)),
      names_(std::move(names)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

WaitingLine::~WaitingLine() {
  thread_.request_stop();
  thread_.join();
}

void WaitingLine::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  auto service = Service::open(arguments_);
  bool is_shown = false;
  auto pause = first_after;
  while (!ended_.wait_for(lock, stop, pause, [] { return false; }) && !stop.stop_requested()) {
    const auto line = "waiting for " + joined(names_, ", ") + ": " + situation(service);
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    is_shown = true;
    pause = refreshed_after;
  }
  if (is_shown) {
    std::fputs("\r\033[K", stderr);
  }
}

std::string WaitingLine::situation(Result<Service>& service) const {
  for (const auto& name : names_) {
    if (!service) {
      break;
    }
    v1::ExplainRequest request;
    request.set_name(service->full(name));
    const auto answer = service->ask<v1::ExplainResponse>("Admin/Explain", request);
    if (!answer || answer->lock().holder_count() == 0) {
      continue;
    }
    const auto& holder = answer->lock().holders(0);
    auto text =
        "held by " + plain(holder.owner()) + " for " + spoken(milliseconds(holder.held_ms()));
    if (!holder.metadata().empty()) {
      text += " (" + plain(holder.metadata()) + ")";
    }
    return text + ", " + std::to_string(answer->queue_size()) + " waiting";
  }
  return "somebody is before us";
}

}  // namespace tenure::cli
