// The server's end of a gRPC connection over a transport in memory. The input is a sequence of what
// a client and the network do: frames that are put together here, raw bytes, delays of writes, the
// passing of time.

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <google/protobuf/wrappers.pb.h>

#include "fuzz/input.hpp"
#include "grpc/connection.hpp"

namespace tenure::fuzz {
namespace {

using boost::system::error_code;
namespace asio = boost::asio;

constexpr std::size_t steps_max = 200;

/// The network: hands over what the target feeds, and ends a write when the target lets it.
class Wire {
 public:
  explicit Wire(asio::io_context& loop) : loop_(loop) {}

  void feed(std::string_view bytes) {
    if (reader_) {
      std::exchange(reader_, {})(
          {}, {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    }
  }
  /// Ends the write that is under way.
  void finish_write(const error_code& error = {}) {
    if (writer_) {
      std::exchange(writer_, {})(error);
    }
  }
  void read(net::Transport::Arrived arrived) {
    require(!reader_, "one read at a time");
    reader_ = std::move(arrived);
  }
  void write(net::Transport::Done done) {
    require(!writer_, "one write at a time");
    writer_ = std::move(done);
  }
  void close() {
    is_closed_ = true;
    asio::post(loop_, [reader = std::exchange(reader_, {}),
                       writer = std::exchange(writer_, {})]() mutable {
      if (reader) {
        reader(asio::error::operation_aborted, {});
      }
      if (writer) {
        writer(asio::error::operation_aborted);
      }
    });
  }
  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }

 private:
  asio::io_context& loop_;
  net::Transport::Arrived reader_;
  net::Transport::Done writer_;
  bool is_closed_ = false;
};

class FakeTransport final : public net::Transport {
 public:
  FakeTransport(asio::io_context& loop, std::shared_ptr<Wire> wire)
      : loop_(loop), wire_(std::move(wire)) {}

  void handshake(Done done) override {
    asio::post(loop_, [done = std::move(done)]() mutable { done({}); });
  }
  void read(Arrived arrived) override { wire_->read(std::move(arrived)); }
  void write(std::span<const char> /*bytes*/, Done done) override { wire_->write(std::move(done)); }
  void write(std::vector<asio::const_buffer> /*parts*/, Done done) override {
    wire_->write(std::move(done));
  }
  void close() override { wire_->close(); }

 private:
  asio::io_context& loop_;
  std::shared_ptr<Wire> wire_;
};

/// How a call behaves, by its path.
enum class Manner : std::uint8_t { echoes, streams, holds_back, finishes_early, stays_silent };
constexpr std::array<std::string_view, 6> paths{"/f/echoes",       "/f/streams",
                                                "/f/holds_back",   "/f/finishes_early",
                                                "/f/stays_silent", "/f/unknown"};

/// Number of opened calls, and of calls that were notified of their end.
struct Tally {
  std::size_t opened = 0;
  std::size_t closed = 0;
};

class FuzzedCall final : public grpc::Call {
 public:
  FuzzedCall(const grpc::CallInfo& info, Manner manner, Tally& tally)
      : Call(info), manner_(manner), tally_(tally) {
    ++tally_.opened;
  }

 private:
  void received(std::string_view message) override {
    switch (manner_) {
      case Manner::echoes: answer(message); break;
      case Manner::streams:
        // More than came, so that answers pile up.
        answer(std::string(message) + std::string(2000, 'x'));
        break;
      case Manner::holds_back:
        pause_reading();
        answer(message);
        break;
      case Manner::finishes_early:
        finish({grpc::StatusCode::invalid_argument, std::string(message.substr(0, 300))});
        break;
      case Manner::stays_silent: break;
    }
  }
  void half_closed() override {
    if (manner_ != Manner::stays_silent) {
      finish({});
    }
  }
  void drained() override { resume_reading(); }
  void closed() override {
    require(!std::exchange(is_closed_, true), "a call is closed once");
    ++tally_.closed;
  }
  void answer(std::string_view text) {
    google::protobuf::BytesValue value;
    value.set_value(std::string(text));
    send(value);
  }

