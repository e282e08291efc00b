#include "backends/redis/line.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "backends/redis/faults.hpp"
#include "backends/redis/slots.hpp"
#include "net/connection_error.hpp"

namespace tenure::backends::redis {
namespace {

using boost::system::error_code;

/// Delays between attempts to connect.
constexpr net::Backoff::Options reconnect{.min = std::chrono::milliseconds(10),
                                          .max = std::chrono::milliseconds(1000)};
/// How long a server may be silent while an answer is due, where another may have taken its place.
constexpr std::chrono::milliseconds silence_where_others_are{2000};
/// The first with all that the scripts use: SET … NX GET is not, ACLs and HELLO are.
constexpr std::pair<int, int> version_min{6, 2};

/// The value of a field in an array of fields and values.
const Reply* field_of(const Reply& reply, std::string_view name) {
  for (std::size_t at = 0; at + 1 < reply.elements.size(); at += 2) {
    if (reply.elements[at]->text == name) {
      return reply.elements[at + 1];
    }
  }
  return nullptr;
}

/// Address of the connection in the answer to CLIENT INFO: "id=3 addr=127.0.0.1:5000 …".
std::string_view address_in(std::string_view info) {
  constexpr std::string_view field = " addr=";
  const auto at = info.find(field);
  if (at == std::string_view::npos) {
    return {};
  }
  const auto rest = info.substr(at + field.size());
  return rest.substr(0, rest.find(' '));
}

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

Line::Line(boost::asio::io_context& loop, Address address, std::vector<Step> greeting, Calls calls)
    : loop_(loop),
      address_(std::move(address)),
      silence_max_(address_.whereabouts || address_.part == Part::cluster_primary
                       ? std::min(address_.timeout, silence_where_others_are)
                       : address_.timeout),
      endpoint_(address_.endpoint),
      where_(address_.whereabouts ? "the primary" : name_of(endpoint_)),
      extra_(std::move(greeting)),
      calls_(std::move(calls)),
      backoff_(reconnect),
      pause_(loop),
      patience_(loop) {}

Error Line::unavailable(const std::string& why) const {
  return {.code = Errc::unavailable, .detail = where_ + ": " + why};
}

/// Whether it was to be read or written first is by chance.
Error Line::broken(const error_code& error) const {
  return unavailable(is_ready_ ? "the connection is lost: " + error.message()
                               : error.message() + "; is it Redis, and does it speak TLS?");
}

// Being made.

void Line::dial() {
  if (is_stopped_ || is_ready_ || std::exchange(is_dialing_, true)) {
    return;
  }
  if (!has_failed_) {
    dial_now();
    return;
  }
  is_pausing_ = true;
  pause_.expires_after(backoff_.next());
  pause_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && std::exchange(self->is_pausing_, false) && !self->is_stopped_) {
      self->dial_now();
    }
  });
}

void Line::dial_now() {
  const auto attempt = ++attempt_;
  deadline_ = net::Connector::Clock::now() + address_.timeout;
  patience_.expires_at(deadline_);
  patience_.async_wait([self = shared_from_this(), attempt](const error_code& error) {
    if (!error && attempt == self->attempt_ && !self->is_ready_) {
      const auto* const why = !self->transport_    ? "no answer; is the address right?"
                              : self->address_.tls ? "it does not answer; does it speak TLS there?"
                                                   : "it does not answer; is it Redis?";
      self->failed(self->unavailable(why));
    }
  });
  if (!address_.whereabouts) {
    connect();
    return;
  }
  is_finding_ = true;
  address_.whereabouts->find([self = shared_from_this(), attempt](const Result<Endpoint>& answer) {
    if (!self->is_stopped_ && attempt == self->attempt_) {
      self->found(answer);
    }
  });
}

void Line::found(const Result<Endpoint>& endpoint) {
  is_finding_ = false;
  if (!endpoint) {
    failed(endpoint.error());
    return;
  }
  endpoint_ = *endpoint;
  where_ = name_of(endpoint_);
  connect();
}

void Line::connect() {
  connector_ = std::make_shared<net::Connector>(
      loop_,
      net::Connector::Target{.host = endpoint_.host,
                             .port = endpoint_.port,
                             .service = "a redis-server",
                             .deadline = deadline_},
      [self = shared_from_this()](Result<net::OutgoingSocket> socket) {
        self->connector_.reset();
        socket ? self->connected(*socket) : self->failed(self->unavailable(socket.error().detail));
      });
  connector_->start();
}

