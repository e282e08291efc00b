#include "server/http/connection.hpp"

#include <array>
#include <utility>

#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include "server/auth/certificate.hpp"
#include "server/http/responses.hpp"

namespace tenure::server::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using std::chrono::milliseconds;

// Holds the longest lock name by default (1 KiB, 3 KiB in percent encoding) and the headers of a
// browser.
constexpr std::uint32_t header_bytes_max = 8 << 10U;
// The largest valid body is an :acquire with metadata: 4 KiB by default, up to 24 KiB as JSON
// escapes.
constexpr std::uint64_t body_bytes_max = 64 << 10U;
// Maximum size of one write of an event stream: serialising a long replay at once would delay all
// other connections of this thread.
constexpr std::size_t stream_chunk_bytes = 64 << 10U;
// A client that still sends after the error response is disconnected after this amount of input.
constexpr std::size_t drain_bytes_max = 1 << 20U;
/// Size of the read that detects the start of the next request.
constexpr std::size_t listen_bytes = 4 << 10U;
/// First byte of a TLS connection: record type handshake (RFC 8446, 5.1).
constexpr char tls_handshake = 22;
constexpr milliseconds shutdown_timeout{1'000};
/// Deadline for the request of a connection over the limit, which is served only if it is a health
/// check.
constexpr milliseconds overload_request_time{1'000};
/// Kernel send buffer of an event stream. Small, because bytes there are not counted against
/// buffer_events_max.
constexpr int stream_send_buffer = 64 << 10U;

// Headers of every response. Replies are never cached, framed, sniffed or readable by other
// origins. Fields of a Response replace the field of the same name, as dashboard files do.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> security_fields{{
    {"X-Content-Type-Options", "nosniff"},
    {"Cache-Control", "no-store"},
    {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Server", "tenured"},
}};

/// Event filter of a request. A reconnecting browser sends the last received revision in
/// Last-Event-ID.
Result<EventFilter> event_filter(const Request& request) {
  EventFilter filter{.prefix = std::string(request.parameter("prefix").value_or(""))};
  const auto& last = request.last_event_id;
  if (last.empty() && request.parameter("start_revision") == "oldest") {
    filter.from_oldest = true;
    return filter;
  }
  const auto start =
      parse_count(last.empty() ? request.parameter("start_revision").value_or("0") : last);
  if (!start) {
    return std::unexpected(start.error());
  }
  if (!last.empty()) {
    filter.start = core::Revision{*start + 1};
  } else if (*start > 0) {
    filter.start = core::Revision{*start};
  }
  return filter;
}

std::string copy(beast::string_view text) {
  return {text.data(), text.size()};
}

/// Client attributes that authorization depends on.
ClientInfo client_info_of(const beast::http::request<beast::http::string_body>& message,
                          ClientStream& wire) {
  boost::system::error_code error;
  const auto address = wire.socket().remote_endpoint(error).address();
  const auto has = [&](const char* field) { return message.find(field) != message.end(); };
  return {
      .address = address.to_string(),
      .is_local = !error && address.is_loopback(),
      .is_forwarded = has("Forwarded") || has("X-Forwarded-For") || has("X-Real-IP") || has("Via"),
      .host = copy(message[beast::http::field::host]),
      .origin = copy(message[beast::http::field::origin]),
      .fetch_site = copy(message["Sec-Fetch-Site"]),
      .has_intent_header = has("Tenure-Intent"),
      .wants_html =
          copy(message[beast::http::field::accept]).find("text/html") != std::string::npos,
      .authorization = copy(message[beast::http::field::authorization]),
      .session =
          std::string(cookie_in(copy(message[beast::http::field::cookie]), LoginSessions::cookie)),
      .is_encrypted = wire.tls() != nullptr};
}

Response parse_error_response(const boost::system::error_code& error) {
  if (error == beast::http::error::header_limit) {
    return problem(431, "Request Header Fields Too Large", "the header is larger than 8 KiB");
  }
  if (error == beast::http::error::body_limit) {
    return problem(413, "Content Too Large", "the body is larger than 64 KiB");
  }
  return problem(400, "Bad Request", error.message());
}

/// Distinguishes a malformed request, which deserves a response, from a failed connection.
bool is_http_error(const boost::system::error_code& error) {
  return error.category() ==
         beast::http::make_error_code(beast::http::error::bad_method).category();
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, ConnectionContext& context,
                       std::optional<net::Shares::Share> place)
    : stream_(std::move(socket)),
      context_(context),
      connection_slot_(std::move(place)),
      deadline_(stream_.get_executor()),
      buffer_(header_bytes_max + body_bytes_max),
      heartbeat_(stream_.get_executor()) {}

void Connection::start() {
  context_.tls == nullptr ? open() : detect_tls();
}

void Connection::open() {
  read();
  if (!connection_slot_) {
    arm_deadline(overload_request_time, OnTimeout::reject_overload);
  }
}

void Connection::reject_overload() {
  is_overload_rejected_ = true;
  auto response = problem(503, "Service Unavailable", "too many connections");
  response.fields.emplace_back("Retry-After", "1");
  respond_and_close(std::move(response));
}

void Connection::detect_tls() {
  arm_deadline(context_.options.request_time);
  // The first byte distinguishes a TLS handshake from plain HTTP sent to the HTTPS port.
  // message_peek leaves the byte in the socket for the handshake.
  stream_.socket().async_receive(
      asio::buffer(&ignored_, 1), asio::socket_base::message_peek,
      [self = shared_from_this()](const Error& error, std::size_t) {
        if (error) {
          self->close();
        } else if (self->ignored_ != tls_handshake) {
          self->respond_and_close(
              problem(400, "Bad Request", "this port requires TLS; use https://"));
        } else {
          self->begin_handshake();
        }
      });
}

void Connection::begin_handshake() {
  Error error;
  const auto peer = stream_.socket().remote_endpoint(error);
  if (error) {
    close();
    return;
  }
  handshake_slot_ = context_.handshakes.admit(net::network_of(peer.address()),
                                              net::HandshakeLimiter::Clock::now());
  if (!handshake_slot_) {
    context_.metrics.limit_rejected("http_tls_handshakes");
    close();
    return;
  }
  stream_.handshake(*context_.tls, [self = shared_from_this()](const Error& failed) {
    self->on_handshake(failed);
  });
}

void Connection::on_handshake(const Error& error) {
  handshake_slot_.reset();
  if (error) {
    close();
    return;
  }
  certificate_ = auth::certificate_names(stream_.tls());
  open();
}

void Connection::close() {
  notify_disconnect();
  Error ignored;
  stream_.socket().close(ignored);
  deadline_.cancel();
  heartbeat_.cancel();
  events_.reset();
  // The shares are returned here and not in the destructor: a pending handler may keep the object
  // alive after the socket is closed.
  connection_slot_.reset();
  stream_slot_.release();
  handshake_slot_.reset();
}

void Connection::wait_for_next() {
  if (buffer_.size() > 0) {
    read();
    return;
  }
  arm_deadline(context_.options.idle_time);
  awaits_request_ = true;
  listen();
}

void Connection::listen() {
  // The read of watch_for_disconnect() may still be pending when wait_for_next() is called. It then
  // serves as the read for the next request, because Asio allows one read at a time.
  if (std::exchange(is_listening_, true)) {
    return;
  }
  stream_.async_read_some(buffer_.prepare(listen_bytes),
                          [self = shared_from_this()](const Error& error, std::size_t bytes) {
                            self->is_listening_ = false;
                            if (error) {
                              self->close();
                              return;
                            }
                            self->buffer_.commit(bytes);
                            if (std::exchange(self->awaits_request_, false)) {
                              self->read();
                            }
                          });
}

void Connection::read() {
  arm_deadline(context_.options.request_time);
  parser_.emplace();
  parser_->header_limit(header_bytes_max);
  parser_->body_limit(body_bytes_max);
  beast::http::async_read(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](const Error& error, std::size_t) { self->on_read(error); });
}

