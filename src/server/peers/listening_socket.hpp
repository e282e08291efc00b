#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tenure/error.hpp>

namespace tenure::server::peers {

/// Listening TCP socket that is not attached to an event loop yet. Binding comes first in a start,
/// so that a port in use is reported before anything is written to disk. Move-only; not thread
/// safe.
class ListeningSocket {
 public:
  /// `unavailable`: the address cannot be bound.
  [[nodiscard]] static Result<ListeningSocket> bind(const std::string& host, std::uint16_t port);

  ListeningSocket(ListeningSocket&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        port_(other.port_),
        is_v6_(other.is_v6_) {}
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] bool is_v6() const noexcept { return is_v6_; }
  /// Releases the descriptor to the caller.
  [[nodiscard]] int take() && { return std::exchange(descriptor_, -1); }

 private:
  ListeningSocket(int descriptor, std::uint16_t port, bool is_v6)
      : descriptor_(descriptor), port_(port), is_v6_(is_v6) {}

  int descriptor_;
  std::uint16_t port_;
  bool is_v6_;
};

}  // namespace tenure::server::peers
