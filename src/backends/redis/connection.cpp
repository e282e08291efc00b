#include "backends/redis/connection.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "backends/redis/errors.hpp"
#include "backends/redis/slots.hpp"
#include "net/connection_error.hpp"

namespace tenure::backends::redis {
namespace {

using boost::system::error_code;

/// Delays between failed attempts.
constexpr net::Backoff::Options reconnect{.min = std::chrono::milliseconds(10),
                                          .max = std::chrono::milliseconds(1000)};
/// Limit for silence_max_ if another server can take over (Sentinel, cluster), so that a dead
/// primary is left long before a generous request timeout.
constexpr std::chrono::milliseconds silence_where_others_are{2000};
/// Oldest supported version: the scripts and the handshake need ACLs and HELLO (6.0) and commands
/// of 6.2. `SET … NX GET` of 7.0 is not used.
constexpr std::pair<int, int> version_min{6, 2};

/// Value of a field in an array of alternating names and values; null if there is none.
const Reply* field_of(const Reply& reply, std::string_view name) {
  for (std::size_t at = 0; at + 1 < reply.elements.size(); at += 2) {
    if (reply.elements[at]->text == name) {
      return reply.elements[at + 1];
    }
  }
  return nullptr;
}

/// Field `addr` of a reply to CLIENT INFO, such as "id=3 addr=127.0.0.1:5000 …".
std::string_view address_in(std::string_view info) {
  constexpr std::string_view field = " addr=";
  const auto at = info.find(field);
  if (at == std::string_view::npos) {
    return {};
  }
  const auto rest = info.substr(at + field.size());
  return rest.substr(0, rest.find(' '));
}

/// Major and minor version; zero where the text is invalid.
std::pair<int, int> version_from(std::string_view text) {
  std::pair<int, int> version{0, 0};
  const auto* const begin = text.data();
  const auto* const end = begin + text.size();
  const auto [dot, error] = std::from_chars(begin, end, version.first);
  if (error == std::errc{} && dot != end) {
    std::from_chars(dot + 1, end, version.second);
  }
  return version;
}

}  // namespace

Connection::Connection(boost::asio::io_context& loop, ServerOptions server,
                       std::vector<HandshakeStep> extra_steps, Callbacks callbacks)
    : loop_(loop),
      server_(std::move(server)),
      silence_max_(server_.resolve || server_.role == ServerRole::cluster_primary
                       ? std::min(server_.timeout, silence_where_others_are)
                       : server_.timeout),
      endpoint_(server_.endpoint),
      where_(server_.resolve ? "the primary" : name_of(endpoint_)),
      extra_steps_(std::move(extra_steps)),
      callbacks_(std::move(callbacks)),
      backoff_(reconnect),
      backoff_timer_(loop),
      timeout_timer_(loop) {}

Error Connection::unavailable(const std::string& why) const {
  return {.code = Errc::unavailable, .detail = where_ + ": " + why};
}

/// A connection that fails during the handshake may belong to another protocol. Whether the read or
/// the write fails first depends on timing, so both report the same.
Error Connection::socket_error(const error_code& error) const {
  return unavailable(is_ready_ ? "connection lost: " + error.message()
                               : error.message() +
                                     "; check that the server is Redis and whether it uses TLS");
}

// Connecting.

void Connection::connect() {
  if (is_stopped_ || is_ready_ || std::exchange(is_connecting_, true)) {
    return;
  }
  if (!has_failed_) {
    connect_now();
    return;
  }
  is_backing_off_ = true;
  backoff_timer_.expires_after(backoff_.next());
  backoff_timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && std::exchange(self->is_backing_off_, false) && !self->is_stopped_) {
      self->connect_now();
    }
  });
}