void Line::connected(net::OutgoingSocket& socket) {
  error_code ignored;
  socket.socket().set_option(boost::asio::socket_base::keep_alive(true), ignored);
  own_address_ = net::to_string(socket.socket().local_endpoint(ignored));
  transport_ = socket.into_transport(endpoint_.host, address_.tls.get());
  // Who is asked about the cluster may have much to tell.
  reader_ = std::make_unique<ReplyReader>(
      address_.part == Part::cluster_member ? table_elements_max : ReplyReader::elements_max);
  transport_->handshake([self = shared_from_this(), kept = transport_](const error_code& error) {
    if (kept != self->transport_) {
      return;
    }
    if (!error) {
      self->greet();
      return;
    }
    const auto why = net::connection_error(error);
    self->failed({.code = why.code, .detail = self->where_ + ": " + why.detail});
  });
}

void Line::greet() {
  greeting_ = hello();
  greeting_.insert(greeting_.end(), extra_.begin(), extra_.end());
  greeted_ = 0;
  for (const auto& step : greeting_) {
    waiting_ += step.command;
  }
  write();
  read();
}

std::vector<Step> Line::hello() {
  std::vector<Step> steps;
  const std::string_view user = address_.user.empty() ? "default" : std::string_view(address_.user);
  const bool has_name = !address_.user.empty() || !address_.password.empty();
  steps.push_back({.command = has_name ? command_of({"HELLO", "2", "AUTH", user, address_.password,
                                                     "SETNAME", "tenure"})
                                       : command_of({"HELLO", "2", "SETNAME", "tenure"}),
                   .check = [this](const Reply& reply) { return check_hello(reply); }});
  if (given_up_ && given_up_->endpoint == endpoint_) {
    // What was sent there may still be on its way, and will be asked again here: it must not be
    // done after that. Who may not say so goes without.
    // A server that restarted gives the same id to another client, but not the same address.
    steps.push_back(
        {.command = command_of({"CLIENT", "KILL", "ID", given_up_->id, "ADDR", given_up_->address}),
         .check = [](const Reply& /*how many*/) { return Result<void>(); }});
  }
  steps.push_back({.command = command_of({"CLIENT", "INFO"}), .check = [this](const Reply& reply) {
                     // Without that right the address is ours, which a relay on the way changes.
                     if (const auto address = address_in(reply.text); !address.empty()) {
                       own_address_ = address;
                     }
                     return Result<void>();
                   }});
  if (address_.database != 0) {
    const auto number = std::to_string(address_.database);
    steps.push_back({.command = command_of({"SELECT", number}), .check = {}});
  }
  return steps;
}

Result<void> Line::check_hello(const Reply& reply) {
  const auto* const id = field_of(reply, "id");
  id_ = id == nullptr ? "" : std::to_string(id->number);
  const auto* const version = field_of(reply, "version");
  if (version == nullptr || version_from(version->text) < version_min) {
    return fail(Errc::unsupported,
                where_ + ": this server is too old, " +
                    (version == nullptr ? "of an unknown version" : version->text) +
                    "; Redis 6.2 or later is needed");
  }
  const auto* const mode = field_of(reply, "mode");
  if (auto checked = check_mode(mode == nullptr ? "standalone" : mode->text); !checked) {
    return checked;
  }
  const auto* const role = field_of(reply, "role");
  if (role != nullptr && role->text != "master" && address_.part != Part::cluster_member) {
    const bool may_change = address_.whereabouts || address_.part == Part::cluster_primary;
    return fail(Errc::unavailable,
                where_ + (may_change ? ": it is a replica at the moment"
                                     : ": it is a read-only replica; connect to its primary, or by "
                                       "redis+sentinel://"));
  }
  return {};
}

/// That it is what the URL says.
Result<void> Line::check_mode(std::string_view mode) const {
  const bool is_of_cluster = mode == "cluster";
  const bool is_sentinel = mode == "sentinel";
  switch (address_.part) {
    case Part::sentinel:
      return is_sentinel ? Result<void>()
                         : fail(Errc::unsupported,
                                where_ + ": it is no Sentinel; redis:// is for a server");
    case Part::cluster_primary:
    case Part::cluster_member:
      return is_of_cluster
                 ? Result<void>()
                 : fail(Errc::unsupported,
                        where_ + ": it is no node of a cluster; redis:// is for a server alone");
    case Part::primary: break;
  }
  if (is_sentinel) {
    return fail(Errc::unsupported, where_ + ": it is a Sentinel; redis+sentinel:// asks those");
  }
  if (is_of_cluster) {
    return fail(Errc::unsupported, where_ +
                                       ": it is a node of a cluster; redis+cluster:// is for "
                                       "those");
  }
  return {};
}

void Line::check_greeting(const Reply& reply) {
  const auto& step = greeting_[greeted_++];
  if (reply.kind == Reply::Kind::error && !(step.check && greeted_ > 1)) {
    // A server before 6.0 does not know HELLO.
    is_passing(reply.text) ? failed(unavailable(reply.text))
                           : failed(error_from(reply.text, where_));
    return;
  }
  if (step.check) {
    if (auto checked = step.check(reply); !checked) {
      failed(checked.error());
      return;
    }
  }
  if (greeted_ == greeting_.size()) {
    is_ready_ = true;
    is_dialing_ = false;
    is_watched_ = false;
    given_up_.reset();
    patience_.cancel();
    calls_.ready();
  }
}

