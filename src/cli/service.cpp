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

/// One request, whose responses stay in bytes.
class Service::Asked final : public grpc::ClientCall {
 public:
  explicit Asked(const Service::Take& take) : take_(take) {}

  std::optional<grpc::Status> status{};
  std::optional<Error> refusal{};  ///< Of whoever takes the answers.
  std::size_t answers = 0;

 private:
  void received(std::string_view message) override {
    ++answers;
    if (auto taken = take_(message); !taken && !refusal) {
      refusal = std::move(taken).error();
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
  const auto said = arguments.duration("--timeout");
  if (!said) {
    return std::unexpected(said.error());
  }
  return said->value_or(default_timeout);
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
  // Variables are for all commands, also for those that ask something else.
  const auto login = url.starts_with("tenure://") || arguments.has("--token-file")
                         ? login_source(arguments).login
                         : tenured::Login{};
  return connect(url, {.owner = arguments.text("--owner").value_or(""),
                       .request_timeout = *timeout,
                       .auth_token = login.token,
                       .auth_token_file = login.token_file,
                       .on_warning = [](std::string_view what) { complain(what); }});
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
                "only tenured can answer this: a tenure:// URL, not " + url->scheme + "://");
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

/// The connection, and who is called when it is lost.
class Service::Wire {
 public:
  Wire(backends::Servers servers, std::chrono::milliseconds timeout, Follow follow)
      : timeout_(timeout),
        follow_(follow),
        connector_(std::make_shared<backends::ChannelConnector>(
            loop_, std::move(servers),
            backends::ChannelConnector::Calls{
                .connected = [this](const auto& channel) { channel_ = channel; },
                .failed = [this](const Error& why) { last_failure_ = why; }})) {}
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire() {
    connector_->stop();
    hang_up();
    loop_.poll();
  }

  Result<void> ask(const std::string& path, const google::protobuf::MessageLite& request,
                   const Take& take, std::optional<std::chrono::milliseconds> timeout) {
    const auto longest = timeout.value_or(timeout_);
    for (auto deadline = Clock::now() + longest; Clock::now() < deadline;) {
      if (!reach(deadline)) {
        return std::unexpected(last_failure_);
      }
      const auto asked = std::make_shared<Asked>(take);
      channel_->begin(path, asked);
      asked->send(request);
      asked->half_close();
      for (std::size_t had = 0; !asked->status && !asked->refusal; had = asked->answers) {
        const auto one_more = Clock::now() + longest;
        const auto until = asked->answers > 0 ? one_more : deadline;
        run_until(until, [&] { return asked->status || asked->refusal || asked->answers > had; });
        if (!asked->status && asked->answers == had) {
          asked->cancel();
          return fail(Errc::unavailable, server() + ": no answer in time");
        }
      }
      if (asked->refusal) {
        asked->cancel();
        return std::unexpected(*asked->refusal);
      }
      if (asked->status->ok()) {
        connector_->praise();
        return {};
      }
      const auto error = error_of(*asked->status, server());
      if (error.code != Errc::unavailable || follow_ == Follow::nobody || asked->answers > 0) {
        return std::unexpected(error);
      }
      last_failure_ = error;
      leave(*asked->status);
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

  /// A connection stands?
  bool reach(Clock::time_point deadline) {
    if (channel_ && channel_->is_closed()) {
      channel_.reset();
    }
    if (!channel_) {
      connector_->dial();
      const auto soon = follow_ == Follow::nobody;
      run_until(deadline, [&] { return channel_ || (soon && last_failure_.detail != none); });
    }
    return channel_ != nullptr;
  }

  /// To the leader, if we were told who that is; else to the next one.
  void leave(const grpc::Status& status) {
    const auto leader = tenured::leader_in(status);
    if (!leader || !connector_->follow(*leader)) {
      connector_->blame();
    }
    hang_up();
  }

  void hang_up() {
    if (const auto channel = std::exchange(channel_, nullptr)) {
      channel->close();
    }
  }

  static constexpr auto none = "nobody answers";
  std::chrono::milliseconds timeout_;
  Follow follow_;
  boost::asio::io_context loop_;
  std::shared_ptr<grpc::Channel> channel_;
  Error last_failure_{Errc::unavailable, none};
  std::shared_ptr<backends::ChannelConnector> connector_;
};

Service::Service(ServiceUrl url, std::chrono::milliseconds timeout, Follow follow)
    : wire_(std::make_unique<Wire>(std::move(url.servers), timeout, follow)),
      key_prefix_(std::move(url.key_prefix)) {}
Service::Service(Service&&) noexcept = default;
Service& Service::operator=(Service&&) noexcept = default;
Service::~Service() = default;

Result<Service> Service::open(const Arguments& arguments) {
  auto url = service_url(arguments);
  if (!url) {
    return std::unexpected(std::move(url).error());
  }
  // What service_url() could read, this can.
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
  auto asked = wire_->ask("/tenure.v1." + std::string(method), request, keep, timeout);
  return asked ? Result<std::string>(std::move(bytes)) : std::unexpected(std::move(asked).error());
}

Result<void> Service::ask_each(std::string_view method,
                               const google::protobuf::MessageLite& request, const Take& take) {
  return wire_->ask("/tenure.v1." + std::string(method), request, take, std::nullopt);
}

std::string Service::shown(std::string_view name) const {
  return std::string(name.starts_with(key_prefix_) ? name.substr(key_prefix_.size()) : name);
}

std::string Service::server() const {
  return wire_->server();
}

}  // namespace tenure::cli
