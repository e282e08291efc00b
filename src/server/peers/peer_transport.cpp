#include "server/peers/peer_transport.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

#include "server/config/units.hpp"
#include "server/peers/handshake_thread.hpp"

namespace tenure::server::peers {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Delay before the next accept() after a failed one, for example for lack of file descriptors.
constexpr std::chrono::milliseconds accept_pause{100};
constexpr std::chrono::milliseconds sweep_every{5000};
/// Interval between two events about the same address and error, and number of remembered ones: a
/// peer with a wrong configuration retries every second.
constexpr std::chrono::seconds report_interval{60};
constexpr std::size_t reported_max = 64;

/// Address for connections back to the peer. A wildcard address such as 0.0.0.0 would reach this
/// member itself, so it is replaced by the source address of the connection.
std::string address_of(const InboundConnection& connection) {
  const auto& wanted = connection.hello().address;
  const auto parsed = parse_address(wanted);
  if (!parsed || !parsed->is_wildcard()) {
    return wanted;
  }
  const auto& from = connection.from();
  const bool is_v6 = from.find(':') != std::string::npos;
  return (is_v6 ? "[" + from + "]" : from) + ":" + std::to_string(parsed->port);
}

}  // namespace

Result<std::unique_ptr<PeerTransport>> PeerTransport::make(PeerOptions options,
                                                           ListeningSocket listening) {
  std::shared_ptr<TlsContexts> tls;
  if (options.tls) {
    auto contexts = make_contexts(*options.tls, options.self.member);
    if (!contexts) {
      return std::unexpected(std::move(contexts).error());
    }
    tls = std::make_shared<TlsContexts>(*std::move(contexts));
  }
  return std::unique_ptr<PeerTransport>(
      new PeerTransport(std::move(options), std::move(tls), std::move(listening)));
}

PeerTransport::PeerTransport(PeerOptions options, std::shared_ptr<TlsContexts> tls,
                             ListeningSocket listening)
    : options_(std::move(options)),
      tls_(std::move(tls)),
      listening_(std::move(listening)),
      port_(listening_->port()),
      handshakes_(options_.handshakes),
      member_handshakes_(options_.member_handshakes) {}

PeerTransport::~PeerTransport() {
  stop();
}

Result<void> PeerTransport::load_identity(const raft::Folder& folder) {
  auto known = PeerRegistry::open(folder.path() / "peers", options_.report);
  if (!known) {
    return std::unexpected(std::move(known).error());
  }
  *registry_ = *std::move(known);
  options_.self.incarnation = folder.incarnation();
  options_.self.origin = folder.origin();
  return {};
}

void PeerTransport::start(asio::io_context& loop, Receive receive) {
  receive_ = std::move(receive);
  alive_ = std::make_shared<PeerTransport*>(this);
  const auto protocol = listening_->is_v6() ? tcp::v6() : tcp::v4();
  // The socket has listened since make(), so connections of peers wait in its backlog until now.
  acceptor_.emplace(loop, protocol, std::move(*listening_).take());
  listening_.reset();
  timer_.emplace(loop);
  context_ = std::make_shared<const PeerContext>(
      PeerContext{.loop = loop,
                  .options = options_,
                  .tls = tls_,
                  .handshakes = tls_ ? asio::use_service<HandshakeThread>(loop).executor()
                                     : asio::any_io_executor(),
                  .registry = registry_});
  accept();
  sweep_later();
  set_members(std::exchange(members_, {}));
}

void PeerTransport::renew_tls(TlsContexts contexts) {
  if (tls_) {
    *tls_ = std::move(contexts);
  }
}

void PeerTransport::stop() {
  if (!context_) {
    return;
  }
  // First: callbacks that run during the rest find no transport.
  alive_.reset();
  for (auto& [id, peer] : peers_) {
    forget(peer);
  }
  peers_.clear();
  for (const auto& connection : std::exchange(unauthenticated_, {})) {
    connection->close();
  }
  // Destroying the acceptor and the timer cancels their operations.
  acceptor_.reset();
  timer_.reset();
  context_.reset();
}

