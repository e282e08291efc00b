#include "cli/service.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "backends/rpc/channel_connector.hpp"
#include "backends/tenured/proto_types.hpp"
#include "backends/url.hpp"
#include "backends/url_options.hpp"
#include "cli/output.hpp"
#include "cli/reachability.hpp"
#include "cli/retry.hpp"
#include "grpc/channel.hpp"

namespace tenure::cli {
namespace {

using Clock = std::chrono::steady_clock;
namespace tenured = backends::tenured;

/// Timeout of requests without --timeout.
constexpr std::chrono::milliseconds default_timeout{5000};

}  // namespace

/// RPC in progress. Passes the encoded responses to a callback. Refers to the callback of ask(),
/// which cancels an unfinished call before it returns.
class Service::PendingCall final : public grpc::ClientCall {
 public:
  explicit PendingCall(const Service::Take& take) : take_(take) {}

  /// Final status; none while the call is in progress.
  std::optional<grpc::Status> status{};
  std::optional<Error> rejection{};  ///< Error of the callback.
  /// Number of responses so far; shows progress to the timeout of a stream.
  std::size_t answers = 0;

 private:
  void received(std::string_view message) override {
    ++answers;
    // The first error counts. Further responses may arrive until the call is cancelled.
    if (auto taken = take_(message); !taken && !rejection) {
      rejection = std::move(taken).error();
    }
  }
  void ended(const grpc::Status& how) override { status = how; }

  const Service::Take& take_;
};

namespace {

/// Maps a status to the error of a command, which determines the exit code.
Error error_of(const grpc::Status& status, const std::string& server) {
  switch (status.code) {
    case grpc::StatusCode::failed_precondition: return {Errc::not_held, status.message};
    case grpc::StatusCode::not_found: return {Errc::lease_lost, status.message};
    case grpc::StatusCode::deadline_exceeded: return {Errc::timed_out, status.message};
    default: return backends::error_from(status, server);
  }
}

}  // namespace

std::string url_of(const Arguments& arguments) {
  const auto* from_environment = std::getenv("TENURE_URL");
  // An empty variable counts as unset: `TENURE_URL= tenure ...` selects the default.
  const bool has_one = from_environment != nullptr && *from_environment != '\0';
  const auto url =
      arguments.text("--url").value_or(has_one ? from_environment : "tenure://127.0.0.1:7420");
  // "host:port" is a tenured. memory: and a misspelled scheme keep their errors.
  const bool is_address = url.find(":/") == std::string::npos && !url.starts_with("memory:");
  return is_address ? "tenure://" + url : url;
}

Result<std::chrono::milliseconds> timeout_of(const Arguments& arguments) {
  const auto value = arguments.duration("--timeout");
  if (!value) {
    return std::unexpected(value.error());
  }
  return value->value_or(default_timeout);
}

LoginSource login_source(const Arguments& arguments) {
  if (const auto file = arguments.text("--token-file")) {
    return {.login = {.token_file = *file}, .where = "--token-file"};
  }
  // In the order of precedence: the first variable that is set counts.
  const std::pair<const char*, std::string tenured::Login::*> variables[] = {
      {"TENURE_AUTH_TOKEN", &tenured::Login::token},
      {"TENURE_AUTH_FILE", &tenured::Login::token_file}};
  LoginSource found;
  for (const auto& [name, field] : variables) {
    const auto* value = std::getenv(name);
    if (value != nullptr && *value != '\0' && found.where.empty()) {
      found.login.*field = value;
      found.where = name;
    }
  }
  return found;
}

Result<Client> open_client(const Arguments& arguments, std::optional<Clock::time_point> end) {
  const auto timeout = timeout_of(arguments);
  const auto retry = retry_end(arguments);
  if (!timeout || !retry) {
    return std::unexpected(!timeout ? timeout.error() : retry.error());
  }
  const auto url = url_of(arguments);
  // TENURE_AUTH_TOKEN and TENURE_AUTH_FILE may be set for all commands: ignore them for other
  // schemes.
  const auto login = url.starts_with("tenure://") || arguments.has("--token-file")
                         ? login_source(arguments).login
                         : tenured::Login{};
  const ConnectOptions options{.owner = arguments.text("--owner").value_or(""),
                               .request_timeout = *timeout,
                               .auth_token = login.token,
                               .auth_token_file = login.token_file,
                               .on_warning = [](std::string_view what) { print_error(what); }};
  auto client = retry_until(end.value_or(*retry), [&] { return connect(url, options); });
  if (!client && client.error() == Errc::unavailable) {
    if (const auto parsed = service_url(arguments)) {
      return std::unexpected(explained(std::move(client).error(), parsed->servers));
    }
  }
  return client;
}

Result<ServiceUrl> service_url(const Arguments& arguments) {
  const auto timeout = timeout_of(arguments);
  if (!timeout) {
    return std::unexpected(timeout.error());
  }
  const auto text = url_of(arguments);
  auto url = backends::parse_url(text);
  if (!url) {
    return std::unexpected(std::move(url).error());
  }
  if (url->scheme != "tenure") {
    return fail(Errc::unsupported,
                "this command needs a tenure:// URL, not " + url->scheme + "://");
  }
  // Takes the common options out of the URL: servers_from() handles those of tenure:// only.
  ServiceUrl made;
  ConnectOptions options;
  if (auto consumed = backends::consume_common_options(*url, options); !consumed) {
    return std::unexpected(std::move(consumed).error());
  }
  made.key_prefix = std::move(options.key_prefix);
  auto servers = tenured::servers_from(*url, *timeout, login_source(arguments).login);
  if (!servers) {
    return std::unexpected(std::move(servers).error());
  }
  made.servers = *std::move(servers);
  return made;
}

/// Connection to one server, and the event loop that serves it. Reconnects and follows redirects.
/// Single-threaded: the loop runs only inside ask(), so handlers need no synchronisation.
class Service::Connection {
 public:
  Connection(const backends::Servers& servers, std::chrono::milliseconds timeout, Follow follow,
             std::chrono::milliseconds retry)
      : servers_(servers),
        timeout_(timeout),
        retry_(retry),
        follow_(follow),
        connector_(std::make_shared<backends::ChannelConnector>(
            loop_, servers,
            backends::ChannelConnector::Callbacks{
                .connected = [this](const auto& channel) { channel_ = channel; },
                .failed = [this](const Error& why) { last_failure_ = why; }})) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    // No callback may refer to this object after its end; poll() runs the handlers that are queued.
    connector_->stop();
    disconnect();
    loop_.poll();
  }

