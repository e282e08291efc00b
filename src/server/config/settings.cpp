#include "server/config/settings.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "server/config/members.hpp"
#include "server/config/units.hpp"

// A field of a Config, const or not. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define TENURE_FIELD(path) [](auto& config) -> auto& { return config.path; }

namespace tenure::server {
namespace {

/// Key and help text of a setting.
struct Named {
  std::string_view key;
  std::string_view help;
};

/// Inclusive range of a numeric setting. The default maximum is the largest TOML integer.
struct Range {
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::int64_t>::max();
};

constexpr std::uint64_t kibi = 1ULL << 10U;
constexpr std::uint64_t mebi = 1ULL << 20U;
constexpr std::uint64_t gibi = 1ULL << 30U;
constexpr std::uint64_t tebi = 1ULL << 40U;
constexpr std::uint64_t milli = 1'000;  ///< Of durations, which are counted in microseconds.
constexpr std::uint64_t second = 1'000'000;
constexpr std::uint64_t day = 86'400 * second;

template <class Field>
using FieldType = std::remove_cvref_t<std::invoke_result_t<Field, Config&>>;

/// Range in the notation of the value; empty: any value.
std::string within(const Range& range, const std::function<std::string(std::uint64_t)>& print) {
  if (range.most == Range{}.most) {
    return range.least == 0 ? "" : "at least " + print(range.least);
  }
  return print(range.least) + " to " + print(range.most);
}

/// How a number is written; a duration is its number of microseconds.
struct Notation {
  Result<std::uint64_t> (*parse)(std::string_view);
  std::string (*print)(std::uint64_t);
};

constexpr Notation as_count{parse_count, [](std::uint64_t value) { return std::to_string(value); }};
constexpr Notation as_size{parse_size, print_size};
constexpr Notation as_duration{
    [](std::string_view text) -> Result<std::uint64_t> {
      const auto parsed = parse_duration(text);
      if (!parsed) {
        return std::unexpected(parsed.error());
      }
      return static_cast<std::uint64_t>(parsed->count());
    },
    [](std::uint64_t value) {
      return print_duration(std::chrono::microseconds(static_cast<std::int64_t>(value)));
    }};

/// Assigns a number to a field; durations are converted from microseconds.
template <class Value>
void store(Value& field, std::uint64_t number) {
  if constexpr (std::is_integral_v<Value>) {
    field = static_cast<Value>(number);
  } else {
    // The cast truncates to the unit of the field: 1500us becomes 1ms in a field of milliseconds.
    const std::chrono::microseconds exact(static_cast<std::int64_t>(number));
    field = std::chrono::duration_cast<Value>(exact);
  }
}

template <class Value>
std::uint64_t load(const Value& field) {
  if constexpr (std::is_integral_v<Value>) {
    return field;
  } else {
    return static_cast<std::uint64_t>(std::chrono::microseconds(field).count());
  }
}

/// Setting with a numeric value. The range is checked here, so that file, flags and reference agree
/// on it.
template <class Field>
Setting number(Setting setting, Field field, Range range, Notation notation) {
  setting.expected = within(range, notation.print);
  setting.assign = [=, expected = setting.expected](Config& config,
                                                    std::string_view value) -> Result<void> {
    const auto parsed = notation.parse(value);
    if (!parsed) {
      return std::unexpected(parsed.error());
    }
    if (*parsed < range.least || *parsed > range.most) {
      return fail(Errc::invalid_argument,
                  "'" + std::string(value) + "' is out of range: " + expected);
    }
    store(field(config), *parsed);
    return {};
  };
  setting.print = [=](const Config& config) { return notation.print(load(field(config))); };
  return setting;
}

template <class Field>
Setting count(Named named, Field field, Range range = {}) {
  return number({.key = named.key, .help = named.help, .type = ValueType::count}, field, range,
                as_count);
}

template <class Field>
Setting size(Named named, Field field, Range range) {
  return number({.key = named.key, .help = named.help, .type = ValueType::size}, field, range,
                as_size);
}

template <class Field>
Setting duration(Named named, Field field, Range range) {
  return number({.key = named.key, .help = named.help, .type = ValueType::duration}, field, range,
                as_duration);
}

template <class Field>
Setting text(Named named, Field field, Result<void> (*check)(std::string_view) = nullptr) {
  Setting setting{.key = named.key, .help = named.help};
  setting.assign = [=](Config& config, std::string_view value) -> Result<void> {
    const auto checked = check == nullptr ? Result<void>{} : check(value);
    if (checked) {
      field(config) = std::string(value);
    }
    return checked;
  };
  setting.print = [field](const Config& config) { return std::string(field(config)); };
  return setting;
}

template <class Field>
Setting toggle(Named named, Field field) {
  Setting setting{.key = named.key, .help = named.help, .type = ValueType::toggle};
  setting.assign = [field](Config& config, std::string_view value) -> Result<void> {
    if (value != "true" && value != "false") {
      return fail(Errc::invalid_argument, "'" + std::string(value) + "' is not true or false");
    }
    field(config) = value == "true";
    return {};
  };
  setting.print = [field](const Config& config) { return field(config) ? "true" : "false"; };
  return setting;
}

/// One of the enumerators from 0 to `last`, by their to_string().
template <class Field>
Setting choice(Named named, Field field, FieldType<Field> last) {
  using Choice = FieldType<Field>;
  Setting setting{.key = named.key, .help = named.help};
  std::vector<Choice> choices;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    choices.push_back(static_cast<Choice>(i));
    setting.expected += i == 0 ? "" : ", ";
    setting.expected += to_string(choices.back());
  }
  setting.assign = [=, expected = setting.expected](Config& config,
                                                    std::string_view value) -> Result<void> {
    const auto it =
        std::ranges::find(choices, value, [](Choice known) { return to_string(known); });
    if (it == choices.end()) {
      return fail(Errc::invalid_argument, "'" + std::string(value) + "' is not one of " + expected);
    }
    field(config) = *it;
    return {};
  };
  setting.print = [field](const Config& config) { return std::string(to_string(field(config))); };
  return setting;
}

/// An empty path would mean the working directory.
Result<void> check_path(std::string_view value) {
  if (value.empty()) {
    return fail(Errc::invalid_argument, "the path is empty");
  }
  return {};
}

Result<void> check_address(std::string_view value) {
  const auto address = parse_address(value);
  return address ? Result<void>{} : std::unexpected(address.error());
}

/// HTTP is optional, gRPC is not.
Result<void> check_address_or_off(std::string_view value) {
  return value == "off" ? Result<void>{} : check_address(value);
}

/// Comma-separated key=value pairs.
Result<void> check_labels(std::string_view value) {
  while (!value.empty()) {
    const auto label = value.substr(0, value.find(','));
    const auto equals = label.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      return fail(Errc::invalid_argument,
                  "'" + std::string(label) +
                      "' is not a label: expected key=value pairs such as zone=a,rack=7");
    }
    value.remove_prefix(std::min(label.size() + 1, value.size()));
  }
  return {};
}