  Manner manner_;
  Tally& tally_;
  bool is_closed_ = false;
};

// Frames, RFC 9113 4.1.

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream,
                  std::string_view payload) {
  std::string bytes;
  for (const auto shift : {16U, 8U, 0U}) {
    bytes += static_cast<char>(payload.size() >> shift);
  }
  bytes += static_cast<char>(type);
  bytes += static_cast<char>(flags);
  for (const auto shift : {24U, 16U, 8U, 0U}) {
    bytes += static_cast<char>(stream >> shift);
  }
  return bytes += payload;
}

/// A literal header field that enters no table, RFC 7541 6.2.2. REQUIRES: both below 127 bytes.
std::string literal(std::string_view name, std::string_view value) {
  std::string bytes(1, '\0');
  bytes += static_cast<char>(name.size());
  bytes += name;
  bytes += static_cast<char>(value.size());
  return bytes += value;
}

std::string headers(std::uint32_t stream, std::string_view path, std::uint8_t flags) {
  std::string block = "\x83\x86";  // :method POST, :scheme http
  block += literal(":path", path) + literal(":authority", "a");
  block += literal("content-type", "application/grpc") + literal("te", "trailers");
  return frame(1, flags, stream, block);
}

std::string message(std::string_view content, std::size_t claimed, std::uint8_t compressed) {
  std::string bytes(1, static_cast<char>(compressed));
  for (const auto shift : {24U, 16U, 8U, 0U}) {
    bytes += static_cast<char>(claimed >> shift);
  }
  return bytes += content;
}

std::string fixed32(std::size_t number) {
  std::string bytes;
  for (const auto shift : {24U, 16U, 8U, 0U}) {
    bytes += static_cast<char>(number >> shift);
  }
  return bytes;
}

/// A connection, and a client that the input drives.
class Session {
 public:
  Session() {
    for (std::size_t i = 0; i + 1 < paths.size(); ++i) {
      context_.router.add(std::string(paths[i]), {.open =
                                                      [this, i](const grpc::CallInfo& info) {
                                                        return std::make_shared<FuzzedCall>(
                                                            info, static_cast<Manner>(i), tally_);
                                                      },
                                                  .ended = [](grpc::StatusCode) {}});
    }
    connection_ = std::make_shared<grpc::Connection>(
        context_, std::make_unique<FakeTransport>(loop_, wire_), "127.0.0.1:1");
    connection_->open([this](const std::shared_ptr<grpc::Connection>&) { connection_.reset(); });
    run();
  }

  void run_all(Input& input) {
    if (input.below(8) != 0) {
      feed("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, ""));
    }
    for (std::size_t i = 0; i < steps_max && !input.is_empty() && connection_; ++i) {
      step(input);
      run();
    }
    if (connection_) {
      connection_->close();
    }
    run();
    require(!connection_, "a closed connection is given up");
    require(tally_.opened == tally_.closed, "every call is notified of its end");
    require(context_.buffered == 0, "no buffered byte is left in the count");
  }

 private:
  void step(Input& input) {
    const std::uint32_t stream = 1 + 2 * static_cast<std::uint32_t>(input.below(16));
    switch (input.below(12)) {
      case 0: feed(input.sized_text()); break;
      case 1:
      case 2: feed(headers(stream, paths[input.below(paths.size())], end_of(input))); break;
      case 3:
      case 4: {
        const auto content = input.text(input.number() % 2048);
        const auto claimed = input.below(4) == 0 ? input.number() : content.size();
        feed(frame(0, end_of(input) & 1U, stream,
                   message(content, claimed, input.below(8) == 7 ? 1 : 0)));
        break;
      }
      case 5: feed(frame(3, 0, stream, fixed32(input.byte()))); break;  // RST_STREAM
      case 6:                                                           // WINDOW_UPDATE
        feed(frame(8, 0, input.below(2) == 0 ? 0 : stream, fixed32(input.number())));
        break;
      case 7: feed(frame(4, 0, 0, input.text(6))); break;  // SETTINGS
      case 8: wire_->finish_write(); break;
      case 9: wire_->finish_write(asio::error::connection_reset); break;
      case 10: pass_time(input); break;
      default: leave(input); break;
    }
  }

  /// END_HEADERS, and END_STREAM if the input selects it.
  static std::uint8_t end_of(Input& input) {
    return static_cast<std::uint8_t>(4U | (input.below(2) == 0 ? 1U : 0U));
  }
  void feed(std::string_view bytes) { wire_->feed(bytes); }
  void pass_time(Input& input) {
    now_ += std::chrono::seconds(input.below(20));
    connection_->expire_requests(now_);
    connection_->check(now_);
  }
  void leave(Input& input) {
    // Seldom: the rest of the input would have nothing to do.
    if (input.byte() == 0) {
      connection_->drain();
    }
  }
  void run() {
    loop_.restart();
    loop_.poll();
  }

  asio::io_context loop_{1};
  std::shared_ptr<Wire> wire_ = std::make_shared<Wire>(loop_);
  Tally tally_;
  grpc::ServerContext context_{.loop = loop_,
                               .message_bytes_max = 1024,
                               .calls_per_connection_max = 8,
                               .connection_bytes_max = 16'384,
                               .memory_bytes_max = 32'768,
                               .open_calls_max = 4};
  std::shared_ptr<grpc::Connection> connection_;
  grpc::Http2Connection::Clock::time_point now_ = grpc::Http2Connection::Clock::now();
};

}  // namespace
}  // namespace tenure::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tenure::fuzz::Input input(data, size);
  tenure::fuzz::Session session;
  session.run_all(input);
  return 0;
}
