#include "server/peers/seed_command.hpp"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "server/config/cluster_config.hpp"
#include "server/config/units.hpp"
#include "server/peers/peer_setup.hpp"
#include "server/raft/seed.hpp"

namespace tenure::server::peers {

ExitCode run_seed(const SeedCommand& command) {
  const auto& config = command.config;
  const auto state = raft::read_state(command.from);
  const auto seeded =
      state ? raft::write_seed(
                  {.folder = config.node.data_dir,
                   .identity = expected_identity(config),
                   .members = config.has_peers() ? initial_members_of(plan_cluster(config))
                                                 : std::vector<raft::Member>{},
                   .body = *state,
                   .source =
                       command.is_current ? raft::SeedSource::current : raft::SeedSource::backup,
                   .leases = command.drops_leases ? raft::SeedLeases::drop : raft::SeedLeases::keep,
                   .longest_ttl = command.longest_ttl})
            : Result<raft::SeedResult>(std::unexpected(state.error()));
  if (!seeded) {
    std::fprintf(stderr, "tenured: seed: %s\n", seeded.error().detail.c_str());
    return ExitCode::disk;
  }
  const auto member = config.has_peers()
                          ? "member " + std::to_string(config.node.member_id) + " of cluster "
                          : std::string("a single node, cluster ");
  const auto what = command.drops_leases ? "what was in " : "all that was in ";
  std::printf("%s%s is in %s: %s%s%s\n", member.c_str(),
              std::to_string(seeded->cluster.get()).c_str(), config.node.data_dir.c_str(), what,
              command.from.c_str(), command.drops_leases ? ", without leases" : "");
  if (seeded->grants_after > core::ClusterTime{}) {
    std::printf("No lock is granted for %s after the start. See --longest-ttl and --current.\n",
                print_duration(seeded->grants_after).c_str());
  }
  return ExitCode::stopped;
}

}  // namespace tenure::server::peers
