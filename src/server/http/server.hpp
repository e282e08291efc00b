#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <tenure/error.hpp>

#include "net/handshake_limiter.hpp"
#include "net/tls_context.hpp"
#include "server/auth/authorizer.hpp"
#include "server/config/config.hpp"
#include "server/config/units.hpp"
#include "server/http/cluster_handlers.hpp"
#include "server/http/record_json.hpp"
#include "server/http/request_rights.hpp"
#include "server/metrics/metrics.hpp"
#include "server/store/store.hpp"

namespace tenure::server::http {

/// Options of Server. options_from() fills them from the configuration.
struct ServerOptions {
  Address address{.host = "127.0.0.1", .port = 7421};
  std::string hosts{};                       ///< Allowed Host headers; see is_allowed_host().
  std::optional<net::ServerTlsFiles> tls{};  ///< Certificate files; nullopt: plain text.
  ChangePolicy rights{};
  auth::Authorizer* authorizer = nullptr;  ///< Authorizer; outlives this. Null: no users.
  bool open_metrics = false;               ///< /metrics requires no authentication.
  /// Digest of the secret that changes require without users; nullopt: changes are denied, except
  /// with HttpLock::open.
  std::optional<auth::Digest> secret{};
  ServerFacts facts{};
  /// Reloads users and certificates; null: neither is configured.
  ClusterHandlers::Reload reload{};
  /// Maximum number of connections. Further ones get 503, except health checks. One address gets
  /// three quarters.
  std::size_t connections_max = 256;
  /// Limits of TLS handshakes. A connection over the limit is closed, even for a health check:
  /// handshakes would occupy the thread.
  net::HandshakeLimiter::Limits handshakes{};
  std::size_t buffer_events_max = 4096;  ///< Pending events per event stream; see EventFeed.
  std::chrono::milliseconds leader_grace{
      2'000};  ///< Time without a leader before event streams end; see EventFeed.
  std::chrono::milliseconds request_time{5'000};  ///< Time for a request to arrive.
  std::chrono::milliseconds answer_time{5'000};   ///< Time for the store to reply.
  std::chrono::milliseconds idle_time{
      60'000};  ///< Idle time between requests, and write timeout of event streams.
  std::chrono::milliseconds heartbeat{
      15'000};  ///< Interval of keep-alive comments on idle event streams.
};

/// HTTP/1.1 server: health checks, metrics, locks and leases as JSON, event streams, the dashboard,
/// and the lock API. One thread; the store's thread only copies.
///
/// A request can block neither the store nor other requests: this thread never waits, and the
/// store's thread does bounded work per request. start(), stop() and the destructor belong to one
/// thread; renew_tls() may be called from any thread.
class Server {
 public:
  /// REQUIRES: the store has not started; it is stopped before this is destroyed.
  Server(Store& store, Metrics& metrics, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Binds and serves. Returns the port. `unavailable`: the address cannot be bound;
  /// `invalid_argument`: invalid certificate.
  [[nodiscard]] Result<std::uint16_t> start();
  /// TLS context for these files. `invalid_argument`: names the invalid file.
  [[nodiscard]] Result<std::unique_ptr<boost::asio::ssl::context>> context_of(
      const net::ServerTlsFiles& files) const;
  /// Installs a context for new connections; open ones keep theirs. REQUIRES: started, with TLS.
  void renew_tls(std::unique_ptr<boost::asio::ssl::context> context);
  /// Closes all connections and joins the thread. Idempotent.
  void stop();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace tenure::server::http