void Connection::on_read(const Error& error) {
  is_listening_ = false;
  if (is_overload_rejected_) {
    close();
  } else if (!error) {
    answer();
  } else if (is_http_error(error) && error != beast::http::error::end_of_stream &&
             error != beast::http::error::partial_message) {
    respond_and_close(parse_error_response(error));
  } else {
    close();
  }
}

void Connection::answer() {
  const auto& message = parser_->get();
  const auto method = message.method();
  is_head_ = method == beast::http::verb::head;
  keeps_alive_ = message.keep_alive() && connection_slot_;
  const auto host = message[beast::http::field::host];
  if (!is_allowed_host({host.data(), host.size()}, context_.options.hosts)) {
    respond(problem(421, "Misdirected Request",
                    "the Host header is not allowed; see listen.http_hosts"));
    return;
  }
  auto request = parse_target({message.target().data(), message.target().size()});
  if (!request) {
    respond(problem(400, "Bad Request", request.error().detail));
    return;
  }
  if (!connection_slot_ && request->path != "/healthz" && request->path != "/readyz") {
    reject_overload();
    return;
  }
  const bool is_post = method == beast::http::verb::post;
  const auto allowed = Router::allowed(request->path);
  if (is_post ? !allowed.ends_with("POST") : !is_head_ && method != beast::http::verb::get) {
    respond(not_allowed(allowed));
    return;
  }
  request->method = is_post ? Method::post : Method::get;
  request->body = message.body();
  request->client = client_info_of(message, stream_);
  request->client.certificate = certificate_;
  const auto last_event_id = message["Last-Event-ID"];
  request->last_event_id.assign(last_event_id.data(), last_event_id.size());
  if (request->path == "/v1/watch" || request->path == "/v1/events") {
    stream_events(*request);
    return;
  }
  const auto disconnect_hook = request->disconnect_hook = std::make_shared<DisconnectHook>();
  disconnect_hook_ = disconnect_hook;
  arm_deadline(context_.options.answer_time, OnTimeout::respond_unavailable);
  // The store may reply after the deadline has already sent a 503, even while the connection serves
  // its next request. The number of the exchange identifies such a late reply.
  const auto exchange = exchange_;
  context_.router.serve(*std::move(request),
                        [self = weak_from_this(), exchange](Response response) {
                          const auto alive = self.lock();
                          if (alive && alive->exchange_ == exchange) {
                            alive->respond(std::move(response));
                          }
                        });
  // The router may have replied already. Otherwise, and only if the handler installed a hook, the
  // request waits for a lock: it gets more time, and its client is watched.
  if (exchange == exchange_ && disconnect_hook->on_disconnect) {
    arm_deadline(context_.options.answer_time + disconnect_hook->wait_max,
                 OnTimeout::respond_unavailable);
    watch_for_disconnect();
  }
}

