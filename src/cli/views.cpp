// tenure ls, show, explain: holders, wait queues, chains of blockers.

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/locks.hpp"
#include "sys/json_writer.hpp"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;

/// Most locks in a chain of blockers. Each costs a request, and longer chains help no reader.
constexpr std::size_t chain_max = 8;

/// Row of the list: the first holder, and the number of the others.
std::vector<std::string> row_of(const v1::LockStatus& lock, const Service& service) {
  const auto waiting = std::to_string(lock.waiter_count());
  const auto name = plain(service.without_prefix(lock.name()));
  if (lock.holders().empty()) {
    return {name, "-", "-", "-", waiting, "-", "-"};
  }
  const auto& first = lock.holders(0);
  const auto others = lock.holder_count() - 1;
  const auto who = plain(first.owner()) + (others > 0 ? " and " + std::to_string(others) : "");
  return {name,
          who,
          mode_text(first.item()),
          std::to_string(first.fencing_token()),
          waiting,
          duration_cell(milliseconds(first.held_for_ms())),
          plain(first.metadata())};
}

/// Calls `take` with each lock; requests one page at a time.
template <class Take>
Result<void> each_lock(Service& service, const std::string& prefix, std::uint64_t limit,
                       const Take& take) {
  v1::ListRequest request;
  request.set_prefix(service.with_prefix(prefix));
  for (std::uint64_t left = limit; left > 0;) {
    // The page size of the server. The position is the last name, so that locks that come or go
    // between two pages do not shift the rest.
    request.set_limit(static_cast<std::uint32_t>(std::min<std::uint64_t>(left, 1000)));
    const auto page = service.ask<v1::ListResponse>("Admin/List", request);
    if (!page) {
      return std::unexpected(page.error());
    }
    for (const auto& lock : page->locks()) {
      take(lock);
      request.set_after(lock.name());
      request.set_after_is_space(lock.is_space());
    }
    left -= std::min<std::uint64_t>(left, static_cast<std::uint64_t>(page->locks_size()));
    if (!page->more() || page->locks().empty()) {
      break;
    }
  }
  return {};
}

/// Shows the holders through the client library, for other backends than tenured. The service
/// offers no queue, lease or mode through this interface.
int show_by_library(const Arguments& arguments) {
  const auto client = open_client(arguments);
  if (!client) {
    return failed(client.error());
  }
  const auto holders = client->holders(arguments.words.front());
  if (!holders) {
    return failed(holders.error());
  }
  if (format_of(arguments) == Format::quiet) {
    return code(holders->empty() ? ExitCode::no : ExitCode::done);
  }
  if (format_of(arguments) == Format::json) {
    sys::JsonWriter json;
    json.begin_object().field("name", std::string_view(arguments.words.front()));
    json.key("holders").begin_array();
    for (const auto& holder : *holders) {
      json.begin_object()
          .field("owner", std::string_view(holder.owner))
          .id("token", holder.token.get())
          .field("metadata", std::string_view(holder.metadata))
          .end_object();
    }
    print(json.end_array().end_object().text() + "\n");
    return code(ExitCode::done);
  }
  Table table({"HOLDER", "TOKEN", "METADATA"});
  for (const auto& holder : *holders) {
    table.add({plain(holder.owner), std::to_string(holder.token.get()), plain(holder.metadata)});
  }
  // A free lock is an answer, not a failure, so the exit code is 0.
  print(holders->empty() ? plain(arguments.words.front()) + " is free\n" : table.text());
  return code(ExitCode::done);
}

/// Whether a holder or waiter has an authenticated user. Without users the column would be empty in
/// every row.
bool shows_users(const v1::ExplainResponse& lock) {
  const auto has_user = [](const auto& entry) { return !entry.user().empty(); };
  return std::ranges::any_of(lock.lock().holders(), has_user) ||
         std::ranges::any_of(lock.queue(), has_user);
}

/// Prints holders and queue in one table. The column of the users exists only if there are any.
void print_lock(const v1::ExplainResponse& lock, const std::string& name) {
  if (lock.lock().holder_count() == 0 && lock.queue().empty()) {
    print(name + " is free\n");
    return;
  }
  std::vector<std::string> head{"", "OWNER", "MODE", "TOKEN", "LEASE", "TIME", "METADATA"};
  const bool has_users = shows_users(lock);
  if (has_users) {
    head.emplace_back("USER");
  }
  Table table(head);
  const auto add = [&](std::vector<std::string> row, const std::string& user) {
    if (has_users) {
      row.push_back(user.empty() ? "-" : plain(user));
    }
    table.add(std::move(row));
  };
  for (const auto& holder : lock.lock().holders()) {
    add({"holds", plain(holder.owner()), mode_text(holder.item()),
         std::to_string(holder.fencing_token()), std::to_string(holder.lease_id()),
         duration_cell(milliseconds(holder.held_for_ms())), plain(holder.metadata())},
        holder.user());
  }
  for (const auto& waiter : lock.queue()) {
    add({"waits " + std::to_string(waiter.position()), plain(waiter.owner()),
         mode_text(waiter.item()), "-", std::to_string(waiter.lease_id()),
         duration_cell(milliseconds(waiter.waited_ms())), plain(waiter.metadata())},
        waiter.user());
  }
  print(table.text());
}

/// Chain of blockers: a lock, the lock that its holder waits for, and so on.
struct Chain {
  std::vector<v1::ExplainResponse> locks{};
  bool is_cycle = false;
};

