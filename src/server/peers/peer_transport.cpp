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
using raft::Severity;

/// Before trying again when even accepting failed, for lack of descriptors for example.
constexpr std::chrono::milliseconds accept_pause{100};
constexpr std::chrono::milliseconds sweep_every{5000};
/// How long nobody is told again that the same place was refused for the same reason, and how many
/// such things are remembered.
constexpr std::chrono::seconds hush{60};
constexpr std::size_t told_max = 64;

/// Where it wants to be called back. At 0.0.0.0 we would call ourselves: what it means is where it
/// calls from.
std::string address_of(const Caller& caller) {
  const auto& wanted = caller.hello().address;
  const auto parsed = parse_address(wanted);
  if (!parsed || !parsed->is_wildcard()) {
    return wanted;
  }
  const auto& from = caller.from();
  const bool is_v6 = from.find(':') != std::string::npos;
  return (is_v6 ? "[" + from + "]" : from) + ":" + std::to_string(parsed->port);
}

}  // namespace

Result<std::unique_ptr<PeerTransport>> PeerTransport::make(PeerOptions options,
                                                           Listening listening) {
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
                             Listening listening)
    : options_(std::move(options)),
      tls_(std::move(tls)),
      listening_(std::move(listening)),
      port_(listening_->port()),
      handshakes_(options_.handshakes),
      member_handshakes_(options_.member_handshakes) {}

PeerTransport::~PeerTransport() {
  stop();
}

Result<void> PeerTransport::introduce(const raft::Folder& folder) {
  auto known = Acquaintances::open(folder.path() / "peers", options_.report);
  if (!known) {
    return std::unexpected(std::move(known).error());
  }
  *known_ = *std::move(known);
  options_.self.incarnation = folder.incarnation();
  options_.self.origin = folder.origin();
  return {};
}

void PeerTransport::start(asio::io_context& loop, Receive receive) {
  receive_ = std::move(receive);
  alive_ = std::make_shared<PeerTransport*>(this);
  const auto protocol = listening_->is_v6() ? tcp::v6() : tcp::v4();
  acceptor_.emplace(loop, protocol, std::move(*listening_).take());
  listening_.reset();
  timer_.emplace(loop);
  hall_ = std::make_shared<const Hall>(
      Hall{.loop = loop,
           .options = options_,
           .tls = tls_,
           .handshakes =
               tls_ ? asio::use_service<HandshakeThread>(loop).executor() : asio::any_io_executor(),
           .known = known_});
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
  if (!hall_) {
    return;
  }
  alive_.reset();
  for (auto& [id, peer] : peers_) {
    forget(peer);
  }
  peers_.clear();
  for (const auto& stranger : std::exchange(strangers_, {})) {
    stranger->close();
  }
  acceptor_.reset();
  timer_.reset();
  hall_.reset();
}

void PeerTransport::forget(Peer& peer) {
  if (peer.dialer) {
    std::exchange(peer.dialer, nullptr)->close();
  }
  if (peer.caller) {
    std::exchange(peer.caller, nullptr)->close();
  }
}

void PeerTransport::set_members(const std::vector<raft::Member>& members) {
  members_ = members;
  if (!hall_) {
    return;
  }
  known_->set_members(members);
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
    if (member.id == hall_->options.self.member || member.peer.empty()) {
      continue;
    }
    auto& peer = peers_[member.id];
    peer.is_member = true;
    if (peer.network.empty()) {
      peer.network = net::network_of(member.peer);
    }
    set_dialer(peer, member.id, member.peer);
  }
}

void PeerTransport::set_dialer(Peer& peer, raft::MemberId id, const std::string& address) {
  if (peer.dialer && peer.dialer->address() == address) {
    return;
  }
  if (peer.dialer) {
    peer.dialer->close();
  }
  peer.dialer = std::make_shared<Dialer>(hall_, id, address);
  peer.dialer->start();
}

void PeerTransport::send(raft::MemberId peer, raft::Message message) {
  const auto it = peers_.find(peer);
  if (it != peers_.end() && it->second.dialer && !known_->is_disowned()) {
    it->second.dialer->send(std::move(message));
  }
}

