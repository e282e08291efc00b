#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/version.hpp"
#include "server/config/cluster_config.hpp"
#include "server/config/command_line.hpp"
#include "server/config/config.hpp"
#include "server/config/members.hpp"
#include "server/peers/peer_setup.hpp"
#include "support/raft/folder.hpp"
#include "support/rpc/certificates.hpp"

namespace tenure::server {
namespace {

constexpr const char* three =
    "1=127.0.0.1:7001/127.0.0.1:7011,2=127.0.0.1:7002/127.0.0.1:7012,"
    "3=127.0.0.1:7003/127.0.0.1:7013";

Config member(std::uint64_t id, const std::string& members = three) {
  Config config;
  config.node.member_id = id;
  config.cluster.members = members;
  return config;
}

std::string error_of_list(const Config& config) {
  const auto checked = check(config);
  return checked ? "" : checked.error().detail;
}

std::string error_of_list(const std::string& list) {
  const auto parsed = parse_members(list);
  return parsed ? "" : parsed.error().detail;
}

void expect_words(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << text;
}

TEST(ConfigCluster, a_list_is_read_by_id_whatever_its_order) {
  const auto members = parse_members("3=c:7422/c:7420, 1=a:7422/a:7420,2=[::1]:7422/b:7420");

  ASSERT_TRUE(members) << members.error().detail;
  EXPECT_EQ(*members,
            (std::vector<InitialMember>{
                {1, "a:7422", "a:7420"}, {2, "[::1]:7422", "b:7420"}, {3, "c:7422", "c:7420"}}));
  EXPECT_EQ(parse_members("")->size(), 0U);
  EXPECT_EQ(parse_members("1=a:1/a:2")->size(), 1U);
}

// Regression: one of these settings was never read.
TEST(ConfigCluster, log_settings_reach_the_store) {
  auto config = member(2);
  config.node.data_dir = "somewhere";
  config.raft = {.segment_bytes = 1 << 20,
                 .snapshot_bytes = 2 << 20,
                 .entries_in_flight_max = 7,
                 .commands_in_flight_max = 8,
                 .bytes_in_flight_max = 9 << 20,
                 .election_timeout = std::chrono::milliseconds(700),
                 .heartbeat = std::chrono::milliseconds(70)};

  const auto options = peers::node_options(config, {});

  EXPECT_EQ(options.folder, "somewhere");
  EXPECT_EQ(options.identity.member, raft::MemberId{2});
  EXPECT_EQ(options.initial_members.size(), 3U);
  EXPECT_EQ(options.segment_bytes, config.raft.segment_bytes);
  EXPECT_EQ(options.snapshot_log_bytes, config.raft.snapshot_bytes);
  EXPECT_EQ(options.entries_in_flight_max, config.raft.entries_in_flight_max);
  EXPECT_EQ(options.in_flight.commands, config.raft.commands_in_flight_max);
  EXPECT_EQ(options.in_flight.bytes, config.raft.bytes_in_flight_max);
  EXPECT_EQ(options.election_timeout, config.raft.election_timeout);
  EXPECT_EQ(options.heartbeat, config.raft.heartbeat);
  EXPECT_EQ(Config{}.raft.entries_in_flight_max, raft::NodeOptions{}.entries_in_flight_max);
}

TEST(ConfigCluster, each_mistake_in_the_list_is_named) {
  expect_words(error_of_list("1"), "is not a member");
  expect_words(error_of_list("1=a:1"), "is not a member");
  expect_words(error_of_list("0=a:1/a:2"), "is not a member id");
  expect_words(error_of_list("x=a:1/a:2"), "is not a member id");
  expect_words(error_of_list("1=a/a:2"), "is not an address");
  expect_words(error_of_list("1=0.0.0.0:1/a:2"), "cannot be advertised");
  expect_words(error_of_list("1=a:0/a:2"), "cannot be advertised");
  expect_words(error_of_list("1=a:1/a:2,2=b:1/b:2"), "two members tolerate no failure");
  expect_words(error_of_list("1=a:1/a:2,1=b:1/b:2,3=c:1/c:2"), "'1' is the id of two members");
  expect_words(error_of_list("1=a:1/a:2,2=a:1/b:2,3=c:1/c:2"), "'a:1' occurs twice");
  expect_words(error_of_list("1=a:1/a:1,2=b:1/b:2,3=c:1/c:2"), "'a:1' occurs twice");
  std::string many;
  for (int i = 1; i <= 10; ++i) {
    const auto id = std::to_string(i);
    many += (i == 1 ? "" : ",") + id + "=h" + id + ":1/h" + id + ":2";
  }
  expect_words(error_of_list(many), "10 members are too many");
}

// The members can therefore start in any order, without distributing an id.
TEST(ConfigCluster, all_members_find_the_same_cluster_id) {
  const auto id = plan_cluster(member(1)).cluster_id;
  auto turned = member(3,
                       "3=127.0.0.1:7003/127.0.0.1:7013,2=127.0.0.1:7002/127.0.0.1:7012,"
                       "1=127.0.0.1:7001/127.0.0.1:7011");

  EXPECT_NE(id, 0U);
  EXPECT_EQ(plan_cluster(turned).cluster_id, id);
  turned.cluster.name = "another";
  EXPECT_NE(plan_cluster(turned).cluster_id, id);
  turned.node.cluster_id = 12;
  EXPECT_EQ(plan_cluster(turned).cluster_id, 12U);
}

TEST(ConfigCluster, a_member_finds_itself_in_the_list) {
  const auto plan = plan_cluster(member(2));

  EXPECT_EQ(plan.members.size(), 3U);
  EXPECT_EQ(plan.peer_address, "127.0.0.1:7002");
  EXPECT_EQ(plan.client_address, "127.0.0.1:7012");
  EXPECT_EQ(error_of_list(member(2)), "");
}

TEST(ConfigCluster, a_member_outside_the_list_is_refused_unless_it_joins) {
  expect_words(error_of_list(member(4)), "member 4 (node.member_id) is not in the list");
  expect_words(error_of_list(member(0)), "required in a cluster");

  auto joiner = member(4);
  joiner.cluster.join = true;
  EXPECT_EQ(error_of_list(joiner), "");
  const auto plan = plan_cluster(joiner);
  EXPECT_TRUE(plan.members.empty());
  EXPECT_EQ(plan.cluster_id, plan_cluster(member(1)).cluster_id);
  EXPECT_EQ(plan.peer_address, "127.0.0.1:7422");
}

// Its votes were lost with its data directory, so the same id could vote twice in a term.
TEST(ConfigCluster, an_initial_member_cannot_rejoin_under_its_id) {
  auto config = member(2);
  config.cluster.join = true;

  expect_words(error_of_list(config), "joins under an unused id");
}

TEST(ConfigCluster, a_joining_member_must_name_the_cluster) {
  auto config = member(4, "");
  config.cluster.join = true;
  expect_words(error_of_list(config), "requires node.cluster_id");
  config.node.cluster_id = 77;
  EXPECT_EQ(error_of_list(config), "");
}

// Peers that connect to 0.0.0.0 would reach themselves.
TEST(ConfigCluster, a_joining_member_must_set_its_advertised_address) {
  auto config = member(4);
  config.cluster.join = true;
  config.listen.insecure = true;
  config.listen.peers = "0.0.0.0:7422";
  config.listen.grpc = "[::]:7420";
  expect_words(error_of_list(config),
               "cluster.peer_address: '0.0.0.0:7422' cannot be advertised: expected a host other "
               "than a wildcard, and a port (default: listen.peers)");
  expect_words(error_of_list(config), "cluster.client_address: '[::]:7420' cannot be advertised");
  config.cluster.peer_address = "db4:0";
  config.cluster.client_address = "db4:7420";
  expect_words(error_of_list(config), "cluster.peer_address: 'db4:0' cannot be advertised");
  config.cluster.peer_address = "db4:7422";
  EXPECT_EQ(error_of_list(config), "");
}

TEST(ConfigCluster, peers_on_the_network_need_tls_or_insecure) {
  auto config = member(1, "1=a:7422/a:7420,2=b:7422/b:7420,3=c:7422/c:7420");
  expect_words(error_of_list(config), "cluster.members: a:7422 is reachable from the network");
  config = member(1);
  config.listen.peers = "0.0.0.0:7422";
  expect_words(error_of_list(config), "listen.peers: 0.0.0.0:7422 is reachable from the network");
  config.listen.insecure = true;
  EXPECT_EQ(error_of_list(config), "");

  // A single node does not open the port.
  Config alone;
  alone.listen.peers = "0.0.0.0:7422";
  EXPECT_EQ(error_of_list(alone), "");
  EXPECT_FALSE(alone.has_peers());
}

TEST(ConfigCluster, certificates_come_all_three_or_not_at_all) {
  auto config = member(1);
  config.peer_tls.cert = "/nowhere/cert.pem";
  expect_words(error_of_list(config), "all three or none");
  expect_words(error_of_list(config), "peer_tls.cert: cannot read '/nowhere/cert.pem'");
}

// Every request that a member accepts must fit into a message between members.
TEST(ConfigCluster, requests_are_not_larger_than_what_members_pass_on) {
  auto config = member(1);
  config.service.message_bytes_max = std::size_t{33} << 20U;

  expect_words(error_of_list(config), "members replicate requests of at most 32MiB");
}

TEST(ConfigCluster, a_questionable_configuration_is_a_warning) {
  const auto warnings_of = [](const Config& config) {
    std::string all;
    for (const auto& warning : warnings_about(config)) {
      all += warning + "\n";
    }
    return all;
  };
  EXPECT_EQ(warnings_of(Config{}), "");
  expect_words(warnings_of(member(1)), "peers are not authenticated");
  expect_words(warnings_of(member(1, std::string(three) + ",4=127.0.0.1:7004/127.0.0.1:7014")),
               "4 members tolerate no more failures than 3");
}

TEST(ConfigCluster, an_unreadable_tls_file_is_refused_by_name) {
  const test::TemporaryFolder folder;
  test::Authority ours;
  test::Authority theirs;
  const auto certificate = ours.sign({.name = "one", .alternatives = "URI:tenure:member/1"});
  auto config = member(1);
  config.listen.peers = "127.0.0.1:0";
  const auto refused = [](const Config& wrong) {
    const auto made = peers::prepare_transport(wrong, raft::ignore_event);
    return made ? std::string() : made.error().detail;
  };

  EXPECT_EQ(refused(config), "");
  config.peer_tls = {.cert = certificate.file, .key = certificate.key, .ca = theirs.file()};
  expect_words(refused(config), "certificate of another cluster");
  config.peer_tls.ca = ours.file();
  EXPECT_EQ(refused(config), "");
  test::write_content(folder / "secret", "short\n");
  config.cluster.secret_file = folder / "secret";
  expect_words(refused(config), "less than 16 characters");
  test::write_content(folder / "secret", "a secret that is long enough\n");
  EXPECT_EQ(refused(config), "");

  const auto taken = peers::ListeningSocket::bind("127.0.0.1", 0);
  config.listen.peers = "127.0.0.1:" + std::to_string(taken->port());
  expect_words(refused(config), "listen.peers: cannot listen on");
}

TEST(ConfigCluster, a_shared_authority_of_members_and_clients_is_a_warning) {
  test::Authority ours;
  test::Authority theirs;
  const auto certificate = ours.sign({.name = "one", .alternatives = "URI:tenure:member/1"});
  auto config = member(1);
  config.listen.peers = "127.0.0.1:0";
  config.peer_tls = {.cert = certificate.file, .key = certificate.key, .ca = ours.file()};
  const auto warnings = [&] {
    std::string all;
    const auto made = peers::prepare_transport(
        config, [&](log::Level, std::string_view event, log::Fields /*fields*/) { all += event; });
    EXPECT_TRUE(made.has_value());
    return all;
  };

  config.tls.client_ca = theirs.file();
  EXPECT_EQ(warnings(), "");
  config.tls.client_ca = ours.file();
  expect_words(warnings(), "peer_ca_also_signs_clients");
}

TEST(ConfigCluster, the_highest_cluster_version_is_one_that_the_program_has) {
  auto config = member(1);
  config.cluster.version_max = core::newest_version.get();
  EXPECT_EQ(error_of_list(config), "");
  EXPECT_EQ(peers::versions_of(config).wanted, core::newest_version);
  config.cluster.version_max = 1;
  EXPECT_EQ(peers::versions_of(config).wanted, core::version_1);

  config.cluster.version_max = core::newest_version.get() + 1;
  expect_words(error_of_list(config),
               "cluster.version_max: this program supports cluster versions 1");
}

TEST(ConfigCluster, seed_is_a_subcommand) {
  const auto said = [](std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "tenured");
    return read_command_line(arguments);
  };

