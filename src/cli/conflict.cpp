#include "cli/conflict.hpp"

#include <utility>

#include "cli/acquire.hpp"
#include "cli/output.hpp"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;

/// The text must not delay the exit code for long.
constexpr milliseconds inquiry_timeout{1000};

/// ": TEXT", or nothing.
std::string appended(const std::string& metadata) {
  return metadata.empty() ? "" : ": " + plain(metadata);
}

/// Text from tenured, which knows the time of the grant.
std::optional<std::string> text_of(const Arguments& arguments,
                                   const std::vector<std::string>& names) {
  auto url = service_url(arguments);
  if (!url) {
    return std::nullopt;
  }
  Service service(*std::move(url), inquiry_timeout);
  const auto found = first_held(service, names, arguments.has("--space"));
  if (!found) {
    return std::nullopt;
  }
  const auto& lock = found->status.lock();
  const milliseconds held_for(lock.holders(0).held_for_ms());
  return plain(found->name) + " is held by " + holders_label(lock) + " since " +
         format_time(std::chrono::system_clock::now() - held_for) + " (for " +
         format_duration(held_for) + ")" + appended(lock.holders(0).metadata());
}

}  // namespace

std::optional<BlockingLock> first_held(Service& service, const std::vector<std::string>& names,
                                       bool is_space) {
  for (const auto& name : names) {
    auto status = explained(service, service.with_prefix(name), is_space);
    if (status && status->lock().holders_size() > 0) {
      return BlockingLock{.name = name, .status = *std::move(status)};
    }
  }
  return std::nullopt;
}

std::string holders_label(const v1::LockStatus& lock) {
  const auto others = lock.holder_count() - 1;
  return plain(lock.holders(0).owner()) +
         (others > 0 ? " and " + std::to_string(others) + " more" : "");
}

std::string conflict_text(const Arguments& arguments, const Client& client,
                          const std::vector<std::string>& names) {
  if (auto text = text_of(arguments, names)) {
    return *std::move(text);
  }
  // Other services know owner and metadata, but not the time of the grant.
  for (const auto& name : names) {
    const auto holders = client.holders(name);
    if (holders && !holders->empty()) {
      return plain(name) + " is held by " + plain(holders->front().owner) +
             appended(holders->front().metadata);
    }
  }
  return plain(joined(names, ", ")) + ": another owner held it";
}

}  // namespace tenure::cli
