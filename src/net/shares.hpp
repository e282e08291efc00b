#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <absl/container/flat_hash_map.h>
#include <boost/asio/ip/address.hpp>

namespace tenure::net {

/// Fair-share limiter: counts the used units of a limit, in total and by party (a user, an
/// address), so that one party cannot exhaust it. Not thread safe.
class Shares {
 public:
  struct Limits {
    std::size_t total_max = 0;  ///< Units of all parties.
    std::size_t each_max = 0;   ///< Units of one party.
  };
  /// One party gets at most three quarters, rounded up.
  [[nodiscard]] static constexpr Limits three_quarters_of(std::size_t total_max) {
    return {.total_max = total_max, .each_max = total_max - total_max / 4};
  }

  /// One unit of the limit, until it is released or destroyed. REQUIRES: the Shares outlive it.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : shares_(std::exchange(other.shares_, nullptr)), party_(std::move(other.party_)) {}
    Share& operator=(Share&& other) noexcept {
      Share moved(std::move(other));
      std::swap(shares_, moved.shares_);
      std::swap(party_, moved.party_);
      return *this;
    }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() { release(); }
    void release() noexcept;

   private:
    friend class Shares;
    Share(Shares& shares, std::string party) : shares_(&shares), party_(std::move(party)) {}

    Shares* shares_ = nullptr;
    std::string party_;
  };

  explicit Shares(Limits limits) : limits_(limits) {}
  Shares(const Shares&) = delete;
  Shares& operator=(const Shares&) = delete;

  /// Takes one unit for a party. Returns nothing if a limit is reached.
  [[nodiscard]] std::optional<Share> take(const std::string& party);
  [[nodiscard]] std::size_t taken() const noexcept { return taken_; }

 private:
  const Limits limits_;
  std::size_t taken_ = 0;
  absl::flat_hash_map<std::string, std::size_t> by_party_;
};

/// The part of an address that one client controls: an IPv4 address, or the /64 network of an IPv6
/// address, within which a host may choose its addresses.
[[nodiscard]] std::string network_of(const boost::asio::ip::address& address);
/// The same of an address with its port, as to_string() writes them.
[[nodiscard]] std::string network_of(std::string_view endpoint);

}  // namespace tenure::net