void Connection::watch_for_disconnect() {
  if (buffer_.size() > 0) {
    // A pipelined request is buffered, so the client is still connected. Another read would also
    // let the client grow the buffer while it waits.
    return;
  }
  listen();
}

void Connection::notify_disconnect() {
  if (const auto disconnect_hook = std::exchange(disconnect_hook_, {});
      disconnect_hook && disconnect_hook->on_disconnect) {
    disconnect_hook->on_disconnect();
  }
}

void Connection::respond(Response response) {
  ++exchange_;
  // After the response a disconnect concerns no request any more.
  disconnect_hook_.reset();
  arm_deadline(context_.options.idle_time);
  auto message = std::make_shared<beast::http::response<beast::http::string_body>>();
  message->result(response.status);
  message->version(11);
  for (const auto& [name, value] : security_fields) {
    message->set(beast::string_view(name.data(), name.size()),
                 beast::string_view(value.data(), value.size()));
  }
  for (const auto& [name, value] : response.fields) {
    message->set(name, value);
  }
  message->set(beast::http::field::content_type, response.content_type);
  message->keep_alive(keeps_alive_);
  message->body() = std::move(response.body);
  message->prepare_payload();
  if (is_head_) {
    // Content-Length keeps the length of the GET response.
    message->body().clear();
  }
  beast::http::async_write(stream_, *message,
                           [self = shared_from_this(), message](const Error& error, std::size_t) {
                             if (error) {
                               self->close();
                             } else if (self->keeps_alive_) {
                               self->wait_for_next();
                             } else {
                               self->shut_down();
                             }
                           });
}

void Connection::respond_and_close(Response response) {
  keeps_alive_ = false;
  respond(std::move(response));
}

void Connection::shut_down() {
  arm_deadline(shutdown_timeout);
  if (is_listening_) {
    // TLS allows no shutdown during a read, so close_notify is omitted.
    // The pending read ends when the client closes the connection, or at the deadline.
    Error ignored;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    return;
  }
  stream_.shutdown([self = shared_from_this()](const Error&) {
    Error ignored;
    self->stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    // The sending direction is closed first, so the client sees the end of the response at once.
    // Closing with unread bytes resets the connection, and the response could be lost.
    self->drain();
  });
}

void Connection::drain() {
  buffer_.clear();
  stream_.socket().async_read_some(
      buffer_.prepare(header_bytes_max),
      [self = shared_from_this()](const Error& error, std::size_t bytes) {
        self->drained_ += bytes;
        if (error || self->drained_ > drain_bytes_max) {
          self->close();
        } else {
          self->drain();
        }
      });
}

