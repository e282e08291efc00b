#include "server/raft/entry.hpp"

#include "server/raft/shim.h"

namespace tenure::server::raft {

std::string encode_members(const std::vector<Member>& members) {
  std::vector<shim_member> flat;
  flat.reserve(members.size());
  for (const auto& member : members) {
    flat.push_back({.id = member.id.get(), .role = static_cast<int>(member.part)});
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
    members.push_back({.id = MemberId{member.id},
                       .part = member.role == shim_voter ? Part::voter : Part::standby});
  }
  return members;
}

}  // namespace tenure::server::raft
