#include "cli/wait_status.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/acquire.hpp"
#include "cli/output.hpp"
#include "cli/service.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;

/// Locks that are granted sooner show no status line.
constexpr milliseconds show_after{300};
constexpr milliseconds refresh_interval{1000};

/// Position of this client in the queue. Unknown if several waiters have the same owner name.
/// A waiter is identified by its owner name, because the library does not publish the lease of a
/// request in progress.
template <class Queue>
std::string queue_position_text(const Queue& queue, std::uint64_t count, const std::string& owner) {
  const auto all = std::to_string(count);
  const auto is_ours = [&](const v1::Waiter& waiter) { return waiter.owner() == owner; };
  // 0 for a waiter behind the first 100: the server returns no more.
  if (std::ranges::count_if(queue, is_ours) != 1) {
    return all + " waiting";
  }
  const auto ours = std::ranges::find_if(queue, is_ours);
  return "position " + std::to_string(ours->position()) + " of " + all + " in the queue";
}

/// Truncates to the width of the terminal, because a wrapped line could not be erased.
std::string cut_to_width(std::string line) {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ||
      line.size() < size.ws_col) {
    return line;
  }
  std::size_t end = size.ws_col - 1U;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U) {
    --end;  // Do not split a UTF-8 sequence.
  }
  line.resize(end);
  return line;
}

}  // namespace

std::unique_ptr<WaitStatusLine> WaitStatusLine::for_terminal(const Arguments& arguments,
                                                             const std::vector<std::string>& names,
                                                             const std::string& owner) {
  if (isatty(STDERR_FILENO) != 1 || format_of(arguments) == Format::quiet) {
    return nullptr;
  }
  return std::make_unique<WaitStatusLine>(arguments, names, owner);
}

WaitStatusLine::WaitStatusLine(Arguments arguments, std::vector<std::string> names,
                               std::string owner)
    : arguments_(std::move(arguments)),
      names_(std::move(names)),
      owner_(std::move(owner)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

WaitStatusLine::~WaitStatusLine() {
  thread_.request_stop();
  thread_.join();
}

void WaitStatusLine::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  // An error, for example another scheme, leaves the text without details.
  auto service = Service::open(arguments_);
  bool is_shown = false;
  auto pause = show_after;
  while (!ended_.wait_for(lock, stop, pause, [] { return false; }) && !stop.stop_requested()) {
    const auto line =
        cut_to_width("waiting for " + plain(joined(names_, ", ")) + ": " + status_text(service));
    // Carriage return and "erase to the end of the line": each line replaces the previous one.
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    is_shown = true;
    pause = refresh_interval;
  }
  if (is_shown) {
    std::fputs("\r\033[K", stderr);
  }
}

std::string WaitStatusLine::status_text(Result<Service>& service) const {
  // The first name that is held; the others matter only after it is released.
  for (const auto& name : names_) {
    if (!service) {
      break;
    }
    v1::ExplainRequest request;
    request.set_name(service->with_prefix(name));
    const auto answer = service->ask<v1::ExplainResponse>("Admin/Explain", request);
    // This name is free, so another one of the request is the reason for the wait.
    if (!answer || answer->lock().holder_count() == 0) {
      continue;
    }
    const auto& holder = answer->lock().holders(0);
    const auto others = answer->lock().holder_count() - 1;
    auto text = "held by " + plain(holder.owner()) +
                (others > 0 ? " and " + std::to_string(others) + " more" : "") + " for " +
                format_duration(milliseconds(holder.held_for_ms()));
    if (!holder.metadata().empty()) {
      text += " (" + plain(holder.metadata()) + ")";
    }
    return text + ", " +
           queue_position_text(answer->queue(), answer->lock().waiter_count(), owner_);
  }
  // Other backends than tenured, no permission, or no reply.
  return "held by another owner";
}

}  // namespace tenure::cli