// While it stands.

void Line::read() {
  transport_->read([self = shared_from_this(), kept = transport_](
                       const error_code& error, std::span<const std::uint8_t> bytes) {
    if (kept != self->transport_) {
      return;
    }
    if (error) {
      self->failed(self->broken(error));
      return;
    }
    self->arrived(bytes);
    if (kept == self->transport_) {
      self->read();
    }
  });
}

void Line::arrived(std::span<const std::uint8_t> bytes) {
  has_heard_ = true;
  const auto kept = transport_;
  const auto reader = reader_.get();
  reader->feed(bytes);
  is_dispatching_ = true;
  while (const auto* reply = reader->next()) {
    take(*reply);
    if (kept != transport_) {
      return;
    }
  }
  is_dispatching_ = false;
  if (reader->fault()) {
    failed(unavailable("what it says is not Redis: " + *reader->fault()));
    return;
  }
  flush();
}

void Line::take(const Reply& reply) {
  if (!is_ready_) {
    check_greeting(reply);
    return;
  }
  if (reply.kind != Reply::Kind::error) {
    // Not before: a connection may fail because of the first reply, each time.
    has_failed_ = false;
    backoff_.reset();
  }
  const bool is_message = reply.kind == Reply::Kind::array && reply.text_at(0) == "message";
  if (!is_message && unanswered_ > 0) {
    --unanswered_;
  }
  calls_.replied(reply);
}

void Line::send(std::string_view command) {
  waiting_.append(command);
  ++unanswered_;
}

void Line::flush() {
  if (is_ready_ && !is_dispatching_ && !waiting_.empty()) {
    write();
    watch_over();
  }
}

void Line::write() {
  if (std::exchange(is_writing_, true)) {
    return;
  }
  writing_.swap(waiting_);
  waiting_.clear();
  transport_->write(writing_, [self = shared_from_this(), kept = transport_](const error_code& e) {
    if (kept != self->transport_) {
      return;
    }
    self->is_writing_ = false;
    if (e) {
      self->failed(self->broken(e));
    } else if (!self->waiting_.empty()) {
      self->write();
    }
  });
}

/// Something was asked: if nothing at all arrives for as long as an answer may take, the connection
/// is dead, whatever TCP thinks.
void Line::watch_over() {
  if (unanswered_ == 0 || std::exchange(is_watched_, true)) {
    return;
  }
  has_heard_ = false;
  patience_.expires_after(silence_max_);
  patience_.async_wait([self = shared_from_this(), attempt = attempt_](const error_code& error) {
    if (error || attempt != self->attempt_ || !self->is_ready_) {
      return;
    }
    self->is_watched_ = false;
    if (self->unanswered_ > 0 && !self->has_heard_) {
      self->drop(self->unavailable("it does not answer any more"));
      return;
    }
    self->watch_over();
  });
}

// The end.

void Line::close() {
  ++attempt_;
  is_ready_ = false;
  is_dialing_ = false;
  is_pausing_ = false;
  is_finding_ = false;
  is_writing_ = false;
  is_dispatching_ = false;
  is_watched_ = false;
  unanswered_ = 0;
  waiting_.clear();
  patience_.cancel();
  pause_.cancel();
  if (const auto connector = std::exchange(connector_, nullptr)) {
    connector->cancel();
  }
  if (const auto transport = std::exchange(transport_, nullptr)) {
    transport->close();
  }
}

void Line::failed(const Error& why) {
  const auto self = shared_from_this();
  close();
  has_failed_ = true;
  if (!is_stopped_) {
    calls_.failed(why);
    dial();
  }
}

void Line::drop(const Error& why) {
  // Not where the server ended it: then nothing of what was sent is still on its way.
  if (is_ready_ && unanswered_ > 0 && !id_.empty()) {
    given_up_ = {.endpoint = endpoint_, .id = id_, .address = own_address_};
  }
  failed(why);
}

void Line::move_to(const Endpoint& endpoint) {
  if (is_stopped_ || is_finding_) {
    return;
  }
  if (is_pausing_) {
    is_pausing_ = false;
    has_failed_ = false;
    backoff_.reset();
    pause_.cancel();
    dial_now();
  } else if (endpoint != endpoint_ && (is_ready_ || is_dialing_)) {
    has_failed_ = false;
    backoff_.reset();
    failed(unavailable("the primary is " + name_of(endpoint) + " now"));
  }
}

void Line::stop() {
  is_stopped_ = true;
  close();
}

}  // namespace tenure::backends::redis