/// Checks the notation only; Config keeps the text, which plan_cluster() parses again.
Result<void> check_members(std::string_view value) {
  const auto members = parse_members(value);
  return members ? Result<void>{} : std::unexpected(members.error());
}

/// Empty: another setting supplies the address.
Result<void> check_address_or_none(std::string_view value) {
  return value.empty() ? Result<void>{} : check_address(value);
}

// One function per group of settings. The order is that of the reference and of print_config().
void add_node(std::vector<Setting>& all) {
  all.push_back(text({"node.data_dir", "Directory of the log and the snapshots."},
                     TENURE_FIELD(node.data_dir), check_path));
  all.push_back(text({"node.name", "Display name of this member."}, TENURE_FIELD(node.name)));
  all.push_back(text({"node.labels", "Display labels of this member, as in zone=a,rack=7."},
                     TENURE_FIELD(node.labels), check_labels));
  all.push_back(count(
      {"node.cluster_id",
       "Required cluster id: refuse to start with the data of another cluster. 0: accept any."},
      TENURE_FIELD(node.cluster_id)));
  all.push_back(
      count({"node.member_id",
             "Required member id: refuse to start with the data of another member. 0: accept any."},
            TENURE_FIELD(node.member_id)));
}

// Called by add_listen(), because the reference lists the cluster after the addresses.
void add_cluster(std::vector<Setting>& all) {
  all.push_back(text({"cluster.members",
                      "Initial members of the cluster, the same list on each: id, peer address and "
                      "client address, as in 1=db1:7422/db1:7420,2=..."},
                     TENURE_FIELD(cluster.members), check_members));
  all.push_back(
      toggle({"cluster.join",
              "Start with an empty directory and wait to be added to an existing cluster."},
             TENURE_FIELD(cluster.join)));
  all.push_back(text({"cluster.name",
                      "Input of the cluster id besides cluster.members: distinguishes clusters "
                      "that use, or used, the same addresses."},
                     TENURE_FIELD(cluster.name)));
  all.push_back(text({"cluster.peer_address",
                      "Advertised address for the other members. Empty: the one in "
                      "cluster.members, else listen.peers."},
                     TENURE_FIELD(cluster.peer_address), check_address_or_none));
  all.push_back(
      text({"cluster.client_address",
            "Advertised address for clients. Empty: the one in cluster.members, else listen.grpc."},
           TENURE_FIELD(cluster.client_address), check_address_or_none));
  all.push_back(text({"cluster.secret_file",
                      "File with a secret shared by all members. Without peer_tls it is the only "
                      "authentication of peers."},
                     TENURE_FIELD(cluster.secret_file)));
  all.push_back(count({"cluster.version_max",
                       "Highest cluster version that this member agrees to. 0: the newest that its "
                       "program supports. A lower one prepares a downgrade."},
                      TENURE_FIELD(cluster.version_max)));
}

