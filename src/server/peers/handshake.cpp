#include "server/peers/handshake.hpp"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "core/bytes.hpp"
#include "server/peers/message_codec.hpp"
#include "sys/random.hpp"

namespace tenure::server::peers {
namespace {

constexpr std::string_view magic = "tenure peers";
// 256 bits: two connections never share a nonce, so a proof is bound to its connection.
constexpr std::size_t nonce_bytes = 32;
// Upper bound for the texts of an unauthenticated peer.
constexpr std::size_t text_bytes_max = 1024;

/// Reader of one handshake frame of one kind.
class Reader {
 public:
  Reader(const ReceivedFrame& frame, Kind kind) : reader_(frame.meta) {
    if (reader_.number() != static_cast<std::uint64_t>(kind) || !frame.body.empty()) {
      reader_.set_error("invalid handshake");
    }
  }

  std::uint64_t number() { return reader_.number(); }
  std::uint64_t fixed64() { return reader_.fixed64(); }
  std::string text() {
    auto text = reader_.text();
    if (text.size() > text_bytes_max) {
      reader_.set_error("a text exceeds the limit");
    }
    return text;
  }
  void expect(std::string_view words) {
    if (reader_.text() != words) {
      reader_.set_error("invalid handshake");
    }
  }
  raft::Versions versions() {
    const core::ClusterVersion newest(reader_.number());
    const core::ClusterVersion wanted(reader_.number());
    if (wanted < core::version_1 || wanted > newest) {
      reader_.set_error("invalid cluster versions");
    }
    return {.newest = newest, .wanted = wanted};
  }
  /// Accepts further fields, which belong to a newer version.
  void ignore_rest() { is_open_ended_ = true; }

  template <class T>
  Result<T> result(T read) {
    if (reader_.ok() && reader_.left() != 0 && !is_open_ended_) {
      reader_.set_error("trailing bytes in a handshake");
    }
    if (!reader_.ok()) {
      return fail(Errc::invalid_argument, reader_.error());
    }
    return read;
  }