void PeerTransport::forget(Peer& peer) {
  if (peer.outbound) {
    std::exchange(peer.outbound, nullptr)->close();
  }
  if (peer.inbound) {
    std::exchange(peer.inbound, nullptr)->close();
  }
}

// A connection to a member that stays is kept, unless its address changed: an election would follow
// if every change of the members interrupted the heartbeats.
void PeerTransport::set_members(const std::vector<raft::Member>& members) {
  members_ = members;
  if (!context_) {
    return;
  }
  registry_->set_members(members);
  for (auto it = peers_.begin(); it != peers_.end();) {
    const bool stays = std::ranges::find(members, it->first, &raft::Member::id) != members.end();
    if (it->second.is_member && !stays) {
      forget(it->second);
      it = peers_.erase(it);
    } else {
      ++it;
    }
  }
  for (const auto& member : members) {
    if (member.id == context_->options.self.member || member.peer.empty()) {
      continue;
    }
    auto& peer = peers_[member.id];
    peer.is_member = true;
    if (peer.network.empty()) {
      peer.network = net::network_of(member.peer);
    }
    set_outbound(peer, member.id, member.peer);
  }
}

void PeerTransport::set_outbound(Peer& peer, raft::MemberId id, const std::string& address) {
  if (peer.outbound && peer.outbound->address() == address) {
    return;
  }
  if (peer.outbound) {
    peer.outbound->close();
  }
  peer.outbound = std::make_shared<OutboundConnection>(context_, id, address);
  peer.outbound->start();
}

void PeerTransport::send(raft::MemberId peer, raft::Message message) {
  const auto it = peers_.find(peer);
  if (it != peers_.end() && it->second.outbound && !registry_->is_quarantined()) {
    it->second.outbound->send(std::move(message));
  }
}

bool PeerTransport::takes_snapshot(raft::MemberId peer, raft::Term term) {
  const auto it = peers_.find(peer);
  return it != peers_.end() && it->second.outbound && it->second.outbound->takes_snapshot(term);
}

std::optional<raft::Versions> PeerTransport::versions_of(raft::MemberId peer) const {
  const auto it = peers_.find(peer);
  return it != peers_.end() && it->second.outbound ? it->second.outbound->versions() : std::nullopt;
}

// Keeps accepting after an error: a member that stops listening could never be reached again.
void PeerTransport::accept() {
  acceptor_->async_accept(
      [alive = std::weak_ptr(alive_)](const error_code& error, tcp::socket socket) {
        const auto self = alive.lock();
        if (!self || error == asio::error::operation_aborted) {
          return;
        }
        if (!error) {
          (*self)->add_connection(std::move(socket));
          (*self)->accept();
          return;
        }
        auto timer = std::make_shared<asio::steady_timer>((*self)->context_->loop, accept_pause);
        timer->async_wait([alive, timer](const error_code&) {
          if (const auto later = alive.lock()) {
            (*later)->accept();
          }
        });
      });
}

void PeerTransport::add_connection(tcp::socket socket) {
  error_code error;
  const auto from = socket.remote_endpoint(error);
  if (error) {
    return;
  }
  // A closed connection costs the peer a backoff, and this member no TLS work.
  auto handshake = admit_handshake(from.address());
  if (!handshake) {
    on_handshake_limit_();
    return;
  }
  make_room_for_unauthenticated();
  const auto connection =
      std::make_shared<InboundConnection>(context_, std::move(socket), from.address().to_string());
  connection->hold_handshake_slot(*std::move(handshake));
  unauthenticated_.push_back(connection);
  const auto bind = [alive = std::weak_ptr(alive_)](auto call) {
    return [alive, call](auto&&... arguments) {
      if (const auto self = alive.lock()) {
        call(**self, arguments...);
      }
    };
  };
  connection->start(
      {.authenticated =
           bind([](PeerTransport& self, InboundConnection& one) { self.add_peer_connection(one); }),
       .received = bind([](PeerTransport& self, InboundConnection& one,
                           const ReceivedFrame& frame) { self.receive(one, frame); }),
       .rejected = bind(
           [](PeerTransport& self, const InboundConnection& one) { self.report_rejected(one); }),
       .closed = bind([](PeerTransport& self, InboundConnection& one) { self.closed(one); })});
}

