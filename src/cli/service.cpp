#include "cli/service.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "backends/rpc/channel_connector.hpp"
#include "backends/tenured/proto_types.hpp"
#include "backends/url.hpp"
#include "backends/url_options.hpp"
#include "cli/output.hpp"
#include "grpc/channel.hpp"

namespace tenure::cli {
namespace {

using Clock = std::chrono::steady_clock;
namespace tenured = backends::tenured;

constexpr std::chrono::milliseconds default_timeout{5000};

}  // namespace

/// RPC in progress. Passes the encoded responses to a callback.
class Service::PendingCall final : public grpc::ClientCall {
 public:
  explicit PendingCall(const Service::Take& take) : take_(take) {}

  std::optional<grpc::Status> status{};
  std::optional<Error> rejection{};  ///< Error of the callback.
  std::size_t answers = 0;

 private:
  void received(std::string_view message) override {
    ++answers;
    if (auto taken = take_(message); !taken && !rejection) {
      rejection = std::move(taken).error();
    }
  }
  void ended(const grpc::Status& how) override { status = how; }

  const Service::Take& take_;
};

namespace {

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
  const bool has_one = from_environment != nullptr && *from_environment != '\0';
  return arguments.text("--url").value_or(has_one ? from_environment : "tenure://127.0.0.1:7420");
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

Result<Client> open_client(const Arguments& arguments) {
  const auto timeout = timeout_of(arguments);
  if (!timeout) {
    return std::unexpected(timeout.error());
  }
  const auto url = url_of(arguments);
  // TENURE_AUTH_TOKEN and TENURE_AUTH_FILE may be set for all commands: ignore them for other
  // schemes.
  const auto login = url.starts_with("tenure://") || arguments.has("--token-file")
                         ? login_source(arguments).login
                         : tenured::Login{};
  return connect(url, {.owner = arguments.text("--owner").value_or(""),
                       .request_timeout = *timeout,
                       .auth_token = login.token,
                       .auth_token_file = login.token_file,
                       .on_warning = [](std::string_view what) { print_error(what); }});
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
class Service::Connection {
 public:
  Connection(backends::Servers servers, std::chrono::milliseconds timeout, Follow follow)
      : timeout_(timeout),
        follow_(follow),
        connector_(std::make_shared<backends::ChannelConnector>(
            loop_, std::move(servers),
            backends::ChannelConnector::Callbacks{
                .connected = [this](const auto& channel) { channel_ = channel; },
                .failed = [this](const Error& why) { last_failure_ = why; }})) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    connector_->stop();
    disconnect();
    loop_.poll();
  }

  Result<void> ask(const std::string& path, const google::protobuf::MessageLite& request,
                   const Take& take, std::optional<std::chrono::milliseconds> timeout) {
    const auto longest = timeout.value_or(timeout_);
    for (auto deadline = Clock::now() + longest; Clock::now() < deadline;) {
      if (!connect_until(deadline)) {
        return std::unexpected(last_failure_);
      }
      const auto call = std::make_shared<PendingCall>(take);
      channel_->begin(path, call);
      call->send(request);
      call->half_close();
      for (std::size_t had = 0; !call->status && !call->rejection; had = call->answers) {
        const auto one_more = Clock::now() + longest;
        const auto until = call->answers > 0 ? one_more : deadline;
        run_until(until, [&] { return call->status || call->rejection || call->answers > had; });
        if (!call->status && call->answers == had) {
          call->cancel();
          return fail(Errc::unavailable, server() + ": no reply before the timeout");
        }
      }
      if (call->rejection) {
        call->cancel();
        return std::unexpected(*call->rejection);
      }
      if (call->status->ok()) {
        connector_->mark_healthy();
        return {};
      }
      const auto error = error_of(*call->status, server());
      if (error.code != Errc::unavailable || follow_ == Follow::none || call->answers > 0) {
        return std::unexpected(error);
      }
      last_failure_ = error;
      switch_server(*call->status);
    }
    return std::unexpected(last_failure_);
  }

  [[nodiscard]] std::string server() const { return channel_ ? channel_->authority() : ""; }

 private:
  template <class IsDone>
  void run_until(Clock::time_point deadline, const IsDone& is_done) {
    loop_.restart();
    while (!is_done() && Clock::now() < deadline && loop_.run_one_until(deadline) > 0) {
    }
  }

  /// Connects if necessary. False if the deadline passed.
  bool connect_until(Clock::time_point deadline) {
    if (channel_ && channel_->is_closed()) {
      channel_.reset();
    }
    if (!channel_) {
      connector_->connect();
      const auto soon = follow_ == Follow::none;
      run_until(deadline, [&] { return channel_ || (soon && last_failure_.detail != none); });
    }
    return channel_ != nullptr;
  }

  /// Disconnects; the next connection goes to the leader if the reply names it, else to the next
  /// server.
  void switch_server(const grpc::Status& status) {
    const auto leader = tenured::leader_in(status);
    if (!leader || !connector_->redirect_to(*leader)) {
      connector_->mark_failed();
    }
    disconnect();
  }

  void disconnect() {
    if (const auto channel = std::exchange(channel_, nullptr)) {
      channel->close();
    }
  }

  static constexpr auto none = "no server replies";
  std::chrono::milliseconds timeout_;
  Follow follow_;
  boost::asio::io_context loop_;
  std::shared_ptr<grpc::Channel> channel_;
  Error last_failure_{Errc::unavailable, none};
  std::shared_ptr<backends::ChannelConnector> connector_;
};

Service::Service(ServiceUrl url, std::chrono::milliseconds timeout, Follow follow)
    : connection_(std::make_unique<Connection>(std::move(url.servers), timeout, follow)),
      key_prefix_(std::move(url.key_prefix)) {}
Service::Service(Service&&) noexcept = default;
Service& Service::operator=(Service&&) noexcept = default;
Service::~Service() = default;

Result<Service> Service::open(const Arguments& arguments) {
  auto url = service_url(arguments);
  if (!url) {
    return std::unexpected(std::move(url).error());
  }
  // service_url() has validated the timeout.
  return Service(*std::move(url), timeout_of(arguments).value_or(default_timeout));
}

Result<std::string> Service::ask(std::string_view method,
                                 const google::protobuf::MessageLite& request,
                                 std::optional<std::chrono::milliseconds> timeout) {
  std::string bytes;
  const auto keep = [&](std::string_view answer) -> Result<void> {
    bytes = answer;
    return {};
  };
  auto call = connection_->ask("/tenure.v1." + std::string(method), request, keep, timeout);
  return call ? Result<std::string>(std::move(bytes)) : std::unexpected(std::move(call).error());
}

Result<void> Service::ask_each(std::string_view method,
                               const google::protobuf::MessageLite& request, const Take& take) {
  return connection_->ask("/tenure.v1." + std::string(method), request, take, std::nullopt);
}

std::string Service::without_prefix(std::string_view name) const {
  return std::string(name.starts_with(key_prefix_) ? name.substr(key_prefix_.size()) : name);
}

std::string Service::server() const {
  return connection_->server();
}

}  // namespace tenure::cli