bool PeerTransport::takes_snapshot(raft::MemberId peer, raft::Term term) {
  const auto it = peers_.find(peer);
  return it != peers_.end() && it->second.dialer && it->second.dialer->takes_snapshot(term);
}

std::optional<raft::Versions> PeerTransport::versions_of(raft::MemberId peer) const {
  const auto it = peers_.find(peer);
  return it != peers_.end() && it->second.dialer ? it->second.dialer->versions() : std::nullopt;
}

void PeerTransport::accept() {
  acceptor_->async_accept(
      [alive = std::weak_ptr(alive_)](const error_code& error, tcp::socket socket) {
        const auto self = alive.lock();
        if (!self || error == asio::error::operation_aborted) {
          return;
        }
        if (!error) {
          (*self)->welcome(std::move(socket));
          (*self)->accept();
          return;
        }
        auto timer = std::make_shared<asio::steady_timer>((*self)->hall_->loop, accept_pause);
        timer->async_wait([alive, timer](const error_code&) {
          if (const auto later = alive.lock()) {
            (*later)->accept();
          }
        });
      });
}

void PeerTransport::welcome(tcp::socket socket) {
  error_code error;
  const auto from = socket.remote_endpoint(error);
  if (error) {
    return;
  }
  auto handshake = admit_handshake(from.address());
  if (!handshake) {
    on_handshake_limit_();
    return;
  }
  make_room_for_a_stranger();
  const auto caller =
      std::make_shared<Caller>(hall_, std::move(socket), from.address().to_string());
  caller->hold_handshake_slot(*std::move(handshake));
  strangers_.push_back(caller);
  const auto here = [alive = std::weak_ptr(alive_)](auto call) {
    return [alive, call](auto&&... arguments) {
      if (const auto self = alive.lock()) {
        call(**self, arguments...);
      }
    };
  };
  caller->start(
      {.admitted = here([](PeerTransport& me, Caller& one) { me.admit(one); }),
       .arrived = here([](PeerTransport& me, Caller& one, const ArrivedFrame& frame) {
         me.arrived(one, frame);
       }),
       .refused = here([](PeerTransport& me, const Caller& one) { me.tell_of_stranger(one); }),
       .gone = here([](PeerTransport& me, Caller& one) { me.gone(one); })});
}

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

void PeerTransport::make_room_for_a_stranger() {
  while (strangers_.size() >= hall_->options.strangers_max) {
    // One place with many connections first: it must not push out a member that greets from
    // another. Then those that have said nothing, then the oldest.
    std::map<std::string_view, std::ptrdiff_t> crowds;
    for (const auto& stranger : strangers_) {
      ++crowds[stranger->from()];
    }
    const auto least = std::ranges::min_element(strangers_, {}, [&](const auto& stranger) {
      return std::pair(-crowds[stranger->from()], stranger->bytes_read() > 0);
    });
    (*least)->close();
    strangers_.erase(least);
  }
}

void PeerTransport::admit(Caller& caller) {
  const auto shared = caller.shared_from_this();
  std::erase(strangers_, shared);
  const auto id = caller.hello().caller;
  const auto guests =
      std::ranges::count_if(peers_, [](const auto& known) { return !known.second.is_member; });
  if (!peers_.contains(id) && static_cast<std::size_t>(guests) >= hall_->options.guests_max) {
    caller.close();
    return;
  }
  auto& peer = peers_[id];
  if (peer.caller) {
    // The newest counts: the older one is half dead, or its owner has begun anew.
    peer.counts.bytes_received += peer.caller->bytes_read();
    peer.caller->close();
  }
  peer.caller = shared;
  peer.network = net::network_of(asio::ip::make_address(caller.from()));
  call_back(peer, caller);
}

void PeerTransport::call_back(Peer& peer, const Caller& caller) {
  if (peer.is_member) {
    peer.dialer->hurry();
  } else {
    // Not in the configuration as we know it. It may be us who do not know the newest one.
    set_dialer(peer, caller.hello().caller, address_of(caller));
  }
}