// Checked before any TLS work: a public-key operation costs about 0.3 ms with ECDSA, and a flood of
// connections from outside must not delay the handshakes of members.
std::optional<net::Shares::Share> PeerTransport::admit_handshake(const asio::ip::address& from) {
  if (!tls_) {
    return net::Shares::Share();
  }
  const auto network = net::network_of(from);
  const bool is_of_member =
      std::ranges::any_of(peers_, [&](const auto& peer) { return peer.second.network == network; });
  auto& limiter = is_of_member ? member_handshakes_ : handshakes_;
  return limiter.admit(network, std::chrono::steady_clock::now());
}

void PeerTransport::make_room_for_unauthenticated() {
  while (unauthenticated_.size() >= context_->options.unauthenticated_max) {
    // Evicts from the address with the most connections, so that one host cannot evict a member
    // that connects from another. Then connections without any bytes, then the oldest.
    std::map<std::string_view, std::ptrdiff_t> counts_by_address;
    for (const auto& connection : unauthenticated_) {
      ++counts_by_address[connection->from()];
    }
    const auto least = std::ranges::min_element(unauthenticated_, {}, [&](const auto& connection) {
      return std::pair(-counts_by_address[connection->from()], connection->bytes_read() > 0);
    });
    (*least)->close();
    unauthenticated_.erase(least);
  }
}

// The number of non-members is bounded, because every authenticated id allocates a Peer and a
// connection back to it.
void PeerTransport::add_peer_connection(InboundConnection& connection) {
  const auto shared = connection.shared_from_this();
  std::erase(unauthenticated_, shared);
  const auto id = connection.hello().initiator;
  const auto non_members =
      std::ranges::count_if(peers_, [](const auto& known) { return !known.second.is_member; });
  if (!peers_.contains(id) &&
      static_cast<std::size_t>(non_members) >= context_->options.non_members_max) {
    connection.close();
    return;
  }
  auto& peer = peers_[id];
  if (peer.inbound) {
    // The newest connection wins: the older one is half open, or its process has restarted.
    peer.counts.bytes_received += peer.inbound->bytes_read();
    peer.inbound->close();
  }
  peer.inbound = shared;
  peer.network = net::network_of(asio::ip::make_address(connection.from()));
  call_back(peer, connection);
}

void PeerTransport::call_back(Peer& peer, const InboundConnection& connection) {
  if (peer.is_member) {
    peer.outbound->connect_now();
  } else {
    // Not in the configuration of this member, which may be outdated.
    set_outbound(peer, connection.hello().initiator, address_of(connection));
  }
}

void PeerTransport::receive(InboundConnection& connection, const ReceivedFrame& frame) {
  const auto it = peers_.find(connection.hello().initiator);
  // A quarantined member must not act on messages: it may have voted in this term before.
  if (it == peers_.end() || registry_->is_quarantined()) {
    return;
  }
  const auto kind = static_cast<Kind>(kind_of(frame));
  if (kind == Kind::snapshot_begin || kind == Kind::snapshot_chunk) {
    take_snapshot_part(connection, it->second, frame);
  } else {
    take_message(connection, it->second, frame);
  }
}