/// Resolves and connects. The timer covers the whole attempt, up to the end of the handshake.
void Connection::connect_now() {
  const auto attempt = ++attempt_;
  deadline_ = net::Connector::Clock::now() + server_.timeout;
  timeout_timer_.expires_at(deadline_);
  timeout_timer_.async_wait([self = shared_from_this(), attempt](const error_code& error) {
    if (!error && attempt == self->attempt_ && !self->is_ready_) {
      const auto* const why = !self->transport_ ? "no connection in time; check host and port"
                              : self->server_.tls
                                  ? "no reply in time; check that the server uses TLS on this port"
                                  : "no reply in time; check that the server is Redis";
      self->failed(self->unavailable(why));
    }
  });
  if (!server_.resolve) {
    open_socket();
    return;
  }
  is_resolving_ = true;
  server_.resolve([self = shared_from_this(), attempt](const Result<Endpoint>& answer) {
    if (!self->is_stopped_ && attempt == self->attempt_) {
      self->resolved(answer);
    }
  });
}

void Connection::resolved(const Result<Endpoint>& endpoint) {
  is_resolving_ = false;
  if (!endpoint) {
    failed(endpoint.error());
    return;
  }
  endpoint_ = *endpoint;
  where_ = name_of(endpoint_);
  open_socket();
}

void Connection::open_socket() {
  connector_ = std::make_shared<net::Connector>(
      loop_,
      net::Connector::Target{.host = endpoint_.host,
                             .port = endpoint_.port,
                             .service = "a redis-server",
                             .deadline = deadline_},
      [self = shared_from_this()](Result<net::OutgoingSocket> socket) {
        self->connector_.reset();
        socket ? self->socket_opened(*socket)
               : self->failed(self->unavailable(socket.error().detail));
      });
  connector_->start();
}

/// The TCP connection is established; TLS and the Redis handshake follow.
void Connection::socket_opened(net::OutgoingSocket& socket) {
  error_code ignored;
  socket.socket().set_option(boost::asio::socket_base::keep_alive(true), ignored);
  own_address_ = net::to_string(socket.socket().local_endpoint(ignored));
  transport_ = socket.into_transport(endpoint_.host, server_.tls.get());
  // The slot table of a large cluster has more elements than any other reply.
  reader_ = std::make_unique<ReplyReader>(
      server_.role == ServerRole::cluster_member ? table_elements_max : ReplyReader::elements_max);
  transport_->handshake([self = shared_from_this(), kept = transport_](const error_code& error) {
    if (kept != self->transport_) {
      return;
    }
    if (!error) {
      self->start_handshake();
      return;
    }
    const auto why = net::connection_error(error);
    self->failed({.code = why.code, .detail = self->where_ + ": " + why.detail});
  });
}

/// Sends all handshake commands at once; check_handshake() receives their replies.
void Connection::start_handshake() {
  handshake_ = handshake_steps();
  handshake_.insert(handshake_.end(), extra_steps_.begin(), extra_steps_.end());
  handshake_replies_ = 0;
  for (const auto& step : handshake_) {
    unsent_ += step.command;
  }
  write();
  read();
}

/// HELLO with AUTH, CLIENT KILL of an abandoned connection, CLIENT INFO and SELECT.
std::vector<HandshakeStep> Connection::handshake_steps() {
  std::vector<HandshakeStep> steps;
  const std::string_view user = server_.user.empty() ? "default" : std::string_view(server_.user);
  const bool has_name = !server_.user.empty() || !server_.password.empty();
  steps.push_back({.command = has_name ? encode_command({"HELLO", "2", "AUTH", user,
                                                         server_.password, "SETNAME", "tenure"})
                                       : encode_command({"HELLO", "2", "SETNAME", "tenure"}),
                   .check = [this](const Reply& reply) { return check_hello(reply); }});
  // Commands sent on the abandoned connection may still be on the way, and are sent again on this
  // one. They must not be executed after that. Without the right to CLIENT KILL this is skipped.
  // The address is compared as well, because a restarted server assigns the same ids to other
  // clients.
  if (abandoned_ && abandoned_->endpoint == endpoint_) {
    steps.push_back({.command = encode_command(
                         {"CLIENT", "KILL", "ID", abandoned_->id, "ADDR", abandoned_->address}),
                     .check = [](const Reply& /*how many*/) { return Result<void>(); }});
  }
  steps.push_back(
      {.command = encode_command({"CLIENT", "INFO"}), .check = [this](const Reply& reply) {
         // Without the right to CLIENT INFO the local address is used, which a proxy on the way
         // changes.
         if (const auto address = address_in(reply.text); !address.empty()) {
           own_address_ = address;
         }
         return Result<void>();
       }});
  if (server_.database != 0) {
    const auto number = std::to_string(server_.database);
    steps.push_back({.command = encode_command({"SELECT", number}), .check = {}});
  }
  return steps;
}