void add_listen(std::vector<Setting>& all) {
  all.push_back(text({"listen.grpc", "Address of the gRPC service. Port 0 selects a free port."},
                     TENURE_FIELD(listen.grpc), check_address));
  all.push_back(text({"listen.http", "Address of HTTP (dashboard, health, metrics, JSON), or off."},
                     TENURE_FIELD(listen.http), check_address_or_off));
  all.push_back(text({"listen.http_hosts",
                      "Comma-separated allowed Host headers besides localhost and IP addresses "
                      "(DNS rebinding protection). * allows any."},
                     TENURE_FIELD(listen.http_hosts)));
  all.push_back(
      choice({"listen.http_force",
              "Whether locks can be force-released, and the cluster be administered, over HTTP and "
              "in the dashboard. off: refused. loopback: with users, for admins; without users, "
              "for requests from this machine with the secret in the file http_secret of "
              "node.data_dir."},
             TENURE_FIELD(listen.http_force), HttpForce::loopback));
  all.push_back(choice(
      {"listen.http_lock",
       "Whether locks can be acquired and released over HTTP. off: refused. loopback: with users, "
       "by their permissions; without users, for requests from this machine with the secret in the "
       "file http_secret of node.data_dir. open: without users, for every request."},
      TENURE_FIELD(listen.http_lock), HttpLock::open));
  all.push_back(choice(
      {"listen.http_tls",
       "Whether HTTP uses TLS if tls.cert is set. off: plain HTTP behind a proxy on this machine."},
      TENURE_FIELD(listen.http_tls), HttpTls::on));
  all.push_back(
      text({"listen.peers",
            "Address for the other members. Opened only with cluster.members or cluster.join."},
           TENURE_FIELD(listen.peers), check_address));
  all.push_back(toggle({"listen.insecure",
                        "Allow addresses reachable from the network without TLS: every client "
                        "there can acquire and break locks."},
                       TENURE_FIELD(listen.insecure)));
  add_cluster(all);
  all.push_back(
      text({"tls.cert", "Certificate chain of gRPC and HTTP, PEM."}, TENURE_FIELD(tls.cert)));
  all.push_back(text({"tls.key", "Private key of tls.cert, PEM."}, TENURE_FIELD(tls.key)));
  all.push_back(text({"tls.client_ca",
                      "Authorities that sign client certificates (mutual TLS), PEM. Over HTTP a "
                      "token is accepted instead."},
                     TENURE_FIELD(tls.client_ca)));
  all.push_back(text(
      {"peer_tls.cert", "Certificate chain of this member for connections between members, PEM."},
      TENURE_FIELD(peer_tls.cert)));
  all.push_back(
      text({"peer_tls.key", "Private key of peer_tls.cert, PEM."}, TENURE_FIELD(peer_tls.key)));
  all.push_back(text(
      {"peer_tls.ca", "Authority that signs the certificates of members and of nothing else, PEM."},
      TENURE_FIELD(peer_tls.ca)));
  all.push_back(text({"auth.file",
                      "Users with their tokens and permissions, TOML. Without it every client may "
                      "do everything. Reloaded on SIGHUP."},
                     TENURE_FIELD(auth.file)));
  all.push_back(toggle(
      {"auth.open_metrics", "Serve /metrics without authentication even if users are configured."},
      TENURE_FIELD(auth.open_metrics)));
  all.push_back(choice({"log.level", "Minimum level of logged events."}, TENURE_FIELD(log.level),
                       log::Level::error));
  all.push_back(
      choice({"log.format", "Log format. auto: text on a terminal, else one JSON object per line."},
             TENURE_FIELD(log.format), log::Format::json));
}