void Connection::stream_events(Request& request) {
  if (auto refused = context_.router.admit(request)) {
    respond(*std::move(refused));
    return;
  }
  auto filter = event_filter(request);
  if (!filter) {
    respond(problem(400, "Bad Request", filter.error().detail));
    return;
  }
  if (is_head_) {
    respond({.content_type = "text/event-stream"});
    return;
  }
  // Fails early if no name under the prefix is readable. Single events are filtered again later,
  // because a user may read only some of the names.
  if (!request.access.may_any(auth::Verb::read, filter->prefix)) {
    respond(context_.router.deny(request, auth::Verb::read, filter->prefix));
    return;
  }
  // A stream occupies its connection permanently, so one user must not take all of them.
  if (const auto* user = request.access.user(); user != nullptr) {
    auto share = context_.stream_shares.take(user->name);
    if (!share) {
      respond(problem(503, "Service Unavailable", "too many event streams for this user"));
      return;
    }
    stream_slot_ = *std::move(share);
  }
  filter->may_read = context_.router.read_filter_of(request);
  ++exchange_;
  Error ignored;
  stream_.socket().set_option(asio::socket_base::send_buffer_size(stream_send_buffer), ignored);
  // The stream ends with the connection, so chunked encoding is unnecessary.
  std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n";
  for (const auto& [name, value] : security_fields) {
    head += std::string(name) + ": " + std::string(value) + "\r\n";
  }
  // weak: the subscription belongs to this connection, and a shared_ptr would be a cycle.
  events_ = context_.feed.subscribe(*filter, [self = weak_from_this()] {
    if (const auto alive = self.lock()) {
      alive->pump();
    }
  });
  write_stream(head + "\r\n");
  watch_for_close();
  send_heartbeats();
}

void Connection::write_stream(std::string text) {
  is_writing_ = true;
  outgoing_ = std::move(text);
  arm_deadline(context_.options.idle_time);
  asio::async_write(stream_, asio::buffer(outgoing_),
                    [self = shared_from_this()](const Error& error, std::size_t) {
                      self->is_writing_ = false;
                      if (error) {
                        self->close();
                      } else {
                        self->disarm_deadline();
                        self->pump();
                      }
                    });
}

void Connection::pump() {
  if (is_writing_ || !events_) {
    return;
  }
  auto text = events_->take(stream_chunk_bytes);
  if (!text.empty()) {
    write_stream(std::move(text));
  } else if (events_->is_finished()) {
    close();
  }
}

void Connection::send_heartbeats() {
  heartbeat_.expires_after(context_.options.heartbeat);
  heartbeat_.async_wait([self = weak_from_this()](const Error& error) {
    const auto alive = self.lock();
    if (error || !alive || !alive->events_) {
      return;
    }
    // A write in progress shows activity already; its own deadline detects a stalled client.
    if (!alive->is_writing_) {
      alive->write_stream(": alive\n\n");
    }
    alive->send_heartbeats();
  });
}

void Connection::watch_for_close() {
  stream_.async_read_some(asio::buffer(&ignored_, 1),
                          [self = shared_from_this()](const Error& error, std::size_t) {
                            if (error) {
                              self->close();
                            } else {
                              self->watch_for_close();
                            }
                          });
}

void Connection::arm_deadline(milliseconds time, OnTimeout action) {
  deadline_.expires_after(time);
  // The timer also owns the connection while the store works on the request.
  deadline_.async_wait([self = shared_from_this(), action](const Error& error) {
    // A new deadline may have been set after the timer had expired. Setting a new expiry cannot
    // cancel a handler that is already queued in the loop.
    if (!error && self->deadline_.expiry() <= std::chrono::steady_clock::now()) {
      self->on_timeout(action);
    }
  });
}

void Connection::disarm_deadline() {
  deadline_.expires_at(std::chrono::steady_clock::time_point::max());
}

void Connection::on_timeout(OnTimeout action) {
  if (action == OnTimeout::close) {
    close();
    return;
  }
  if (action == OnTimeout::reject_overload) {
    // The pending read continues. It counts as listening, so shut_down() does not start a second
    // read.
    is_listening_ = true;
    reject_overload();
    return;
  }
  notify_disconnect();
  auto response = problem(503, "Service Unavailable", "the store did not reply in time");
  response.fields.emplace_back("Retry-After", "1");
  respond(std::move(response));
}

}  // namespace tenure::server::http