void PeerTransport::take_snapshot_part(InboundConnection& connection, Peer& peer,
                                       const ReceivedFrame& frame) {
  if (!peer.snapshots) {
    peer.snapshots.emplace(context_->options.snapshot);
  }
  const bool begins = kind_of(frame) == static_cast<std::uint8_t>(Kind::snapshot_begin);
  const auto now = std::chrono::steady_clock::now();
  auto step = begins ? peer.snapshots->begin(frame, now) : peer.snapshots->chunk(frame, now);
  if (!step) {
    connection.fail(step.error().detail);
    return;
  }
  peer.counts.snapshot_chunks_received += begins ? 0 : 1;
  connection.acknowledge(step->have);
  if (step->complete) {
    ++peer.counts.messages_received;
    // Last statement: the callback may destroy this object.
    receive_(connection.hello().initiator, *std::move(step->complete));
  }
}

void PeerTransport::take_message(InboundConnection& connection, Peer& peer,
                                 const ReceivedFrame& frame) {
  auto message = decode(frame, context_->options.message);
  if (!message) {
    connection.fail("invalid message: " + message.error().detail);
    return;
  }
  ++peer.counts.messages_received;
  // Last statement: the callback may destroy this object.
  receive_(connection.hello().initiator, *std::move(message));
}

void PeerTransport::closed(InboundConnection& connection) {
  const auto shared = connection.shared_from_this();
  if (std::erase(unauthenticated_, shared) > 0) {
    report_rejected(connection);
    return;
  }
  const auto it = peers_.find(connection.hello().initiator);
  if (it == peers_.end() || it->second.inbound != shared) {
    return;
  }
  it->second.counts.bytes_received += connection.bytes_read();
  it->second.inbound.reset();
  if (!it->second.is_member) {
    forget(it->second);
    erase_if_done(it);
  }
}

/// A disconnected non-member keeps its entry while a snapshot is incomplete: the leader of a
/// joining member reconnects and resumes the transfer.
PeerTransport::Peers::iterator PeerTransport::erase_if_done(Peers::iterator it) {
  const auto& peer = it->second;
  const bool is_done =
      !peer.is_member && !peer.inbound && (!peer.snapshots || peer.snapshots->is_idle());
  return is_done ? peers_.erase(it) : std::next(it);
}

void PeerTransport::report_rejected(const InboundConnection& connection) {
  const auto now = std::chrono::steady_clock::now();
  const auto [it, is_new] =
      reported_.try_emplace(connection.from() + ": " + connection.error(), now);
  if (!is_new && now - it->second < report_interval) {
    return;
  }
  it->second = now;
  context_->options.report(log::Level::warning, "peer_rejected",
                           {{"address", connection.from()}, {"error", connection.error()}});
  // Drops the oldest: a scan of the port from many addresses must not fill the memory.
  if (reported_.size() > reported_max) {
    reported_.erase(
        std::ranges::min_element(reported_, {}, [](const auto& one) { return one.second; }));
  }
}

void PeerTransport::sweep_later() {
  timer_->expires_after(sweep_every);
  timer_->async_wait([alive = std::weak_ptr(alive_)](const error_code& error) {
    const auto self = alive.lock();
    if (!self || error) {
      return;
    }
    (*self)->sweep();
    (*self)->sweep_later();
  });
}

void PeerTransport::sweep() {
  const auto now = std::chrono::steady_clock::now();
  registry_->sweep();
  for (auto it = peers_.begin(); it != peers_.end();) {
    auto& peer = it->second;
    if (peer.snapshots) {
      peer.snapshots->give_up_if_stalled(now);
    }
    if (peer.outbound) {
      peer.outbound->sweep();
    }
    // Also advances the iterator.
    it = erase_if_done(it);
  }
}

std::vector<PeerTraffic> PeerTransport::counts() const {
  std::vector<PeerTraffic> all;
  for (const auto& [id, peer] : peers_) {
    auto counts = peer.outbound ? peer.outbound->counts() : PeerTraffic{};
    counts.peer = id.get();
    counts.bytes_received += peer.counts.bytes_received;
    counts.bytes_received += peer.inbound ? peer.inbound->bytes_read() : 0;
    counts.messages_received = peer.counts.messages_received;
    counts.snapshot_chunks_received = peer.counts.snapshot_chunks_received;
    all.push_back(counts);
  }
  return all;
}

}  // namespace tenure::server::peers