void PeerTransport::arrived(Caller& caller, const ArrivedFrame& frame) {
  const auto it = peers_.find(caller.hello().caller);
  if (it == peers_.end() || known_->is_disowned()) {
    return;
  }
  const auto kind = static_cast<Kind>(kind_of(frame));
  if (kind == Kind::snapshot_begin || kind == Kind::snapshot_chunk) {
    take_snapshot_part(caller, it->second, frame);
  } else {
    take_message(caller, it->second, frame);
  }
}

void PeerTransport::take_snapshot_part(Caller& caller, Peer& peer, const ArrivedFrame& frame) {
  if (!peer.snapshots) {
    peer.snapshots.emplace(hall_->options.snapshot);
  }
  const bool begins = kind_of(frame) == static_cast<std::uint8_t>(Kind::snapshot_begin);
  const auto now = std::chrono::steady_clock::now();
  auto step = begins ? peer.snapshots->begin(frame, now) : peer.snapshots->chunk(frame, now);
  if (!step) {
    caller.break_off(step.error().detail);
    return;
  }
  peer.counts.snapshot_chunks_received += begins ? 0 : 1;
  caller.answer(step->have);
  if (step->complete) {
    ++peer.counts.messages_received;
    // The last thing: it may do anything, also end this.
    receive_(caller.hello().caller, *std::move(step->complete));
  }
}

void PeerTransport::take_message(Caller& caller, Peer& peer, const ArrivedFrame& frame) {
  auto message = decode(frame, hall_->options.message);
  if (!message) {
    caller.break_off("what it says makes no sense: " + message.error().detail);
    return;
  }
  ++peer.counts.messages_received;
  // The last thing: it may do anything, also end this.
  receive_(caller.hello().caller, *std::move(message));
}

void PeerTransport::gone(Caller& caller) {
  const auto shared = caller.shared_from_this();
  if (std::erase(strangers_, shared) > 0) {
    tell_of_stranger(caller);
    return;
  }
  const auto it = peers_.find(caller.hello().caller);
  if (it == peers_.end() || it->second.caller != shared) {
    return;
  }
  it->second.counts.bytes_received += caller.bytes_read();
  it->second.caller.reset();
  if (!it->second.is_member) {
    forget(it->second);
    erase_if_done(it);
  }
}

/// A guest that is gone may come back for the rest of its snapshot: the leader of a member that
/// joins is one.
PeerTransport::Peers::iterator PeerTransport::erase_if_done(Peers::iterator it) {
  const auto& peer = it->second;
  const bool is_done =
      !peer.is_member && !peer.caller && (!peer.snapshots || peer.snapshots->is_idle());
  return is_done ? peers_.erase(it) : std::next(it);
}

void PeerTransport::tell_of_stranger(const Caller& caller) {
  const auto now = std::chrono::steady_clock::now();
  const auto what = "refused a connection from " + caller.from() + ": " + caller.complaint();
  const auto [it, is_new] = told_.try_emplace(what, now);
  if (!is_new && now - it->second < hush) {
    return;
  }
  it->second = now;
  hall_->options.report(Severity::warning, what);
  if (told_.size() > told_max) {
    told_.erase(std::ranges::min_element(told_, {}, [](const auto& one) { return one.second; }));
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
  known_->sweep();
  for (auto it = peers_.begin(); it != peers_.end();) {
    auto& peer = it->second;
    if (peer.snapshots) {
      peer.snapshots->give_up_if_stalled(now);
    }
    if (peer.dialer) {
      peer.dialer->sweep();
    }
    it = erase_if_done(it);
  }
}

std::vector<PeerTraffic> PeerTransport::counts() const {
  std::vector<PeerTraffic> all;
  for (const auto& [id, peer] : peers_) {
    auto counts = peer.dialer ? peer.dialer->counts() : PeerTraffic{};
    counts.peer = id.get();
    counts.bytes_received += peer.counts.bytes_received;
    counts.bytes_received += peer.caller ? peer.caller->bytes_read() : 0;
    counts.messages_received = peer.counts.messages_received;
    counts.snapshot_chunks_received = peer.counts.snapshot_chunks_received;
    all.push_back(counts);
  }
  return all;
}

}  // namespace tenure::server::peers
