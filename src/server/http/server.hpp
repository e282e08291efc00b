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
#include "server/http/pages.hpp"
#include "server/http/rights.hpp"
#include "server/metrics/metrics.hpp"
#include "server/store/store.hpp"

namespace tenure::server::http {

struct ServerOptions {
  Address address{.host = "127.0.0.1", .port = 7421};
  std::string hosts{};                       ///< Names it may be asked for by; see is_known_host().
  std::optional<net::ServerTlsFiles> tls{};  ///< None: plain text.
  RightsPolicy rights{};
  auth::Authorizer* authorizer =
      nullptr;                ///< Who may see what; outlives this. Null: all everything.
  bool open_metrics = false;  ///< /metrics is for everybody.
  /// Digest of the secret that changes require without users; nothing: they are all refused,
  /// except locks with HttpLock::open.
  std::optional<auth::Digest> secret{};
  ServerFacts facts{};
  /// More are answered with 503 and closed, but for health checks. One address gets three quarters.
  std::size_t connections_max = 256;
  /// Limits of TLS handshakes. A connection beyond them is closed, even if it asks for health:
  /// handshakes would take all of the thread's time.
  net::HandshakeLimiter::Limits handshakes{};
  std::size_t buffer_events_max = 4096;           ///< Of one event stream; see EventFeed.
  std::chrono::milliseconds leader_grace{2'000};  ///< Of event streams; see EventFeed.
  std::chrono::milliseconds request_time{5'000};  ///< For a request to arrive.
  std::chrono::milliseconds answer_time{5'000};   ///< For the store to answer.
  std::chrono::milliseconds idle_time{60'000};    ///< Between requests, and for a reader to read.
  std::chrono::milliseconds heartbeat{15'000};    ///< Of event streams on which nothing happens.
};

/// HTTP/1.1 for people and machines that look: health, metrics, locks and leases as JSON, and
/// events as they happen, the dashboard. Who may can take locks and give them back, and take them
/// from others. A thread of its own; the store's thread only copies.
///
///     Metrics metrics(version());
///     http::Server http(store, metrics, {...});   // before the store starts: it listens
///     store.listen(metrics); store.start();
///     const auto port = http.start();
///     ...
///     http.stop(); store.stop();                   // and only then destroy them
class Server {
 public:
  /// REQUIRES: the store has not started; it is stopped before this is destroyed.
  Server(Store& store, Metrics& metrics, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Binds and serves. The port, which the system chose if it was 0. `unavailable` if the address
  /// cannot be had; `invalid_argument` if a certificate cannot be used.
  [[nodiscard]] Result<std::uint16_t> start();
  /// What these certificates would be used as. `invalid_argument`: which file is wrong.
  [[nodiscard]] Result<std::unique_ptr<boost::asio::ssl::context>> context_of(
      const net::ServerTlsFiles& files) const;
  /// New connections use this context; those that are open stay. REQUIRES: it serves, with TLS.
  void renew_tls(std::unique_ptr<boost::asio::ssl::context> context);
  /// Closes all connections and joins the thread. Idempotent.
  void stop();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace tenure::server::http