/// Checks version, mode and role in the reply to HELLO.
Result<void> Connection::check_hello(const Reply& reply) {
  const auto* const id = field_of(reply, "id");
  id_ = id == nullptr ? "" : std::to_string(id->number);
  const auto* const version = field_of(reply, "version");
  if (version == nullptr || version_from(version->text) < version_min) {
    return fail(Errc::unsupported, where_ + ": unsupported server version: " +
                                       (version == nullptr ? "unknown" : version->text) +
                                       "; Redis 6.2 or later is required");
  }
  const auto* const mode = field_of(reply, "mode");
  if (auto checked = check_mode(mode == nullptr ? "standalone" : mode->text); !checked) {
    return checked;
  }
  const auto* const role = field_of(reply, "role");
  if (role != nullptr && role->text != "master" && server_.role != ServerRole::cluster_member) {
    const bool may_change = server_.resolve || server_.role == ServerRole::cluster_primary;
    return fail(
        Errc::unavailable,
        where_ + (may_change
                      ? ": the server is a replica at the moment"
                      : ": the server is a read-only replica; connect to its primary, or use "
                        "redis+sentinel://"));
  }
  return {};
}

/// The URL's scheme must match the kind of server.
Result<void> Connection::check_mode(std::string_view mode) const {
  const bool is_of_cluster = mode == "cluster";
  const bool is_sentinel = mode == "sentinel";
  switch (server_.role) {
    case ServerRole::sentinel:
      return is_sentinel
                 ? Result<void>()
                 : fail(Errc::unsupported, where_ + ": not a Sentinel; use redis:// for a server");
    case ServerRole::cluster_primary:
    case ServerRole::cluster_member:
      return is_of_cluster
                 ? Result<void>()
                 : fail(Errc::unsupported,
                        where_ + ": not a cluster node; use redis:// for a standalone server");
    case ServerRole::primary: break;
  }
  if (is_sentinel) {
    return fail(Errc::unsupported, where_ + ": the server is a Sentinel; use redis+sentinel://");
  }
  if (is_of_cluster) {
    return fail(Errc::unsupported, where_ + ": the server is a cluster node; use redis+cluster://");
  }
  return {};
}

/// Checks the reply to one handshake command; the last one makes the connection ready.
void Connection::check_handshake(const Reply& reply) {
  const auto& step = handshake_[handshake_replies_++];
  // An error reply to HELLO ends the handshake: a server before 6.0 does not know the command. The
  // check of a later step decides itself whether an error matters.
  if (reply.kind == Reply::Kind::error && !(step.check && handshake_replies_ > 1)) {
    is_transient(reply.text) ? failed(unavailable(reply.text))
                             : failed(error_from(reply.text, where_));
    return;
  }
  if (step.check) {
    if (auto checked = step.check(reply); !checked) {
      failed(checked.error());
      return;
    }
  }
  if (handshake_replies_ == handshake_.size()) {
    is_ready_ = true;
    is_connecting_ = false;
    is_silence_checked_ = false;
    abandoned_.reset();
    timeout_timer_.cancel();
    callbacks_.ready();
  }
}

// Connected.

void Connection::read() {
  transport_->read([self = shared_from_this(), kept = transport_](
                       const error_code& error, std::span<const std::uint8_t> bytes) {
    if (kept != self->transport_) {
      return;
    }
    if (error) {
      self->failed(self->socket_error(error));
      return;
    }
    self->received(bytes);
    if (kept == self->transport_) {
      self->read();
    }
  });
}

/// Delivers all complete replies, then writes what they have caused to be sent.
void Connection::received(std::span<const std::uint8_t> bytes) {
  has_received_ = true;
  const auto kept = transport_;
  const auto reader = reader_.get();
  reader->feed(bytes);
  is_dispatching_ = true;
  while (const auto* reply = reader->next()) {
    handle(*reply);
    if (kept != transport_) {
      return;
    }
  }
  is_dispatching_ = false;
  if (reader->protocol_error()) {
    failed(unavailable("invalid reply, not the Redis protocol: " + *reader->protocol_error()));
    return;
  }
  flush();
}

