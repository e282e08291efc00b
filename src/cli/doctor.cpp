// tenure doctor: checks everything between this machine and the locks, and advises.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/rpc/endpoint_selector.hpp"
#include "cli/check.hpp"
#include "cli/commands.hpp"
#include "cli/locks.hpp"
#include "sys/json_writer.hpp"
#include "sys/random.hpp"

namespace tenure::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Leases allow for 1 % of clock drift; half of that for one clock.
constexpr double drift_max = 0.005;
/// Time between the two readings of the clocks. Within it, 0.5 % are 7.5 ms, which exceeds the
/// uncertainty of a reading on a local network.
constexpr milliseconds drift_span{1500};

std::string in_ms(Clock::duration time) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  return std::to_string(us / 1000) + "." + std::to_string(us / 100 % 10) + " ms";
}

/// Advice for errors whose detail contains none.
std::string advice_for(const Error& error) {
  switch (error.code) {
    case Errc::unavailable: return "start a server (tenured), or set --url or TENURE_URL";
    case Errc::permission_denied:
      return "set tls_ca, tls_cert and tls_key in the URL as the server requires; if it has users, "
             "use the token (--token-file) of a user with this permission";
    default: return "";
  }
}

/// Runs the checks from the outside in: URL, credentials, servers, clocks, and finally a lock. Each
/// check assumes that the ones before it were good, so the first bad one is the cause. Not thread
/// safe.
class Diagnosis {
 public:
  explicit Diagnosis(const Arguments& arguments) : arguments_(arguments) {}

  /// Runs all checks that apply to the scheme of the URL. REQUIRES: called once.
  std::vector<Check> run() {
    const auto url = service_url(arguments_);
    // `unsupported` is a valid URL of another scheme: for it, only the check of a lock applies.
    if (!url && url.error() != Errc::unsupported) {
      add({"url", Finding::bad, shown_url() + ": " + url.error().detail,
           "correct --url or TENURE_URL"});
      return std::move(checks_);
    }
    add({"url", Finding::good, shown_url()});
    if (url) {
      add(url->servers.tls ? Check{"tls", Finding::good, "on"} : plain_text(*url));
      add(login_of(*url));
      for (const auto& endpoint : url->servers.endpoints) {
        check_server(endpoint, *url);
      }
      check_clocks(*url);
    } else {
      const auto timeout = timeout_of(arguments_).value_or(milliseconds(5000));
      std::ranges::move(check_backend(url_of(arguments_), timeout), std::back_inserter(checks_));
    }
    check_lock();
    return std::move(checks_);
  }

 private:
  /// Appends a result, in the order of the report.
  void add(Check check) { checks_.push_back(std::move(check)); }

  /// URL without passwords and tokens, because users paste reports into tickets.
  [[nodiscard]] std::string shown_url() const {
    return backends::without_secrets(url_of(arguments_));
  }

  /// Whether there are credentials. The later checks show whether the server accepts them. A token
  /// without encryption is a warning: any host on the path can read and use it.
  [[nodiscard]] Check login_of(const ServiceUrl& url) const {
    if (url.servers.token.empty()) {
      return {"login", Finding::good, "no credentials: sufficient for a server without users"};
    }
    const auto text = url_of(arguments_);
    const bool is_in_url = shown_url() != text || text.find("token_file=") != std::string::npos;
    const std::string where(is_in_url ? "the URL" : login_source(arguments_).where);
    if (backends::tenured::exposes_token(url.servers)) {
      return {"login", Finding::warning, "token from " + where + ", sent without encryption",
              "add tls_ca=FILE to the URL"};
    }
    return {"login", Finding::good, "token from " + where};
  }

  /// Finding for a URL without TLS. On this machine no other host can read the traffic.
  static Check plain_text(const ServiceUrl& url) {
    if (backends::tenured::are_local(url.servers)) {
      return {"tls", Finding::good, "off; not needed, because the server is on this machine"};
    }
    return {"tls", Finding::warning, "off: others can read and modify the traffic",
            "add tls_ca=FILE to the URL"};
  }

