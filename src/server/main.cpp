// tenured: the lock service. Reads its configuration, composes the daemon, and waits for the
// signal to stop. docs/how_to/install.md describes operation.

#include <chrono>
#include <csignal>
#include <cstdio>
#include <expected>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/post.hpp>
#include <pthread.h>
#include <unistd.h>

#include "server/auth/authorizer.hpp"
#include "server/auth/token.hpp"
#include "server/config/cluster_config.hpp"
#include "server/config/command_line.hpp"
#include "server/config/config.hpp"
#include "server/config/environment.hpp"
#include "server/events/force_log.hpp"
#include "server/http/options.hpp"
#include "server/http/server.hpp"
#include "server/metrics/metrics.hpp"
#include "server/peers/peer_setup.hpp"
#include "server/peers/seed_command.hpp"
#include "server/process/exit_code.hpp"
#include "server/process/notify.hpp"
#include "server/raft/node.hpp"
#include "server/rpc/rpc_server.hpp"
#include "server/tls/certificates.hpp"
#include "sys/log.hpp"

namespace tenure::server {
namespace {

/// Maximum time a stop waits for the leadership transfer.
constexpr std::chrono::milliseconds leadership_transfer_timeout{1000};

/// Reason and exit code of a failed start.
struct Failure {
  ExitCode code = ExitCode::internal;
  std::string detail{};
};
template <class T>
using Started = std::expected<T, Failure>;

void report(log::Level level, std::string_view event, log::Fields fields) {
  switch (level) {
    case log::Level::debug: log::debug(event, fields); return;
    case log::Level::info: log::info(event, fields); return;
    case log::Level::warning: log::warning(event, fields); return;
    case log::Level::error: break;
  }
  log::error(event, fields);
  // An error of the store may end the process right after this call.
  log::flush();
}

/// Authorizer of the configuration; null: no users.
Started<std::unique_ptr<auth::Authorizer>> open_authorizer(const Config& config) {
  if (config.auth.file.empty()) {
    return nullptr;
  }
  auto authorizer = auth::Authorizer::open(config.auth.file);
  if (!authorizer) {
    return std::unexpected(
        Failure{ExitCode::configuration, "auth.file: " + authorizer.error().detail});
  }
  return *std::move(authorizer);
}

RpcOptions rpc_options(const Config& config, std::optional<net::ServerTlsFiles> tls,
                       Metrics& metrics) {
  RpcOptions options{.address = config.listen.grpc,
                     .tls = std::move(tls),
                     .message_bytes_max = config.service.message_bytes_max,
                     .connections_max = config.service.connections_max,
                     .version = std::string(version()),
                     .metrics = &metrics};
  options.limits.watches_per_stream_max = config.service.watches_per_stream_max;
  options.limits.watch_buffer_events_max = config.service.watch_buffer_events_max;
  options.limits.streams_max = config.service.streams_max;
  return options;
}

Started<std::unique_ptr<peers::PeerTransport>> make_transport(const Config& config) {
  if (!config.has_peers()) {
    return nullptr;
  }
  for (const auto& warning : warnings_about(config)) {
    log::warning("configuration_warning", {{"warning", warning}});
  }
  auto transport = peers::prepare_transport(config, report);
  if (!transport) {
    const bool is_port = transport.error() == Errc::unavailable;
    return std::unexpected(Failure{is_port ? ExitCode::unavailable : ExitCode::configuration,
                                   transport.error().detail});
  }
  return *std::move(transport);
}

Started<std::unique_ptr<raft::Node>> open_node(const Config& config) {
  auto node = raft::Node::open(peers::node_options(config, report));
  if (node) {
    return *std::move(node);
  }
  auto why = node.error().detail;
  if (config.has_peers() && config.node.cluster_id == 0 &&
      why.find("belongs to cluster") != std::string::npos) {
    why +=
        "; the id is derived from cluster.members and cluster.name. Use `tenured seed` to turn a "
        "single node into a cluster; if the list was changed on purpose, set node.cluster_id";
  }
  // The same program would fail again, so the service manager must not restart it.
  const bool is_too_new = node.error() == Errc::unsupported;
  return std::unexpected(Failure{is_too_new ? ExitCode::configuration : ExitCode::disk, why});
}

/// Fails the start of a cluster member without its peer configuration: it would wait for the other
/// members forever.
Started<void> check_cluster_config(raft::Node& node, const Config& config) {
  std::promise<std::size_t> count;
  node.peek([&](Result<View> view) { count.set_value(view ? view->members.size() : 0); });
  const auto members = count.get_future().get();
  if (config.has_peers() || members < 2) {
    return {};
  }
  return std::unexpected(Failure{
      ExitCode::configuration,
      "the directory " + config.node.data_dir.string() + " belongs to a member of a cluster of " +
          std::to_string(members) + ": start it with cluster.members or cluster.join"});
}

/// Owns all components of the daemon. They stop in reverse order of their start.
class Daemon {
 public:
  [[nodiscard]] static Started<std::unique_ptr<Daemon>> start(const Config& config);
  /// Transfers leadership, rejects new calls, completes waiting calls and takes a snapshot.
  void stop();
  /// Handles SIGHUP: reloads users and certificates. False: neither is configured and the terminal
  /// was closed, so the daemon stops.
  [[nodiscard]] bool reload();