  const auto command = said(
      {"seed", "--from", "/old", "--member-id", "2", "--members", three, "--data-dir", "/new"});

  ASSERT_TRUE(std::holds_alternative<SeedCommand>(command))
      << (std::holds_alternative<ExitMessage>(command) ? std::get<ExitMessage>(command).text : "");
  EXPECT_EQ(std::get<SeedCommand>(command).from, "/old");
  EXPECT_EQ(std::get<SeedCommand>(command).config.node.member_id, 2U);
  EXPECT_EQ(std::get<SeedCommand>(command).config.node.data_dir, "/new");
  for (const auto& wrong :
       {said({"seed"}),
        said({"seed", "--from", "/old", "--join", "--member-id", "4", "--cluster-id", "7"}),
        said({"--members", "1=a"}), said({"--members", "1=a:1/a:2,2=b:1/b:2"})}) {
    ASSERT_TRUE(std::holds_alternative<ExitMessage>(wrong));
    EXPECT_EQ(std::get<ExitMessage>(wrong).code, ExitCode::usage);
  }
  EXPECT_TRUE(std::holds_alternative<SeedCommand>(said({"seed", "--from", "/old"})))
      << "to restore a single node";
  const auto refused = said({"--members", three, "--member-id", "9"});
  ASSERT_TRUE(std::holds_alternative<ExitMessage>(refused));
  EXPECT_EQ(std::get<ExitMessage>(refused).code, ExitCode::configuration);
}

}  // namespace
}  // namespace tenure::server