/// Follows the first lock that a holder waits for. The requests are not atomic: a chain that
/// changes in between may show a cycle that does not exist.
Result<Chain> chain_from(Service& service, std::string name, bool is_space) {
  Chain chain;
  std::set<std::pair<std::string, bool>> seen;
  while (chain.locks.size() < chain_max) {
    // Back at a lock of the chain: its holders wait for each other.
    if (!seen.emplace(name, is_space).second) {
      chain.is_cycle = true;
      break;
    }
    auto lock = explained(service, name, is_space);
    if (!lock) {
      return std::unexpected(std::move(lock).error());
    }
    chain.locks.push_back(*std::move(lock));
    const auto& elsewhere = chain.locks.back().waits_of_holders();
    if (elsewhere.empty()) {
      break;
    }
    // Only the first branch: holders may wait for several locks, and all of them would form a tree.
    name = elsewhere.at(0).name();
    is_space = elsewhere.at(0).is_space();
  }
  return chain;
}

/// Prints a paragraph for each lock: the summary of the server, its waiters, and the wait of its
/// holders that leads to the next lock.
void print_chain(const Chain& chain, const Service& service) {
  for (const auto& lock : chain.locks) {
    print(sanitized(lock.summary()) + "\n");
    for (const auto& waiter : lock.queue()) {
      std::string blockers;
      for (const auto& blocker : waiter.blockers()) {
        blockers += (blockers.empty() ? "" : ", ") + plain(blocker.owner());
      }
      print("  " + plain(waiter.owner()) + " waits for " + blockers + "\n");
    }
    for (const auto& other : lock.waits_of_holders()) {
      print("  " + plain(other.owner()) + " holds it and waits for " +
            plain(service.without_prefix(other.name())) + " since " +
            format_duration(milliseconds(other.waited_ms())) + "\n");
    }
  }
  if (chain.is_cycle) {
    print(colored(Color::red, "deadlock") + ": one of them has to release its locks.\n");
  }
}

}  // namespace

int list_locks(const Arguments& arguments) {
  auto service = Service::open(arguments);
  const auto limit = arguments.number("--limit", 10'000'000);
  if (!service || !limit) {
    return failed(!service ? service.error() : limit.error());
  }
  Table table({"NAME", "HOLDER", "MODE", "TOKEN", "WAITERS", "HELD FOR", "METADATA"});
  sys::JsonWriter json;
  json.begin_array();
  const auto listed = each_lock(*service, arguments.words.empty() ? "" : arguments.words.front(),
                                limit->value_or(10'000'000), [&](const v1::LockStatus& lock) {
                                  switch (format_of(arguments)) {
                                    case Format::table: table.add(row_of(lock, *service)); return;
                                    // Printed page by page, for completions and pipes that need no
                                    // alignment.
                                    case Format::quiet:
                                      print(service->without_prefix(lock.name()) + "\n");
                                      return;
                                    case Format::json: break;
                                  }
                                  json.begin_object();
                                  write_fields(json, lock, *service);
                                  json.end_object();
                                });
  if (!listed) {
    return failed(listed.error());
  }
  if (format_of(arguments) == Format::json) {
    print(json.end_array().text() + "\n");
  } else if (format_of(arguments) == Format::table) {
    print(table.text());
  }
  return code(ExitCode::done);
}

int show_lock(const Arguments& arguments) {
  auto service = Service::open(arguments);
  // Another scheme: the library knows the holders, but not the queue.
  if (!service && service.error() == Errc::unsupported) {
    return show_by_library(arguments);
  }
  if (!service) {
    return failed(service.error());
  }
  const auto lock =
      explained(*service, service->with_prefix(arguments.words.front()), arguments.has("--space"));
  if (!lock) {
    return failed(lock.error());
  }
  if (format_of(arguments) == Format::table) {
    print_lock(*lock, plain(arguments.words.front()));
    return code(ExitCode::done);
  }
  if (format_of(arguments) == Format::json) {
    sys::JsonWriter json;
    json.begin_object();
    write_fields(json, lock->lock(), *service);
    json.key("queue").begin_array();
    for (const auto& waiter : lock->queue()) {
      write(json, waiter);
    }
    print(json.end_array().end_object().text() + "\n");
    return code(ExitCode::done);
  }
  // --output quiet: the exit code shows whether the lock is held.
  return code(lock->lock().holder_count() > 0 ? ExitCode::done : ExitCode::no);
}

int explain_lock(const Arguments& arguments) {
  auto service = Service::open(arguments);
  if (!service) {
    return failed(service.error());
  }
  // In the text and in JSON the locks are in the order of the chain, the requested one first.
  const auto chain =
      chain_from(*service, service->with_prefix(arguments.words.front()), arguments.has("--space"));
  if (!chain) {
    return failed(chain.error());
  }
  if (format_of(arguments) != Format::json) {
    print_chain(*chain, *service);
    return code(ExitCode::done);
  }
  sys::JsonWriter json;
  json.begin_object().field("is_cycle", chain->is_cycle).key("locks").begin_array();
  for (const auto& lock : chain->locks) {
    json.begin_object().field("summary", std::string_view(lock.summary()));
    write_fields(json, lock.lock(), *service);
    json.key("queue").begin_array();
    for (const auto& waiter : lock.queue()) {
      write(json, waiter);
    }
    json.end_array().end_object();
  }
  print(json.end_array().end_object().text() + "\n");
  return code(ExitCode::done);
}

}  // namespace tenure::cli