 private:
  Daemon(std::unique_ptr<raft::Node> node, std::unique_ptr<auth::Authorizer> authorizer)
      : authorizer_(std::move(authorizer)), node_(std::move(node)), notifier_(node_->loop()) {
    if (authorizer_) {
      authorizer_->on_denied([this](std::string_view verb) { metrics_.denied(verb); });
    }
  }
  void connect(std::unique_ptr<peers::PeerTransport> transport);
  /// Registers the certificates with reload_files(). REQUIRES: the ports are open.
  void watch_certificates(const Config& config);
  /// Prepares new client-facing certificates.
  [[nodiscard]] Result<Certificates::Install> prepare_client_tls(const Config& config);
  /// Reloads users and certificates; returns the number of users. An invalid file changes nothing.
  [[nodiscard]] Result<std::size_t> reload_files();
  /// reload_files() for operators; null: neither users nor certificates are configured.
  [[nodiscard]] std::function<Result<std::size_t>()> reload_hook(const Config& config);
  [[nodiscard]] Started<void> prepare_http(const Config& config,
                                           std::optional<net::ServerTlsFiles> tls);
  [[nodiscard]] Started<void> listen(const Config& config);
  /// Transfers leadership before clients are redirected, so that they continue at the new leader at
  /// once.
  void transfer_leadership();