  Result<void> ask(const std::string& path, const google::protobuf::MessageLite& request,
                   const Take& take, const AskOptions& options) {
    // One deadline for all attempts, so that retries do not extend the timeout of the user.
    const auto longest = options.timeout.value_or(timeout_);
    const auto deadline = Clock::now() + std::max(longest, retry_);
    // Each turn is one attempt on one server.
    while (Clock::now() < deadline && !cancel_.stop_requested()) {
      // The last error of a connection attempt explains more than "timed out".
      if (!connect_until(deadline)) {
        break;
      }
      const auto call = std::make_shared<PendingCall>(take);
      channel_->begin(path, call);
      call->send(request);
      call->half_close();
      await(*call, longest, deadline);
      if (call->rejection) {
        call->cancel();
        return std::unexpected(*call->rejection);
      }
      if (!call->status) {
        // The server may be stuck or gone. Cancelled, so that it does not work for a caller that
        // has left.
        call->cancel();
        last_failure_ = {Errc::unavailable, server() + ": no reply before the timeout"};
      } else if (call->status->ok()) {
        connector_->mark_healthy();
        return {};
      } else {
        last_failure_ = error_of(*call->status, server());
      }
      // Only `unavailable` may succeed elsewhere. After the first response of a stream a repetition
      // would deliver the same responses twice.
      if (last_failure_.code != Errc::unavailable || follow_ == Follow::none || call->answers > 0) {
        return std::unexpected(last_failure_);
      }
      if (options.repeat == Repeat::never) {
        return fail(Errc::unavailable,
                    last_failure_.detail + "; it is not known whether the request was executed");
      }
      switch_server(call->status);
    }
    if (cancel_.stop_requested()) {
      return fail(Errc::cancelled, "cancelled");
    }
    // The last server that was tried is rarely the cause.
    return std::unexpected(follow_ == Follow::leader ? explained(last_failure_, servers_)
                                                     : last_failure_);
  }

  void cancel_with(std::stop_token cancel) { cancel_ = std::move(cancel); }

  [[nodiscard]] std::string server() const { return channel_ ? channel_->authority() : ""; }

 private:
  /// Runs the loop until the condition holds, the deadline passes, or a stop is requested.
  template <class IsDone>
  void run_until(Clock::time_point deadline, const IsDone& is_done) {
    // A loop that ran out of work is stopped, and would return at once.
    loop_.restart();
    // The handler does nothing: it only ends run_one_until() on this thread.
    const std::stop_callback wake(cancel_, [this] { boost::asio::post(loop_, [] {}); });
    while (!is_done() && !cancel_.stop_requested() && Clock::now() < deadline && !loop_.stopped()) {
      loop_.run_one_until(std::min(deadline, Clock::now() + liveness_interval));
      // A server whose machine has failed sends nothing. The check closes the channel then, which
      // ends its calls.
      if (channel_) {
        channel_->check(Clock::now());
      }
    }
  }

