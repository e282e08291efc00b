#include "server/config/members.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <openssl/evp.h>

#include "server/config/units.hpp"

namespace tenure::server {
namespace {

std::unexpected<Error> invalid_members(std::string_view text, std::string_view why) {
  return fail(Errc::invalid_argument, "'" + std::string(text) + "' " + std::string(why));
}

/// Parses one element of the list. The error repeats the invalid part.
Result<InitialMember> parse_member(std::string_view text) {
  constexpr std::string_view expected =
      "is not a member: expected id, peer address and client address, such as "
      "1=db1:7422/db1:7420";
  const auto equals = text.find('=');
  const auto slash = text.find('/', equals == std::string_view::npos ? 0 : equals);
  if (equals == std::string_view::npos || slash == std::string_view::npos) {
    return invalid_members(text, expected);
  }
  const auto id = parse_count(text.substr(0, equals));
  // The largest TOML integer: node.member_id has the same range.
  constexpr auto id_max = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!id || *id == 0 || *id > id_max) {
    return invalid_members(text.substr(0, equals), "is not a member id: ids are integers from 1");
  }
  InitialMember member{.id = *id,
                       .peer = std::string(text.substr(equals + 1, slash - equals - 1)),
                       .client = std::string(text.substr(slash + 1))};
  for (const auto& address : {member.peer, member.client}) {
    if (auto checked = check_advertised_address(address); !checked) {
      return std::unexpected(std::move(checked).error());
    }
  }
  return member;
}

/// All addresses must differ, also a peer address from a client address: they are different ports.
Result<void> check_unique(const std::vector<InitialMember>& members) {
  std::vector<std::string> addresses;
  for (const auto& member : members) {
    addresses.push_back(member.peer);
    addresses.push_back(member.client);
  }
  std::ranges::sort(addresses);
  if (const auto it = std::ranges::adjacent_find(addresses); it != addresses.end()) {
    return invalid_members(*it, "occurs twice: addresses of members must differ");
  }
  const auto same = std::ranges::adjacent_find(members, {}, &InitialMember::id);
  if (same != members.end()) {
    return invalid_members(std::to_string(same->id), "is the id of two members");
  }
  return {};
}

}  // namespace

Result<void> check_member(const InitialMember& member) {
  if (member.id == 0) {
    return fail(Errc::invalid_argument, "member id: must not be 0");
  }
  const std::pair<const char*, const std::string&> addresses[] = {
      {"peer_address", member.peer}, {"client_address", member.client}};
  for (const auto& [field, text] : addresses) {
    if (const auto checked = check_advertised_address(text); !checked) {
      return fail(Errc::invalid_argument, std::string(field) + ": " + checked.error().detail);
    }
  }
  return {};
}

Result<std::vector<InitialMember>> parse_members(std::string_view text) {
  std::vector<InitialMember> members;
  while (!text.empty()) {
    auto one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    one = one.substr(std::min(one.find_first_not_of(' '), one.size()));
    one = one.substr(0, one.find_last_not_of(' ') + 1);
    auto member = parse_member(one);
    if (!member) {
      return std::unexpected(std::move(member).error());
    }
    members.push_back(*std::move(member));
  }
  // Sorted, so that the order of the list does not change the cluster id.
  std::ranges::sort(members, {}, &InitialMember::id);
  // Refused at the start: two members are less available than one.
  if (members.size() == 2) {
    return fail(Errc::invalid_argument,
                "two members tolerate no failure, because a quorum needs both: use three or five");
  }
  if (members.size() > initial_members_max) {
    return fail(Errc::invalid_argument,
                std::to_string(members.size()) + " members are too many: use three or five");
  }
  if (auto unique = check_unique(members); !unique) {
    return std::unexpected(std::move(unique).error());
  }
  return members;
}

std::uint64_t cluster_id_of(const std::vector<InitialMember>& members, std::string_view name) {
  // Client addresses are left out of the hash: they may change without a new cluster id.
  // The first line is the version of this rule; changing the text changes all cluster ids.
  std::string text = "tenure cluster 1\n" + std::string(name) + '\n';
  for (const auto& member : members) {
    text += std::to_string(member.id) + '=' + member.peer + '\n';
  }
  // SHA-256, because all members must compute the same value on every platform and version.
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  EVP_Digest(text.data(), text.size(), sum.data(), nullptr, EVP_sha256(), nullptr);
  std::uint64_t id = 0;
  for (std::size_t i = 0; i < sizeof id; ++i) {
    id = (id << 8U) | sum[i];
  }
  id &= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  // 0 means "no id" in the settings.
  return id == 0 ? 1 : id;
}

}  // namespace tenure::server