void add_raft(std::vector<Setting>& all) {
  all.push_back(size({"raft.segment_bytes", "Size of a log file, allocated as a whole."},
                     TENURE_FIELD(raft.segment_bytes), {kibi * 64, gibi}));
  all.push_back(size({"raft.snapshot_bytes", "Log growth that triggers a snapshot."},
                     TENURE_FIELD(raft.snapshot_bytes), {kibi * 64, tebi}));
  all.push_back(count({"raft.entries_in_flight_max",
                       "Log entries in flight, each with many commands. More entries reduce "
                       "latency over long distances; the smaller entries cost more writes."},
                      TENURE_FIELD(raft.entries_in_flight_max), {1, 256}));
  all.push_back(count({"raft.commands_in_flight_max",
                       "Commands in flight. Further commands are refused with resource_exhausted."},
                      TENURE_FIELD(raft.commands_in_flight_max), {1, 100'000'000}));
  all.push_back(size({"raft.bytes_in_flight_max", "Total size of the commands in flight."},
                     TENURE_FIELD(raft.bytes_in_flight_max), {mebi, tebi}));
  all.push_back(duration(
      {"raft.election_timeout", "Silence of the leader after which another one is elected."},
      TENURE_FIELD(raft.election_timeout), {10 * milli, 60 * second}));
  all.push_back(
      duration({"raft.heartbeat",
                "Interval of the heartbeats of a leader. At most half of raft.election_timeout."},
               TENURE_FIELD(raft.heartbeat), {milli, 10 * second}));
}