  /// Checks one server by itself. With Follow::none a server that is down is reported at once, and
  /// no other one replies in its place.
  void check_server(const backends::Endpoint& endpoint, ServiceUrl url) {
    const auto name = backends::name_of(endpoint);
    url.servers.endpoints = {endpoint};
    const auto timeout = timeout_of(arguments_).value_or(milliseconds(5000));
    Service one(std::move(url), timeout, Service::Follow::none);
    const auto began = Clock::now();
    const auto status = one.ask<v1::StatusResponse>("Admin/Status", v1::StatusRequest());
    if (!status) {
      add({name, Finding::bad, status.error().detail, advice_for(status.error())});
      return;
    }
    // From here on a missing permission is a matter of the user, not of the connection.
    has_reply_ = true;
    note_leader(endpoint, *status);
    // A server without a leader cannot commit, so it grants no lock.
    const bool is_led = status->leader_id() != 0;
    add({name, is_led ? Finding::good : Finding::bad,
         std::string(status->is_leader() ? "leader"
                     : is_led            ? "follower"
                                         : "no leader") +
             ", member " + std::to_string(status->header().member_id()) + " of cluster " +
             std::to_string(status->header().cluster_id()) + ", replies in " +
             in_ms(Clock::now() - began),
         is_led ? "" : "a majority of the members has to run and be connected"});
    const bool is_same = status->version() == TENURE_VERSION;
    add({"version of " + name, is_same ? Finding::good : Finding::warning,
         sanitized(status->version()) + (is_same ? "" : ", and this command is " TENURE_VERSION),
         is_same ? "" : "use the same version on both sides"});
    // Once is enough, and the number of leases is newest on the leader.
    if (status->is_leader()) {
      add(limits_of(*status));
    }
    if (!status->has_space()) {
      add({"disk of " + name, Finding::bad, "full: the server rejects new locks",
           "free space in its data directory"});
    }
  }

  /// Remembers the leader: the server itself, or the one that it names.
  void note_leader(const backends::Endpoint& endpoint, const v1::StatusResponse& status) {
    if (status.is_leader()) {
      leader_ = endpoint;
    } else if (!leader_) {
      leader_ = backends::endpoint_from(status.leader_address());
    }
  }

  /// Usage of the limit on leases.
  static Check limits_of(const v1::StatusResponse& status) {
    const auto limit = [&](const char* name) {
      const auto it = status.limits().find(name);
      return it == status.limits().end() ? std::uint64_t{0} : it->second;
    };
    const auto most = limit("leases_max");
    if (most == 0) {
      return {"limits", Finding::warning, "not reported by this server",
              "use the same version on both sides"};
    }
    const auto detail = std::to_string(status.leases()) + " of " + std::to_string(most) +
                        " leases; TTL from " + format_duration(milliseconds(limit("ttl_min"))) +
                        " to " + format_duration(milliseconds(limit("ttl_max")));
    // Warn at nine tenths, while there is still time to act.
    if (status.leases() < most / 10 * 9) {
      return {"limits", Finding::good, detail};
    }
    return {"limits", status.leases() < most ? Finding::warning : Finding::bad, detail,
            "find the clients with many leases (tenure lease ls), or raise limits.leases_max"};
  }

  /// Client and server both measure leases. Their clocks may differ, but must run at the same rate.
  /// The clock of the cluster is that of the leader; followers know it with a delay.
  void check_clocks(ServiceUrl url) {
    const auto skip = [this](std::string why) {
      add({"clock", Finding::skipped, "not checked: " + std::move(why)});
    };
    if (!leader_) {
      skip("no leader is known");
      return;
    }
    url.servers.endpoints = {*leader_};
    const auto timeout = timeout_of(arguments_).value_or(milliseconds(5000));
    Service service(std::move(url), timeout, Service::Follow::none);
    const auto first = reading(service);
    if (!first) {
      skip(first.error().detail);
      return;
    }
    std::this_thread::sleep_for(drift_span);
    const auto second = reading(service);
    if (!second) {
      skip(second.error().detail);
      return;
    }
    if (second->server <= first->server) {
      add({"clock", Finding::bad, "the cluster time stands still",
           "check the clock of " + backends::name_of(*leader_)});
      return;
    }
    // Rates, not times: the offset between the clocks cancels out.
    const auto ours = std::chrono::duration<double>(second->here - first->here).count();
    const auto theirs = std::chrono::duration<double>(second->server - first->server).count();
    // The server reads its clock at some time during the round trip, and reports milliseconds: 2 ms
    // for the rounding of both readings.
    const auto uncertainty =
        std::chrono::duration<double>(first->uncertainty + second->uncertainty).count() + 0.002;
    // Only what the uncertainty cannot explain counts, so that a slow network is not a bad clock.
    const auto off = std::max(0.0, std::abs(theirs - ours) - uncertainty) / ours;
    const bool is_good = off <= drift_max;
    add({"clock", is_good ? Finding::good : Finding::bad,
         is_good ? "runs at the rate of the server's clock"
                 : "rate differs by " + std::to_string(std::lround(off * 100)) +
                       " % from the server's clock",
         is_good ? "" : "check the clocks of both machines, which measure leases"});
  }