/// Delivers one reply.
void Connection::handle(const Reply& reply) {
  if (!is_ready_) {
    check_handshake(reply);
    return;
  }
  if (reply.kind != Reply::Kind::error) {
    // Not earlier: if the first command makes the server close the connection each time, the
    // backoff must keep growing.
    has_failed_ = false;
    backoff_.reset();
  }
  const bool is_message = reply.kind == Reply::Kind::array && reply.text_at(0) == "message";
  if (!is_message && unanswered_ > 0) {
    --unanswered_;
  }
  callbacks_.replied(reply);
}

void Connection::send(std::string_view command) {
  unsent_.append(command);
  ++unanswered_;
}

void Connection::flush() {
  if (is_ready_ && !is_dispatching_ && !unsent_.empty()) {
    write();
    check_silence();
  }
}

void Connection::write() {
  if (std::exchange(is_writing_, true)) {
    return;
  }
  writing_.swap(unsent_);
  unsent_.clear();
  transport_->write(writing_, [self = shared_from_this(), kept = transport_](const error_code& e) {
    if (kept != self->transport_) {
      return;
    }
    self->is_writing_ = false;
    if (e) {
      self->failed(self->socket_error(e));
    } else if (!self->unsent_.empty()) {
      self->write();
    }
  });
}

/// While a reply is due, some bytes must arrive within silence_max_. Otherwise the connection is
/// considered dead, whatever TCP reports.
void Connection::check_silence() {
  if (unanswered_ == 0 || std::exchange(is_silence_checked_, true)) {
    return;
  }
  has_received_ = false;
  timeout_timer_.expires_after(silence_max_);
  timeout_timer_.async_wait(
      [self = shared_from_this(), attempt = attempt_](const error_code& error) {
        if (error || attempt != self->attempt_ || !self->is_ready_) {
          return;
        }
        self->is_silence_checked_ = false;
        if (self->unanswered_ > 0 && !self->has_received_) {
          self->drop(self->unavailable("no reply in time on an open connection"));
          return;
        }
        self->check_silence();
      });
}

// Disconnecting.

void Connection::close() {
  ++attempt_;
  is_ready_ = false;
  is_connecting_ = false;
  is_backing_off_ = false;
  is_resolving_ = false;
  is_writing_ = false;
  is_dispatching_ = false;
  is_silence_checked_ = false;
  unanswered_ = 0;
  unsent_.clear();
  timeout_timer_.cancel();
  backoff_timer_.cancel();
  if (const auto connector = std::exchange(connector_, nullptr)) {
    connector->cancel();
  }
  if (const auto transport = std::exchange(transport_, nullptr)) {
    transport->close();
  }
}

/// Closes the connection and schedules the next attempt.
void Connection::failed(const Error& why) {
  const auto self = shared_from_this();
  close();
  has_failed_ = true;
  if (!is_stopped_) {
    callbacks_.failed(why);
    connect();
  }
}

void Connection::drop(const Error& why) {
  // Only here, and not in failed(): if the server has closed the connection, none of the commands
  // are on the way any more, and CLIENT KILL is not needed.
  if (is_ready_ && unanswered_ > 0 && !id_.empty()) {
    abandoned_ = {.endpoint = endpoint_, .id = id_, .address = own_address_};
  }
  failed(why);
}

void Connection::move_to(const Endpoint& endpoint) {
  if (is_stopped_ || is_resolving_) {
    return;
  }
  if (is_backing_off_) {
    is_backing_off_ = false;
    has_failed_ = false;
    backoff_.reset();
    backoff_timer_.cancel();
    connect_now();
  } else if (endpoint != endpoint_ && (is_ready_ || is_connecting_)) {
    has_failed_ = false;
    backoff_.reset();
    failed(unavailable("the primary moved to " + name_of(endpoint)));
  }
}

void Connection::stop() {
  is_stopped_ = true;
  close();
}

}  // namespace tenure::backends::redis