  std::unique_ptr<auth::Authorizer> authorizer_;
  std::unique_ptr<raft::Node> node_;
  ServiceNotifier notifier_;
  peers::PeerTransport* peers_ = nullptr;  ///< Transport, owned by the node; null: single node.
  Metrics metrics_{version()};
  Certificates certificates_{[this](std::string_view kind, std::chrono::sys_seconds when) {
    metrics_.certificate_expires(kind, when);
  }};
  ForceLog force_log_;
  std::optional<http::Server> http_;
  std::optional<RpcServer> rpc_;
};

Started<std::unique_ptr<Daemon>> Daemon::start(const Config& config) {
  auto tls = read_tls_files(config.tls);
  if (!tls) {
    return std::unexpected(Failure{ExitCode::configuration, tls.error().detail});
  }
  auto authorizer = open_authorizer(config);
  if (!authorizer) {
    return std::unexpected(std::move(authorizer).error());
  }
  auto transport = make_transport(config);
  if (!transport) {
    return std::unexpected(std::move(transport).error());
  }
  if (const auto tried = peers::check_client_ports(config); !tried) {
    return std::unexpected(Failure{ExitCode::unavailable, tried.error().detail});
  }
  auto node = open_node(config);
  if (!node) {
    return std::unexpected(std::move(node).error());
  }
  if (*transport) {
    if (auto introduced = (*transport)->load_identity((*node)->folder()); !introduced) {
      return std::unexpected(Failure{ExitCode::disk, introduced.error().detail});
    }
  }
  std::unique_ptr<Daemon> daemon(new Daemon(*std::move(node), *std::move(authorizer)));
  daemon->connect(*std::move(transport));
  auto options = rpc_options(config, *tls, daemon->metrics_);
  options.authorizer = daemon->authorizer_.get();
  options.executor = daemon->node_->client_executor();
  options.reload = daemon->reload_hook(config);
  daemon->rpc_.emplace(*daemon->node_, std::move(options));
  daemon->node_->listen(daemon->metrics_);
  daemon->node_->listen(daemon->force_log_);
  if (auto prepared = daemon->prepare_http(config, *std::move(tls)); !prepared) {
    return std::unexpected(std::move(prepared).error());
  }
  daemon->node_->start();
  auto started = check_cluster_config(*daemon->node_, config);
  if (started) {
    started = daemon->listen(config);
  }
  if (!started) {
    daemon->stop();
    return std::unexpected(std::move(started).error());
  }
  daemon->watch_certificates(config);
  return daemon;
}

Started<void> Daemon::prepare_http(const Config& config, std::optional<net::ServerTlsFiles> tls) {
  if (config.listen.http == "off") {
    return {};
  }
  auto read = http::options_from(config, authorizer_ ? http::Users::some : http::Users::none);
  if (!read) {
    return std::unexpected(Failure{ExitCode::disk, read.error().detail});
  }
  auto& options = *read;
  if (config.has_https()) {
    options.tls = std::move(tls);
  }
  options.authorizer = authorizer_.get();
  options.reload = reload_hook(config);
  options.facts = {
      .version = std::string(version()), .name = config.node.name, .labels = config.node.labels};
  http_.emplace(*node_, metrics_, std::move(options));
  return {};
}

void Daemon::watch_certificates(const Config& config) {
  if (!config.tls.cert.empty()) {
    certificates_.add({.files = files_of(config.tls),
                       .prepare = [this, config] { return prepare_client_tls(config); }});
  }
  if (peers_ == nullptr || config.peer_tls.cert.empty()) {
    return;
  }
  const auto prepare = [this, config]() -> Result<Certificates::Install> {
    auto contexts = peers::read_contexts(config);
    if (!contexts) {
      return std::unexpected(std::move(contexts).error());
    }
    return [this, contexts = *std::move(contexts)]() mutable {
      boost::asio::post(node_->loop(), [peers = peers_, contexts = std::move(contexts)]() mutable {
        peers->renew_tls(std::move(contexts));
      });
    };
  };
  certificates_.add({.files = {{.kind = "peer", .path = config.peer_tls.cert},
                               {.kind = "peer_ca", .path = config.peer_tls.ca}},
                     .prepare = prepare});
}

Result<Certificates::Install> Daemon::prepare_client_tls(const Config& config) {
  const auto files = read_tls_files(config.tls);
  if (!files) {
    return std::unexpected(files.error());
  }
  auto grpc = net::server_context(**files);
  if (!grpc) {
    return std::unexpected(std::move(grpc).error());
  }
  if (!http_ || !config.has_https()) {
    return [this, grpc = *std::move(grpc)]() mutable { rpc_->renew_tls(std::move(grpc)); };
  }
  auto web = http_->context_of(**files);
  if (!web) {
    return std::unexpected(std::move(web).error());
  }
  return [this, grpc = *std::move(grpc), web = *std::move(web)]() mutable {
    rpc_->renew_tls(std::move(grpc));
    http_->renew_tls(std::move(web));
  };
}

Result<std::size_t> Daemon::reload_files() {
  auto users = authorizer_ ? authorizer_->reload() : Result<std::size_t>(0);
  if (!users) {
    metrics_.reload_failed("users");
  }
  if (auto renewed = certificates_.reload(); !renewed) {
    metrics_.reload_failed("certificates");
    return std::unexpected(std::move(renewed).error());
  }
  return users;
}

std::function<Result<std::size_t>()> Daemon::reload_hook(const Config& config) {
  if (!authorizer_ && config.tls.cert.empty() && config.peer_tls.cert.empty()) {
    return nullptr;
  }
  return [this] { return reload_files(); };
}

bool Daemon::reload() {
  if (authorizer_ || !certificates_.is_empty()) {
    (void)reload_files();  // reload_files() logs the result.
    return true;
  }
  if (isatty(STDERR_FILENO) == 1) {
    return false;
  }
  log::info("nothing_to_reload", {{"missing", "auth.file, tls.cert"}});
  return true;
}

void Daemon::connect(std::unique_ptr<peers::PeerTransport> transport) {
  if (!transport) {
    return;
  }
  // Both callbacks run on the store's thread, and the node owns the transport.
  peers_ = transport.get();
  metrics_.ask_peers([peers = peers_] { return peers->counts(); });
  peers_->on_handshake_limit([this] { metrics_.limit_rejected("peer_tls_handshakes"); });
  node_->connect(std::move(transport));
}

Started<void> Daemon::listen(const Config& config) {
  const auto grpc_port = rpc_->start();
  if (!grpc_port) {
    return std::unexpected(Failure{ExitCode::unavailable, grpc_port.error().detail});
  }
  std::uint16_t http_port = 0;
  if (http_) {
    const auto port = http_->start();
    if (!port) {
      return std::unexpected(Failure{ExitCode::unavailable, port.error().detail});
    }
    http_port = *port;
  }
  log::info("ready", {{"version", version()},
                      {"grpc", config.listen.grpc},
                      {"grpc_port", *grpc_port},
                      {"http", config.listen.http},
                      {"http_port", http_port},
                      {"https", config.has_https()},
                      {"users", authorizer_ ? config.auth.file.string() : "off"},
                      {"peers", config.has_peers() ? config.listen.peers : "off"},
                      {"data_dir", config.node.data_dir.string()},
                      {"cluster", std::to_string(node_->identity().cluster)},
                      {"member", std::to_string(node_->identity().member)}});
  notifier_.ready("serving on " + config.listen.grpc);
  return {};
}

void Daemon::transfer_leadership() {
  const auto done = std::make_shared<std::promise<void>>();
  auto is_done = done->get_future();
  node_->transfer_leadership(0, [done](const Result<void>&) { done->set_value(); });
  is_done.wait_for(leadership_transfer_timeout);
}

void Daemon::stop() {
  notifier_.stopping();
  transfer_leadership();
  rpc_->stop();
  if (http_) {
    http_->stop();
  }
  node_->stop();
}

/// Environment of this process. REQUIRES: no thread changes it.
Environment environment_of_process() {
  std::size_t count = 0;
  while (environ[count] != nullptr) {
    ++count;
  }
  return {environ, count};
}

/// Signals that stop or reload the daemon. Blocked in all threads and received by sigwait().
sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  return signals;
}

int run(const Config& config, Environment environment) {
  const auto signals = stop_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  log::start({.level = config.log.level, .format = config.log.format});
  for (const auto& warning : warnings_about(environment, config)) {
    log::warning("configuration_warning", {{"warning", warning}});
  }
  auto daemon = Daemon::start(config);
  if (!daemon) {
    log::error("cannot_start", {{"error", daemon.error().detail}});
    log::stop();
    return static_cast<int>(daemon.error().code);
  }
  int signal = 0;
  do {
    sigwait(&signals, &signal);
  } while (signal == SIGHUP && (*daemon)->reload());
  log::info("stopping", {{"signal", signal}});
  (*daemon)->stop();
  daemon->reset();
  log::info("stopped");
  log::stop();
  return static_cast<int>(ExitCode::stopped);
}

/// Implements `tenured token`. Only the token goes to stdout, so that it can be redirected to a
/// file.
int run_token() {
  const auto token = auth::make_token();
  std::printf("%s\n", token.c_str());
  std::fflush(stdout);
  std::fprintf(stderr,
               "The token was written to stdout and is not stored: give it to its user. Add its "
               "digest to the users file (--auth-file), under [users.NAME]:\n"
               "tokens = [\"%s\"]\n",
               auth::print(auth::digest_of(token)).c_str());
  return static_cast<int>(ExitCode::stopped);
}

}  // namespace
}  // namespace tenure::server

// jemalloc reads this before main(). Memory of a snapshot or of the log before it is returned to
// the system within a second; the default is ten seconds, and longer without activity.
extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming,cppcoreguidelines-avoid-non-const-global-variables)
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true,dirty_decay_ms:1000";
}

int main(int count, char** arguments) {
  using namespace tenure::server;
  const auto environment = environment_of_process();
  const auto read = read_command_line(
      std::span<const char* const>(arguments, static_cast<std::size_t>(count)), environment);
  if (const auto* exit_message = std::get_if<ExitMessage>(&read)) {
    std::fputs(exit_message->text.c_str(),
               exit_message->code == ExitCode::stopped ? stdout : stderr);
    return static_cast<int>(exit_message->code);
  }
  if (const auto* seed = std::get_if<SeedCommand>(&read)) {
    return static_cast<int>(peers::run_seed(*seed));
  }
  if (std::holds_alternative<TokenCommand>(read)) {
    return run_token();
  }
  return run(std::get<Config>(read), environment);
}
