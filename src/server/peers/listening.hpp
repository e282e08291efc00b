#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tenure/error.hpp>

namespace tenure::server::peers {

/// A socket that listens and belongs to no loop yet: so a port that is in use is found out before
/// anything else is begun.
class Listening {
 public:
  /// `unavailable` says why not.
  [[nodiscard]] static Result<Listening> bind(const std::string& host, std::uint16_t port);

  Listening(Listening&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        port_(other.port_),
        is_v6_(other.is_v6_) {}
  Listening& operator=(Listening&&) = delete;
  ~Listening();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] bool is_v6() const noexcept { return is_v6_; }
  /// From now on the caller's.
  [[nodiscard]] int take() && { return std::exchange(descriptor_, -1); }

 private:
  Listening(int descriptor, std::uint16_t port, bool is_v6)
      : descriptor_(descriptor), port_(port), is_v6_(is_v6) {}

  int descriptor_;
  std::uint16_t port_;
  bool is_v6_;
};

}  // namespace tenure::server::peers
