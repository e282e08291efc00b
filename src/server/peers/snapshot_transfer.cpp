#include "server/peers/snapshot_transfer.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/bytes.hpp"
#include "server/peers/message_codec.hpp"
#include "sys/random.hpp"

namespace tenure::server::peers {
namespace {

// A peer may announce more than it sends: at most 1 GiB is reserved in advance.
constexpr std::size_t reserve_max = std::size_t{1} << 30;

/// Reads the kind of a frame, which must be this one.
void expect(core::ByteReader& reader, Kind kind) {
  if (reader.number() != static_cast<std::uint64_t>(kind)) {
    reader.set_error("not a snapshot frame");
  }
}

std::unexpected<Error> decode_error(const core::ByteReader& reader) {
  return fail(Errc::invalid_argument, reader.error());
}

}  // namespace

Frame encode(const SnapshotHave& have) {
  core::ByteWriter writer;
  writer.number(static_cast<std::uint64_t>(Kind::snapshot_have));
  writer.number(have.transfer);
  writer.number(have.bytes);
  return make_frame(writer.bytes());
}

Result<SnapshotHave> decode_have(const ReceivedFrame& frame) {
  core::ByteReader reader(frame.meta);
  expect(reader, Kind::snapshot_have);
  SnapshotHave have;
  have.transfer = reader.number();
  have.bytes = reader.number();
  if (!reader.ok()) {
    return decode_error(reader);
  }
  return have;
}

bool SnapshotSender::offer(raft::InstallSnapshot message, Time now) {
  if (message_.has_value()) {
    // The present transfer continues: restarting with each newer snapshot would starve a slow
    // receiver.
    raise(message.term);
    return false;
  }
  // The receiver would reject it, too.
  if (message.snapshot.body->size() > limits_.bytes_max) {
    return false;
  }
  message_ = std::move(message);
  transfer_ = sys::random_id();
  progressed_at_ = now;
  connected();
  return true;
}

// A snapshot contains committed entries only, so every later leader may send it. The term has to be
// raised, because the receiver drops messages of an old term.
void SnapshotSender::raise(raft::Term term) {
  if (message_.has_value()) {
    message_->term = std::max(message_->term, term);
  }
}

void SnapshotSender::connected() {
  is_begun_ = false;
  acknowledged_.reset();
  sent_ = 0;
}

// Nothing is sent after the begin frame until the receiver has reported how much it has: after a
// reconnect the transfer continues there.
std::optional<Frame> SnapshotSender::next() {
  if (!message_.has_value()) {
    return std::nullopt;
  }
  if (!is_begun_) {
    is_begun_ = true;
    return begin();
  }
  if (!acknowledged_.has_value() || sent_ == message_->snapshot.body->size() ||
      sent_ - *acknowledged_ >= limits_.chunk_bytes * limits_.chunks_in_flight_max) {
    return std::nullopt;
  }
  return chunk();
}

Frame SnapshotSender::begin() const {
  const auto& mark = message_->snapshot.mark;
  core::ByteWriter writer;
  writer.number(static_cast<std::uint64_t>(Kind::snapshot_begin));
  writer.number(transfer_);
  writer.number(message_->term.get());
  writer.number(mark.index.get());
  writer.number(mark.term.get());
  writer.number(mark.configuration_index.get());
  writer.text(mark.configuration);
  writer.number(message_->snapshot.body->size());
  return make_frame(writer.bytes());
}

Frame SnapshotSender::chunk() {
  const auto& body = message_->snapshot.body;
  const auto bytes = std::string_view(*body).substr(sent_, limits_.chunk_bytes);
  core::ByteWriter writer;
  writer.number(static_cast<std::uint64_t>(Kind::snapshot_chunk));
  writer.number(transfer_);
  writer.number(message_->term.get());
  writer.number(sent_);
  writer.fixed32(core::crc32c(bytes));
  sent_ += bytes.size();
  return make_frame(writer.bytes(), {{.owner = body, .bytes = bytes}});
}

void SnapshotSender::heard(const SnapshotHave& have, Time now) {
  if (!message_.has_value() || have.transfer != transfer_) {
    return;
  }
  const auto size = message_->snapshot.body->size();
  // Complete: the receiver has delivered it.
  if (have.bytes >= size) {
    message_.reset();
    return;
  }
  if (acknowledged_.has_value() && have.bytes < *acknowledged_) {
    // The receiver dropped what it had: restart.
    connected();
    return;
  }
  if (!acknowledged_.has_value()) {
    sent_ = have.bytes;
  } else if (have.bytes > *acknowledged_) {
    progressed_at_ = now;
  }
  // At most `sent_`, so that the difference in next() does not underflow.
  acknowledged_ = std::min(have.bytes, sent_);
}

void SnapshotSender::give_up_if_stalled(Time now) {
  if (message_.has_value() && now - progressed_at_ >= limits_.stall_timeout) {
    message_.reset();
  }
}

Result<SnapshotReceiver::Step> SnapshotReceiver::begin(const ReceivedFrame& frame, Time now) {
  core::ByteReader reader(frame.meta);
  expect(reader, Kind::snapshot_begin);
  const auto transfer = reader.number();
  const raft::Term term{reader.number()};
  raft::SnapshotMark mark;
  mark.index = raft::Index{reader.number()};
  mark.term = raft::Term{reader.number()};
  mark.configuration_index = raft::Index{reader.number()};
  mark.configuration = reader.text();
  const auto size = reader.number_up_to(limits_.bytes_max, "the size of a snapshot");
  if (!reader.ok()) {
    return decode_error(reader);
  }
  if (transfer == finished_ && size == finished_bytes_) {
    // The acknowledgement was lost with the connection. The snapshot is not delivered twice.
    return Step{.have = {.transfer = transfer, .bytes = size}};
  }
  progressed_at_ = now;
  transfer_ = transfer;
  if (mark_ != mark || size_ != size) {
    mark_ = std::move(mark);
    size_ = size;
    body_ = {};
    // Reserved pages cost no memory until they are written, and growing would copy the body.
    body_.reserve(std::min(size, reserve_max));
  }
  return step(term);
}

// A chunk that does not continue the body is not an error: it may have been sent before the
// receiver dropped a stalled transfer. The acknowledgement makes the sender restart.
Result<SnapshotReceiver::Step> SnapshotReceiver::chunk(const ReceivedFrame& frame, Time now) {
  core::ByteReader reader(frame.meta);
  expect(reader, Kind::snapshot_chunk);
  const auto transfer = reader.number();
  const raft::Term term{reader.number()};
  const auto offset = reader.number();
  const auto checksum = reader.fixed32();
  if (!reader.ok()) {
    return decode_error(reader);
  }
  if (core::crc32c(frame.body) != checksum) {
    return fail(Errc::invalid_argument, "checksum mismatch in a snapshot chunk");
  }
  // The first frame of a transfer must be `begin`; a chunk without one does not fit.
  const bool fits = mark_.has_value() && transfer == transfer_ && offset == body_.size() &&
                    frame.body.size() <= size_ - body_.size() && !frame.body.empty();
  if (!fits) {
    const auto known = transfer == finished_ ? finished_bytes_ : body_.size();
    return Step{.have = {.transfer = transfer,
                         .bytes = transfer == transfer_ || transfer == finished_ ? known : 0}};
  }
  progressed_at_ = now;
  body_.append(frame.body);
  return step(term);
}

SnapshotReceiver::Step SnapshotReceiver::step(raft::Term term) {
  Step step{.have = {.transfer = transfer_, .bytes = body_.size()}};
  if (body_.size() < size_) {
    return step;
  }
  finished_ = transfer_;
  finished_bytes_ = size_;
  step.complete = raft::InstallSnapshot{
      .term = term,
      .snapshot = {.mark = std::move(*mark_),
                   .body = std::make_shared<const std::string>(std::move(body_))}};
  mark_.reset();
  body_ = {};
  size_ = 0;
  return step;
}

void SnapshotReceiver::give_up_if_stalled(Time now) {
  if (mark_.has_value() && now - progressed_at_ >= limits_.stall_timeout) {
    mark_.reset();
    body_ = {};
    size_ = 0;
  }
}

}  // namespace tenure::server::peers
