// What members of a cluster send to each other: frames in pieces, the greeting, messages of Raft,
// parts of snapshots. The input is a sequence of frames that get a right checksum, or bytes as they
// are.

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/input.hpp"
#include "server/peers/frame.hpp"
#include "server/peers/handshake.hpp"
#include "server/peers/message_codec.hpp"
#include "server/peers/snapshot_transfer.hpp"

namespace tenure::fuzz {
namespace {

using namespace server::peers;
using server::raft::ClusterId;
using server::raft::MemberId;

const Self self{.cluster = ClusterId{1}, .member = MemberId{2}, .secret = "secret"};

std::string bytes_of(const Frame& frame) {
  std::string bytes = frame.head;
  for (const auto& body : frame.bodies) {
    bytes += body.bytes;
  }
  return bytes;
}

/// One end of a connection: whatever arrives, it must neither crash nor take much memory.
class Receiver {
 public:
  bool take(const ReceivedFrame& frame) {
    greet(frame);
    if (const auto message = decode(frame, {.entries_max = 64, .entry_bytes_max = 4096})) {
      const auto again = bytes_of(encode(*message));
      require(again == std::string(again, 0, frame_prefix_bytes) + std::string(frame.meta) +
                           std::string(frame.body),
              "there is one way only to write a message");
    }
    const auto now = std::chrono::steady_clock::time_point{};
    if (const auto step = receiver_.begin(frame, now)) {
      sender_.heard(step->have, now);
    }
    static_cast<void>(receiver_.chunk(frame, now));
    require(receiver_.bytes() <= limits.bytes_max, "a snapshot within its limit");
    if (const auto have = decode_have(frame)) {
      sender_.heard(*have, now);
    }
    return true;
  }

 private:
  static constexpr SnapshotLimits limits{.chunk_bytes = 4096, .bytes_max = 65'536};

  static void greet(const ReceivedFrame& frame) {
    if (const auto hello = decode_hello(frame)) {
      static_cast<void>(check_hello(*hello, self));
      const Welcome welcome{.nonce = "nonce"};
      const auto proof = prove(End::initiator, self.secret, *hello, welcome);
      require(!is_same_proof(proof, prove(End::acceptor, self.secret, *hello, welcome)),
              "the ends prove different things");
    }
    if (const auto welcome = decode_welcome(frame)) {
      static_cast<void>(origin_error(MemberId{1}, welcome->origin, self));
    }
    static_cast<void>(decode_proof(frame));
    static_cast<void>(decode_refusal(frame));
  }

  SnapshotReceiver receiver_{limits};
  SnapshotSender sender_{limits};
};

std::string sealed_frames(Input& input) {
  std::string wire;
  while (!input.is_empty()) {
    const auto meta = input.text(input.byte());
    const auto body =
        std::make_shared<const std::string>(input.below(2) == 0 ? "" : input.sized_text());
    std::vector<Slice> bodies;
    bodies.push_back({.owner = body, .bytes = *body});
    wire += bytes_of(make_frame(meta, std::move(bodies)));
  }
  return wire;
}

}  // namespace
}  // namespace tenure::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenure::fuzz;
  Input input(data, size);
  const bool is_sealed = input.below(2) == 1;
  const auto piece = 1 + input.number() % 4096;
  const auto wire = is_sealed ? sealed_frames(input) : std::string(input.rest());
  FrameReader reader({.meta_bytes_max = 4096, .body_bytes_max = 65'536});
  Receiver receiver;
  for (std::size_t at = 0; at < wire.size(); at += piece) {
    const auto fed = reader.feed(std::string_view(wire).substr(at, piece),
                                 [&](const auto& frame) { return receiver.take(frame); });
    if (!fed) {
      break;
    }
  }
  return 0;
}
