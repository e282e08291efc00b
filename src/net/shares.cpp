#include "net/shares.hpp"

#include <algorithm>

namespace tenure::net {

std::optional<Shares::Share> Shares::take(const std::string& party) {
  if (taken_ >= limits_.total_max) {
    return std::nullopt;
  }
  auto& mine = by_party_[party];
  if (mine >= limits_.each_max) {
    if (mine == 0) {
      by_party_.erase(party);
    }
    return std::nullopt;
  }
  ++mine;
  ++taken_;
  return Share(*this, party);
}

void Shares::Share::release() noexcept {
  auto* shares = std::exchange(shares_, nullptr);
  if (shares == nullptr) {
    return;
  }
  --shares->taken_;
  const auto it = shares->by_party_.find(party_);
  if (it != shares->by_party_.end() && --it->second == 0) {
    shares->by_party_.erase(it);
  }
}

std::string network_of(const boost::asio::ip::address& address) {
  namespace ip = boost::asio::ip;
  if (!address.is_v6()) {
    return address.to_string();
  }
  const auto v6 = address.to_v6();
  if (v6.is_v4_mapped()) {
    return ip::make_address_v4(ip::v4_mapped, v6).to_string();
  }
  auto bytes = v6.to_bytes();
  std::fill(bytes.begin() + bytes.size() / 2, bytes.end(), 0);
  return ip::address_v6(bytes).to_string();
}

std::string network_of(std::string_view endpoint) {
  std::string host(endpoint.substr(0, endpoint.rfind(':')));
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  return error ? host : network_of(address);
}

}  // namespace tenure::net
