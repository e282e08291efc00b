#include "server/peers/seeding.hpp"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "server/config/cluster_config.hpp"
#include "server/config/units.hpp"
#include "server/peers/joining.hpp"
#include "server/raft/seed.hpp"

namespace tenure::server::peers {

ExitCode run_seed(const SeedOrder& order) {
  const auto& config = order.config;
  const auto state = raft::read_state(order.from);
  const auto planted =
      state
          ? raft::plant(
                {.folder = config.node.data_dir,
                 .identity = expected_identity(config),
                 .members = config.has_peers() ? founders_of(plan_cluster(config))
                                               : std::vector<raft::Member>{},
                 .body = *state,
                 .source = order.is_current ? raft::SeedSource::current : raft::SeedSource::backup,
                 .leases = order.drops_leases ? raft::SeedLeases::drop : raft::SeedLeases::keep,
                 .longest_ttl = order.longest_ttl})
          : Result<raft::Planted>(std::unexpected(state.error()));
  if (!planted) {
    std::fprintf(stderr, "tenured: seed: %s\n", planted.error().detail.c_str());
    return ExitCode::disk;
  }
  const auto member = config.has_peers()
                          ? "member " + std::to_string(config.node.member_id) + " of cluster "
                          : std::string("a single node, cluster ");
  const auto what = order.drops_leases ? "what was in " : "all that was in ";
  std::printf("%s%s is in %s: %s%s%s\n", member.c_str(),
              std::to_string(planted->cluster.get()).c_str(), config.node.data_dir.c_str(), what,
              order.from.c_str(), order.drops_leases ? ", without leases" : "");
  if (planted->grants_after > core::ClusterTime{}) {
    std::printf("No lock is granted for %s after the start. See --longest-ttl and --current.\n",
                print_duration(planted->grants_after).c_str());
  }
  return ExitCode::stopped;
}

}  // namespace tenure::server::peers