  /// Waits for the end of a call. A stream is alive as long as responses arrive, so each of them
  /// restarts the timeout.
  void await(const PendingCall& call, std::chrono::milliseconds longest,
             Clock::time_point deadline) {
    const auto has_ended = [&] { return call.status || call.rejection; };
    run_until(std::min(deadline, Clock::now() + longest),
              [&] { return has_ended() || call.answers > 0; });
    for (std::size_t had = 0; !has_ended() && call.answers > had;) {
      had = call.answers;
      run_until(Clock::now() + longest, [&] { return has_ended() || call.answers > had; });
    }
  }

  /// Connects if necessary. False if the deadline passed.
  bool connect_until(Clock::time_point deadline) {
    if (channel_ && channel_->is_closed()) {
      channel_.reset();
    }
    if (!channel_) {
      connector_->connect();
      // One failed attempt is the result; otherwise the connector tries the next server.
      const auto soon = follow_ == Follow::none;
      run_until(deadline, [&] { return channel_ || (soon && last_failure_.detail != none); });
    }
    return channel_ != nullptr;
  }

  /// Disconnects; the next connection goes to the leader if the reply names it, else to the next
  /// server. No status: there was no reply.
  void switch_server(const std::optional<grpc::Status>& status) {
    const auto leader = status ? tenured::leader_in(*status) : std::nullopt;
    if (!leader || !connector_->redirect_to(*leader)) {
      connector_->mark_failed();
    }
    disconnect();
  }

  /// Closes the channel; the next attempt opens another one.
  void disconnect() {
    if (const auto channel = std::exchange(channel_, nullptr)) {
      channel->close();
    }
  }

  /// Interval of the checks whether the server is still there.
  static constexpr std::chrono::milliseconds liveness_interval{1000};
  /// Detail before the first failure; marks that no attempt has failed yet.
  static constexpr auto none = "no server replies";
  backends::Servers servers_;
  std::chrono::milliseconds timeout_;
  /// Time for retries, if it is longer than the timeout.
  std::chrono::milliseconds retry_;
  Follow follow_;
  std::stop_token cancel_{};
  boost::asio::io_context loop_;
  /// Established connection; null: none.
  std::shared_ptr<grpc::Channel> channel_;
  /// Latest reason why an attempt failed; the result when the timeout passes.
  Error last_failure_{Errc::unavailable, none};
  /// Declared last: its callbacks use the members above.
  std::shared_ptr<backends::ChannelConnector> connector_;
};

Service::Service(ServiceUrl url, std::chrono::milliseconds timeout, Follow follow,
                 std::chrono::milliseconds retry)
    : connection_(std::make_unique<Connection>(url.servers, timeout, follow, retry)),
      key_prefix_(std::move(url.key_prefix)) {}
Service::Service(Service&&) noexcept = default;
Service& Service::operator=(Service&&) noexcept = default;
Service::~Service() = default;

Result<Service> Service::open(const Arguments& arguments) {
  auto url = service_url(arguments);
  const auto retry = arguments.duration("--retry");
  if (!url || !retry) {
    return std::unexpected(!url ? std::move(url).error() : retry.error());
  }
  // service_url() has validated the timeout.
  return Service(*std::move(url), timeout_of(arguments).value_or(default_timeout), Follow::leader,
                 retry->value_or(std::chrono::milliseconds::zero()));
}

Result<std::string> Service::ask(std::string_view method,
                                 const google::protobuf::MessageLite& request,
                                 const AskOptions& options) {
  std::string bytes;
  // A unary call has one response, so nothing is overwritten.
  const auto keep = [&](std::string_view answer) -> Result<void> {
    bytes = answer;
    return {};
  };
  auto call = connection_->ask("/tenure.v1." + std::string(method), request, keep, options);
  return call ? Result<std::string>(std::move(bytes)) : std::unexpected(std::move(call).error());
}

Result<void> Service::ask_each(std::string_view method,
                               const google::protobuf::MessageLite& request, const Take& take) {
  return connection_->ask("/tenure.v1." + std::string(method), request, take, {});
}

void Service::cancel_with(std::stop_token cancel) {
  connection_->cancel_with(std::move(cancel));
}

std::string Service::without_prefix(std::string_view name) const {
  return std::string(name.starts_with(key_prefix_) ? name.substr(key_prefix_.size()) : name);
}

std::string Service::server() const {
  return connection_->server();
}

}  // namespace tenure::cli