  /// Both clocks at one time.
  struct Reading {
    Clock::time_point here{};
    milliseconds server{};
    Clock::duration uncertainty{};
  };
  /// Reads both clocks. The middle of the round trip is the best estimate of the server's time.
  static Result<Reading> reading(Service& service) {
    const auto began = Clock::now();
    const auto status = service.ask<v1::StatusResponse>("Admin/Status", v1::StatusRequest());
    const auto uncertainty = Clock::now() - began;
    if (!status) {
      return std::unexpected(status.error());
    }
    // It may have stepped down since it was found.
    if (!status->is_leader()) {
      return fail(Errc::unavailable, "the leader has changed");
    }
    return Reading{.here = began + uncertainty / 2,
                   .server = milliseconds(status->cluster_time_ms()),
                   .uncertainty = uncertainty};
  }

  /// End-to-end check: acquires and releases a lock through the client library. Uses no RPC client,
  /// so it shows what a program with the library would experience.
  void check_lock() {
    const auto began = Clock::now();
    const auto client = open_client(arguments_);
    if (!client) {
      add({"lock", Finding::bad, client.error().detail, advice_for(client.error())});
      return;
    }
    // A random name below a fixed prefix: no contention with other clients, and one prefix to
    // permit.
    const auto name = "tenure-doctor/" + std::to_string(sys::random_id());
    auto guard = client->mutex(name, {.ttl = std::chrono::seconds(10)}).try_lock();
    const auto locked = Clock::now();
    const auto token = guard ? guard->token().get() : 0;
    // One result for both steps: a lock that cannot be released is as bad as one that is not
    // granted.
    const auto unlocked = guard ? guard->unlock() : Result<void>(std::unexpected(guard.error()));
    // The service works, and the user simply has no permission for this prefix.
    if (!unlocked && unlocked.error() == Errc::permission_denied && has_reply_) {
      add({"lock", Finding::warning, unlocked.error().detail,
           "to check a lock, permit this user to lock tenure-doctor/"});
      return;
    }
    if (!unlocked) {
      add({"lock", Finding::bad, to_string(unlocked.error()), advice_for(unlocked.error())});
      return;
    }
    add({"lock", Finding::good,
         "acquired in " + in_ms(locked - began) + ", released in " + in_ms(Clock::now() - locked) +
             ", token " + std::to_string(token)});
  }

  const Arguments& arguments_;
  std::vector<Check> checks_;
  bool has_reply_ = false;  ///< Whether a server has replied.
  /// Leader, if a server leads or names it.
  std::optional<backends::Endpoint> leader_{};
};

/// Name of a finding in the text and in JSON.
std::string_view word_of(Finding finding) {
  switch (finding) {
    case Finding::good: return "good";
    case Finding::skipped: return "skipped";
    case Finding::warning: return "warning";
    case Finding::bad: return "bad";
  }
  return "";
}

void print_checks(const std::vector<Check>& checks) {
  Table table({"FINDING", "CHECK", "DETAIL"});
  for (const auto& check : checks) {
    const auto color = check.finding == Finding::good  ? Color::green
                       : check.finding == Finding::bad ? Color::red
                                                       : Color::yellow;
    table.add(
        {colored(color, word_of(check.finding)), sanitized(check.what), sanitized(check.detail)});
    if (!check.advice.empty()) {
      table.add({"", "", colored(Color::bold, "advice: ") + check.advice});
    }
  }
  print(table.text());
}

}  // namespace

int doctor(const Arguments& arguments) {
  const auto checks = Diagnosis(arguments).run();
  // Warnings do not fail the command, because the service works.
  const bool is_bad =
      std::ranges::any_of(checks, [](const Check& check) { return check.finding == Finding::bad; });
  if (format_of(arguments) == Format::json) {
    sys::JsonWriter json;
    json.begin_array();
    for (const auto& check : checks) {
      json.begin_object()
          .field("check", std::string_view(check.what))
          .field("finding", word_of(check.finding))
          .field("detail", std::string_view(check.detail))
          .field("advice", std::string_view(check.advice))
          .end_object();
    }
    print(json.end_array().text() + "\n");
  } else if (format_of(arguments) == Format::table) {
    print_checks(checks);
  }
  return code(is_bad ? ExitCode::no : ExitCode::done);
}

}  // namespace tenure::cli
