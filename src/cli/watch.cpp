// tenure watch and tenure elect: events of locks, and leadership.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/output.hpp"
#include "cli/service.hpp"
#include "cli/signals.hpp"
#include "sys/json_writer.hpp"

namespace tenure::cli {
namespace {

/// Red for every end of a hold that its holder has not requested, and for a deadlock.
Color color_of(LockEventType type) {
  switch (type) {
    case LockEventType::granted: return Color::green;
    case LockEventType::expired:
    case LockEventType::revoked:
    case LockEventType::forced:
    case LockEventType::deadlock: return Color::red;
    case LockEventType::queued: return Color::yellow;
    default: return Color::none;
  }
}

/// Fields that exist only with users, or for a forced release. Appended as key=value pairs, so that
/// the first six columns are the same for every event.
std::string authenticated_fields(const LockEvent& event, std::string_view separator) {
  std::string text;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) {
      text += std::string(separator) + key + "=" + plain(value);
    }
  };
  add("user", event.user);
  add("operator", event.operator_name);
  add("reason", event.reason);
  return text;
}

/// Widths of the columns on a terminal: events arrive one by one, so the widths cannot depend on
/// them. A longer cell moves the rest of its line.
constexpr std::array<std::size_t, 6> watch_widths{8, 8, 10, 24, 24, 8};

/// Cells with these widths, and the rest of the line.
std::string aligned(const std::array<std::string, 6>& cells, const std::string& rest) {
  std::string line;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    line += padded(cells[column], watch_widths[column]) + "  ";
  }
  return line + rest + "\n";
}

/// Header on a terminal.
void print_headline(Format format) {
  if (format == Format::table && is_at_terminal()) {
    print(colored(Color::bold,
                  aligned({"TIME", "REVISION", "TYPE", "NAME", "OWNER", "TOKEN"}, "METADATA")));
  }
}

/// One line for each event, in text and in JSON, so that a reader can process them as a stream. The
/// events have no time of their own: the time is that of their arrival.
void print_event(const LockEvent& event, Format format) {
  const auto type = to_string(event.type);
  const auto now = std::chrono::system_clock::now();
  if (format != Format::json) {
    const auto revision = std::to_string(event.revision.get());
    const auto shown = colored(color_of(event.type), type);
    const auto token = event.token.get() == 0 ? "-" : std::to_string(event.token.get());
    if (is_at_terminal()) {
      constexpr std::size_t date = 11;  // Bytes of "2026-11-19 ".
      print(aligned({format_time(now).substr(date), revision, shown, plain(event.name),
                     plain(event.owner), token},
                    plain(event.metadata) + authenticated_fields(event, "  ")));
      return;
    }
    print(revision + "\t" + shown + "\t" + plain(event.name) + "\t" + plain(event.owner) + "\t" +
          token + "\t" + plain(event.metadata) + "\ttime=" + format_utc(now) +
          authenticated_fields(event, "\t") + "\n");
    return;
  }
  sys::JsonWriter json;
  json.begin_object()
      .id("revision", event.revision.get())
      .field("type", type)
      .field("name", std::string_view(event.name))
      .field("owner", std::string_view(event.owner))
      .id("token", event.token.get())
      .id("lease", event.lease.get())
      .field("metadata", std::string_view(event.metadata))
      .field("user", std::string_view(event.user))
      .field("received_at", std::string_view(format_utc(now)));
  if (event.type == LockEventType::forced) {
    json.field("operator", std::string_view(event.operator_name))
        .field("reason", std::string_view(event.reason));
  }
  print(json.end_object().text() + "\n");
}

/// Prints events until a termination signal, which is not an error. `most`: number of events after
/// which it returns; 0: no limit.
int follow(Watch events, const Signals& signals, const Arguments& arguments, std::uint64_t most) {
  std::stop_source stop;
  const TerminationWatch termination(signals, [&](int) { stop.request_stop(); });
  print_headline(format_of(arguments));
  for (std::uint64_t count = 0; most == 0 || count < most; ++count) {
    const auto event = events.next(stop.get_token());
    if (!event) {
      return event.error() == Errc::cancelled ? code(ExitCode::done) : failed(event.error());
    }
    print_event(*event, format_of(arguments));
  }
  return code(ExitCode::done);
}

/// Prints the leader. Without one, the exit code is 1, and the JSON output is `null`.
int print_leader(const std::optional<Holder>& leader, const Arguments& arguments) {
  if (!leader) {
    if (format_of(arguments) == Format::json) {
      print("null\n");
    }
    print_error("there is no leader");
    return code(ExitCode::no);
  }
  if (format_of(arguments) == Format::json) {
    sys::JsonWriter json;
    json.begin_object()
        .field("owner", std::string_view(leader->owner))
        .field("value", std::string_view(leader->metadata))
        .id("token", leader->token.get())
        .end_object();
    print(json.text() + "\n");
  } else {
    print(plain(leader->metadata) + "\t" + plain(leader->owner) + "\t" +
          std::to_string(leader->token.get()) + "\n");
  }
  return code(ExitCode::done);
}

}  // namespace

int watch(const Arguments& arguments) {
  const Signals signals;
  // Parsed before the connection is opened, so that a usage error needs no server.
  const auto most = arguments.number("--count", UINT64_MAX);
  const auto start = arguments.number("--from", UINT64_MAX);
  if (!most || !start) {
    return failed(!most ? most.error() : start.error());
  }
  auto client = open_client(arguments);
  if (!client) {
    return failed(client.error());
  }
  // Without a name the empty prefix matches all locks.
  auto events =
      client->watch(arguments.words.empty() ? "" : arguments.words.front(),
                    {.scope = arguments.has("--exact") ? WatchScope::one_name : WatchScope::prefix,
                     .start = *start ? std::optional(Revision{**start}) : std::nullopt});
  if (!events) {
    return failed(events.error());
  }
  return follow(*std::move(events), signals, arguments, most->value_or(0));
}

int elect(const Arguments& arguments) {
  if (const auto value = arguments.text("--value")) {
    // A candidacy is an exclusive lock whose metadata is the value.
    auto campaign = arguments;
    campaign.options["--metadata"] = *value;
    return campaign.command.empty() ? lock(campaign) : run(campaign);
  }
  // The value is what other clients read of a leader, so a candidate without one is an error.
  if (!arguments.command.empty()) {
    return failed({Errc::invalid_argument, "a candidate needs --value TEXT"});
  }
  const Signals signals;
  const auto client = open_client(arguments);
  if (!client) {
    return failed(client.error());
  }
  const auto election = client->election(arguments.words.front());
  if (arguments.has("--listen")) {
    auto events = election.observe();
    return events ? follow(*std::move(events), signals, arguments, 0) : failed(events.error());
  }
  const auto leader = election.leader();
  return leader ? print_leader(*leader, arguments) : failed(leader.error());
}

}  // namespace tenure::cli
