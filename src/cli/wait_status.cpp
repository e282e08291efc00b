#include "cli/wait_status.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/acquire.hpp"
#include "cli/conflict.hpp"
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
std::string queue_position_text(const v1::ExplainResponse& status, const std::string& owner) {
  const auto all = std::to_string(status.lock().waiter_count());
  const auto is_ours = [&](const v1::Waiter& waiter) { return waiter.owner() == owner; };
  // 0 for a waiter behind the first 100: the server returns no more.
  if (std::ranges::count_if(status.queue(), is_ours) != 1) {
    return all + " in the queue";
  }
  const auto ours = std::ranges::find_if(status.queue(), is_ours);
  return "position " + std::to_string(ours->position()) + " of " + all + " in the queue";
}

/// Truncates to the width of the terminal, because a wrapped line could not be erased. The last
/// column stays free: some terminals wrap when it is written.
std::string cut_to_terminal(const std::string& line) {
  winsize size{};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return cut_to_columns(line, is_known ? size.ws_col - 1U : 79U);
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
  if (service) {
    // The destructor must not wait for a server that does not reply.
    service->cancel_with(stop);
  }
  bool is_shown = false;
  auto pause = show_after;
  while (!ended_.wait_for(lock, stop, pause, [] { return false; }) && !stop.stop_requested()) {
    const auto line = cut_to_terminal(status_text(service));
    if (stop.stop_requested()) {
      break;
    }
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
  const auto waiting = "waiting for " + plain(joined(names_, ", "));
  // The first name that is held; the others matter only after it is released.
  const auto found =
      service ? first_held(*service, names_, arguments_.has("--space")) : std::nullopt;
  if (!found) {
    // Other backends than tenured, no permission, or no reply.
    return waiting + ": held by another owner";
  }
  const auto& holder = found->status.lock().holders(0);
  const auto metadata = holder.metadata().empty() ? "" : " (" + plain(holder.metadata()) + ")";
  // The position first: the end of a long line is cut.
  return queue_position_text(found->status, owner_) + ", " + waiting + ": held by " +
         holders_label(found->status.lock()) + " for " +
         format_duration(milliseconds(holder.held_for_ms())) + metadata;
}

}  // namespace tenure::cli
