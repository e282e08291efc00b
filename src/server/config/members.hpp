#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

namespace tenure::server {

/// One of the members that a cluster begins with.
struct InitialMember {
  std::uint64_t id{};
  std::string peer{};    ///< host:port where the other members reach it.
  std::string client{};  ///< host:port where clients reach it.

  friend bool operator==(const InitialMember&, const InitialMember&) = default;
};

inline constexpr std::size_t initial_members_max = 9;

/// "1=db1:7422/db1:7420,2=db2:7422/db2:7420,3=db3:7422/db3:7420": id, address for members, address
/// for clients. By id. `invalid_argument` says what is wrong: an id or an address that is none or
/// stands there twice, two members (neither could go on without the other), or too many.
[[nodiscard]] Result<std::vector<InitialMember>> parse_members(std::string_view text);

/// The same for the same list, in whatever order it is written, on every member: so a cluster can
/// begin without anybody being first. Never 0, and small enough for a number in TOML. `name` tells
/// clusters apart that have, or had, the same addresses.
[[nodiscard]] std::uint64_t cluster_id_of(const std::vector<InitialMember>& members,
                                          std::string_view name);

}  // namespace tenure::server
