#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

namespace tenure::server {

/// Member of a cluster, as its operator describes it.
struct InitialMember {
  std::uint64_t id{};
  std::string peer{};    ///< Advertised host:port for the other members.
  std::string client{};  ///< Advertised host:port for clients.

  friend bool operator==(const InitialMember&, const InitialMember&) = default;
};

/// Checks a member that joins a running cluster. `invalid_argument`: the id is 0, or an address is
/// invalid. The addresses are replicated, so the other members must be able to connect to them.
[[nodiscard]] Result<void> check_member(const InitialMember& member);

/// Every command waits for a quorum, and nine members already tolerate four failures.
inline constexpr std::size_t initial_members_max = 9;

/// Parses "1=db1:7422/db1:7420,2=db2:7422/db2:7420,3=db3:7422/db3:7420": id, peer address, client
/// address. Returns the members by id. `invalid_argument`: an invalid or repeated id or address,
/// two members (a quorum would need both), or more than initial_members_max.
[[nodiscard]] Result<std::vector<InitialMember>> parse_members(std::string_view text);

/// Cluster id as a hash of the list and `name`. Independent of the order of the list, so all
/// initial members compute the same id and no member has to start first. Never 0, and fits into a
/// TOML integer. `name` distinguishes clusters that use, or used, the same addresses.
/// The id protects members from joining another cluster by mistake; it is no secret.
[[nodiscard]] std::uint64_t cluster_id_of(const std::vector<InitialMember>& members,
                                          std::string_view name);

}  // namespace tenure::server