 private:
  core::ByteReader reader_;
  bool is_open_ended_ = false;
};

std::string number_of(raft::MemberId member) {
  return std::to_string(member.get());
}

void put(core::ByteWriter& writer, const raft::Versions& versions) {
  writer.number(versions.newest.get());
  writer.number(versions.wanted.get());
}

/// Reads the fields of version 3, and skips those of newer versions.
void read_versions(Reader& reader, std::uint64_t protocol, raft::Versions& versions) {
  if (protocol >= 3) {
    versions = reader.versions();
  }
  if (protocol > newest_protocol) {
    reader.ignore_rest();
  }
}

}  // namespace

std::string make_nonce() {
  // sys::random_id() draws from the system, so that nonces cannot be predicted.
  core::ByteWriter writer;
  while (writer.bytes().size() < nonce_bytes) {
    writer.fixed64(sys::random_id());
  }
  return std::move(writer).take();
}

Frame encode(const Hello& hello) {
  auto writer = begin_meta(Kind::hello);
  writer.text(magic);
  writer.number(hello.version);
  writer.number(hello.cluster.get());
  writer.number(hello.initiator.get());
  writer.number(hello.acceptor.get());
  writer.text(hello.nonce);
  writer.text(hello.address);
  writer.fixed64(hello.incarnation.get());
  writer.fixed64(hello.origin.get());
  if (hello.version >= 3) {
    put(writer, hello.versions);
  }
  return make_frame(writer.bytes());
}

Result<Hello> decode_hello(const ReceivedFrame& frame) {
  Reader reader(frame, Kind::hello);
  reader.expect(magic);
  Hello hello;
  hello.version = reader.number();
  // The fields of older versions are unknown here. The version alone suffices for the Refusal.
  if (hello.version < oldest_protocol) {
    reader.ignore_rest();
    return reader.result(std::move(hello));
  }
  hello.cluster = raft::ClusterId{reader.number()};
  hello.initiator = raft::MemberId{reader.number()};
  hello.acceptor = raft::MemberId{reader.number()};
  hello.nonce = reader.text();
  hello.address = reader.text();
  hello.incarnation = raft::Incarnation{reader.fixed64()};
  hello.origin = raft::Origin{reader.fixed64()};
  read_versions(reader, hello.version, hello.versions);
  return reader.result(std::move(hello));
}

Frame encode(const Welcome& welcome) {
  auto writer = begin_meta(Kind::welcome);
  writer.number(welcome.version);
  writer.text(welcome.nonce);
  writer.text(welcome.proof);
  writer.fixed64(welcome.incarnation.get());
  writer.fixed64(welcome.origin.get());
  if (welcome.version >= 3) {
    put(writer, welcome.versions);
  }
  return make_frame(writer.bytes());
}

Result<Welcome> decode_welcome(const ReceivedFrame& frame) {
  Reader reader(frame, Kind::welcome);
  Welcome welcome;
  welcome.version = reader.number();
  welcome.nonce = reader.text();
  welcome.proof = reader.text();
  welcome.incarnation = raft::Incarnation{reader.fixed64()};
  welcome.origin = raft::Origin{reader.fixed64()};
  read_versions(reader, welcome.version, welcome.versions);
  return reader.result(std::move(welcome));
}

Frame encode(const Proof& proof) {
  auto writer = begin_meta(Kind::proof);
  writer.text(proof.proof);
  return make_frame(writer.bytes());
}

Result<Proof> decode_proof(const ReceivedFrame& frame) {
  Reader reader(frame, Kind::proof);
  Proof proof{.proof = reader.text()};
  return reader.result(std::move(proof));
}

Frame encode(const Refusal& refusal) {
  auto writer = begin_meta(Kind::refusal);
  writer.number(static_cast<std::uint64_t>(refusal.reason));
  writer.text(std::string_view(refusal.text).substr(0, text_bytes_max));
  return make_frame(writer.bytes());
}

Result<Refusal> decode_refusal(const ReceivedFrame& frame) {
  Reader reader(frame, Kind::refusal);
  Refusal refusal;
  refusal.reason = static_cast<Reason>(reader.number());
  refusal.text = reader.text();
  reader.ignore_rest();
  return reader.result(std::move(refusal));
}

Refusal check_hello(const Hello& hello, const Self& self) {
  if (hello.version < oldest_protocol) {
    return {.reason = Reason::version,
            .text = "peer protocol version " + std::to_string(hello.version) +
                    " is not supported: member " + number_of(self.member) + " supports versions " +
                    std::to_string(oldest_protocol) + " to " + std::to_string(newest_protocol)};
  }
  if (hello.cluster != self.cluster) {
    return {.reason = Reason::cluster,
            .text = "member " + number_of(hello.initiator) + " belongs to cluster " +
                    in_hexadecimal(hello.cluster) + ", and member " + number_of(self.member) +
                    " to cluster " + in_hexadecimal(self.cluster)};
  }
  if (hello.initiator == self.member) {
    return {.reason = Reason::same_member,
            .text = "both ends claim to be member " + number_of(self.member)};
  }
  if (hello.acceptor != self.member) {
    return {.reason = Reason::member,
            .text = "member " + number_of(hello.initiator) + " connected to member " +
                    number_of(hello.acceptor) + ", but this is member " + number_of(self.member)};
  }
  if (auto error = origin_error(hello.initiator, hello.origin, self); !error.empty()) {
    return {.reason = Reason::origin, .text = std::move(error)};
  }
  return {};
}

std::string origin_error(raft::MemberId member, raft::Origin origin, const Self& self) {
  const bool are_known = origin != raft::Origin{} && self.origin != raft::Origin{};
  if (!are_known || origin == self.origin) {
    return {};
  }
  return "member " + number_of(member) + " and member " + number_of(self.member) +
         " started with different states: one of them was seeded from another source, or not at "
         "all. Empty the data directories of the wrong members and seed them like the others "
         "(tenured seed)";
}

std::string prove(End end, const std::string& secret, const Hello& hello, const Welcome& welcome) {
  core::ByteWriter signed_bytes;
  // Wire format: the labels of the two ends must not change.
  signed_bytes.text(end == End::initiator ? "caller" : "called");
  signed_bytes.number(hello.version);
  signed_bytes.number(hello.cluster.get());
  signed_bytes.number(hello.initiator.get());
  signed_bytes.number(hello.acceptor.get());
  signed_bytes.text(hello.nonce);
  signed_bytes.text(hello.address);
  signed_bytes.fixed64(hello.incarnation.get());
  signed_bytes.fixed64(hello.origin.get());
  signed_bytes.text(welcome.nonce);
  signed_bytes.fixed64(welcome.incarnation.get());
  signed_bytes.fixed64(welcome.origin.get());
  if (welcome.version >= 3) {
    signed_bytes.number(welcome.version);
    put(signed_bytes, hello.versions);
    put(signed_bytes, welcome.versions);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned int size = 0;
  // Each text in the signed bytes has its length in front, so two different handshakes never have
  // the same bytes.
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(signed_bytes.bytes().data()),
       signed_bytes.bytes().size(), sum.data(), &size);
  return {reinterpret_cast<const char*>(sum.data()), size};
}

bool is_same_proof(std::string_view left, std::string_view right) {
  return left.size() == right.size() && !left.empty() &&
         CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::string in_hexadecimal(raft::ClusterId cluster) {
  std::string text(17, '\0');
  text.resize(static_cast<std::size_t>(
      std::snprintf(text.data(), text.size(), "%016" PRIx64, cluster.get())));
  return text;
}

}  // namespace tenure::server::peers
