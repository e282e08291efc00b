#pragma once

#include <vector>

#include "server/raft/entry.hpp"

namespace tenure::test {

/// Members 1 to 3, all voters, without addresses.
inline const std::vector<server::raft::Member> three{{.id = server::raft::MemberId{1}},
                                                     {.id = server::raft::MemberId{2}},
                                                     {.id = server::raft::MemberId{3}}};

}  // namespace tenure::test