void add_service(std::vector<Setting>& all) {
  all.push_back(count(
      {"service.connections_max", "gRPC connections. One address may use three quarters of them."},
      TENURE_FIELD(service.connections_max), {1, 10'000'000}));
  all.push_back(count(
      {"service.http_connections_max",
       "HTTP connections, event streams included. One address may use three quarters of them."},
      TENURE_FIELD(service.http_connections_max), {1, 1'000'000}));
  all.push_back(size({"service.message_bytes_max", "Size of one request."},
                     TENURE_FIELD(service.message_bytes_max), {kibi, gibi}));
  all.push_back(count({"service.streams_max",
                       "Concurrent streams: sessions, watches and keep-alives. One user or address "
                       "may use three quarters of them."},
                      TENURE_FIELD(service.streams_max), {1, 10'000'000}));
  all.push_back(count({"service.watches_per_stream_max", "Watches on one Watch stream."},
                      TENURE_FIELD(service.watches_per_stream_max), {1, 100'000}));
  all.push_back(count({"service.watch_buffer_events_max",
                       "Events buffered for a slow watcher. A watch that exceeds it is cancelled."},
                      TENURE_FIELD(service.watch_buffer_events_max), {1, 10'000'000}));
}

// Limits of single requests, then of the store. All members must apply the same limits, so they are
// replicated: the setting takes effect through the log.
void add_requests(std::vector<Setting>& all) {
  all.push_back(size({"limits.name_bytes_max", "Length of the name of a lock or a space."},
                     TENURE_FIELD(limits.name_bytes_max), {1, mebi}));
  all.push_back(size({"limits.key_bytes_max", "Length of one bound of a range."},
                     TENURE_FIELD(limits.key_bytes_max), {1, mebi}));
  all.push_back(size({"limits.owner_bytes_max", "Length of owner, client and address, each."},
                     TENURE_FIELD(limits.owner_bytes_max), {1, mebi}));
  all.push_back(size({"limits.metadata_bytes_max", "Size of the metadata of one acquire request."},
                     TENURE_FIELD(limits.metadata_bytes_max), {0, mebi}));
  all.push_back(count({"limits.items_max", "Names and ranges in one request."},
                      TENURE_FIELD(limits.items_max), {1, 65'535}));
  all.push_back(count({"limits.renewals_max", "Leases in one renewal request."},
                      TENURE_FIELD(limits.renewals_max), {1, 1'000'000}));
  all.push_back(count({"limits.capacity_max", "Permits of a semaphore."},
                      TENURE_FIELD(limits.capacity_max), {1, 4'000'000'000}));
  // A TTL shorter than a renewal round trip would expire while it is renewed.
  all.push_back(duration({"limits.ttl_min", "Shortest TTL of a lease."},
                         TENURE_FIELD(limits.ttl_min), {milli, day}));
  all.push_back(duration({"limits.ttl_max", "Longest TTL of a lease."},
                         TENURE_FIELD(limits.ttl_max), {second, 3650 * day}));
}

void add_store(std::vector<Setting>& all) {
  // A large finite limit: with 0 as "unlimited" a mistake could fill the memory.
  constexpr Range many{1, 1'000'000'000};
  all.push_back(count({"limits.leases_max", "Leases of the whole store."},
                      TENURE_FIELD(limits.leases_max), many));
  all.push_back(
      count({"limits.items_per_lease_max", "Names and ranges held and waited for by one lease."},
            TENURE_FIELD(limits.items_per_lease_max), many));
  all.push_back(count({"limits.waits_per_lease_max", "Waiting requests of one lease."},
                      TENURE_FIELD(limits.waits_per_lease_max), many));
  all.push_back(count({"limits.leases_per_client_max", "Leases of one client."},
                      TENURE_FIELD(limits.leases_per_client_max), many));
  all.push_back(count({"limits.waits_per_client_max", "Waiting requests of one client."},
                      TENURE_FIELD(limits.waits_per_client_max), many));
  all.push_back(count({"limits.waiters_per_lock_max", "Waiters of one lock."},
                      TENURE_FIELD(limits.waiters_per_lock_max), many));
  all.push_back(count({"limits.reentries_max", "Reentries of one hold."},
                      TENURE_FIELD(limits.reentries_max), {1, 4'000'000'000}));
  all.push_back(count({"limits.answers_per_lease_max",
                       "Finished requests of one lease that are remembered to answer retries, "
                       "within limits.answer_retention."},
                      TENURE_FIELD(limits.answers_per_lease_max), {1, 10'000'000}));
  all.push_back(
      count({"limits.events_max", "Events kept for watches that start at an earlier revision."},
            TENURE_FIELD(limits.events_max), {1, 100'000'000}));
  all.push_back(size({"limits.state_bytes_max",
                      "Size of all leases, holds and waits. A full state refuses new holds, waits "
                      "and leases with resource_exhausted."},
                     TENURE_FIELD(limits.state_bytes_max), {mebi, tebi}));
  all.push_back(size({"limits.state_bytes_per_user_max",
                      "Size of the leases, holds and waits of one authenticated user."},
                     TENURE_FIELD(limits.state_bytes_per_user_max), {mebi, tebi}));
  all.push_back(duration({"limits.answer_retention",
                          "Time for which a finished request is remembered to answer retries."},
                         TENURE_FIELD(limits.answer_retention), {second, 3650 * day}));
}

std::vector<Setting> make_settings() {
  std::vector<Setting> all;
  add_node(all);
  add_listen(all);
  add_raft(all);
  add_service(all);
  add_requests(all);
  add_store(all);
  return all;
}

}  // namespace

std::string Setting::flag() const {
  // Flags of settings that nearly every configuration needs have no section.
  const bool is_short = section() == "node" || key == "listen.insecure" ||
                        key == "cluster.members" || key == "cluster.join";
  std::string flag = "--" + std::string(is_short ? name() : key);
  std::ranges::replace(flag, '.', '-');
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::string Setting::variable() const {
  // TENURE_AUTH_FILE is the token file of the command `tenure`.
  if (key == "auth.file") {
    return "TENURE_AUTH_USERS_FILE";
  }
  std::string variable = "TENURE_" + std::string(key);
  for (char& letter : variable) {
    letter =
        letter == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return variable;
}

std::span<const Setting> settings() {
  // Built at the first use, because the table contains std::function objects.
  static const std::vector<Setting> all = make_settings();
  return all;
}

const Setting* find_setting(std::string_view key) {
  const auto all = settings();
  const auto it = std::ranges::find(all, key, &Setting::key);
  return it == all.end() ? nullptr : &*it;
}

std::string_view nearest_key(std::string_view key) {
  std::string_view nearest;
  // About one edit per three letters; a worse suggestion would confuse more than it helps.
  auto best = key.size() / 3 + 2;
  for (const auto& setting : settings()) {
    // A known name in the wrong section is a likely mistake, too: it costs one edit.
    const auto leaf = key.substr(key.rfind('.') + 1);
    const auto distance =
        std::min(edit_distance(key, setting.key), edit_distance(leaf, setting.name()) + 1);
    if (distance < best) {
      best = distance;
      nearest = setting.key;
    }
  }
  return nearest;
}

std::span<const Section> sections() {
  static constexpr std::array all{
      Section{"node", "This member"},
      Section{"listen", "Addresses"},
      Section{"cluster", "The cluster"},
      Section{"tls", "TLS of gRPC and HTTP"},
      Section{"peer_tls", "TLS between members"},
      Section{"auth", "Users and permissions"},
      Section{"log", "Logging to stderr"},
      Section{"raft", "The replicated log"},
      Section{"service", "Limits of this process"},
      Section{"limits", "Limits of the replicated store"},
  };
  return all;
}

}  // namespace tenure::server
