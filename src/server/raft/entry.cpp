#include "server/raft/entry.hpp"

#include <string_view>

#include "server/raft/shim_views.hpp"

namespace tenure::server::raft {
namespace {

// libraft stores one address for each member, so both addresses are joined by a space, which
// neither contains. A member without addresses keeps the encoding of earlier versions.
std::string joined_addresses(const Member& member) {
  return member.peer.empty() && member.client.empty() ? std::string()
                                                      : member.peer + " " + member.client;
}

}  // namespace

Member member_of(const shim_member& flat) {
  const std::string_view address = flat.address;
  const auto space = address.find(' ');
  const bool has_both = space != std::string_view::npos;
  return {.id = MemberId{flat.id},
          .role = flat.role == shim_voter ? MemberRole::voter : MemberRole::learner,
          .peer = std::string(has_both ? address.substr(0, space) : std::string_view()),
          .client = std::string(has_both ? address.substr(space + 1) : std::string_view())};
}

std::string encode_members(const std::vector<Member>& members) {
  std::vector<shim_member> flat;
  flat.reserve(members.size());
  for (const auto& member : members) {
    shim_member one{.id = member.id.get(), .role = static_cast<int>(member.role), .address = {}};
    const auto address = joined_addresses(member);
    if (address.size() >= sizeof one.address) {
      return {};
    }
    address.copy(static_cast<char*>(one.address), address.size());
    flat.push_back(one);
  }
  std::string bytes(shim_encode_members(flat.data(), flat.size(), nullptr, 0), '\0');
  shim_encode_members(flat.data(), flat.size(), bytes.data(), bytes.size());
  return bytes;
}

std::vector<Member> decode_members(const std::string& bytes) {
  const shim_bytes view{.start = bytes.data(), .size = bytes.size()};
  std::vector<shim_member> flat(shim_decode_members(view, nullptr, 0));
  shim_decode_members(view, flat.data(), flat.size());
  std::vector<Member> members;
  members.reserve(flat.size());
  for (const auto& member : flat) {
    members.push_back(member_of(member));
  }
  return members;
}

}  // namespace tenure::server::raft
