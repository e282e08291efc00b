#include "support/core/fixtures.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "core/restore.hpp"
#include "core/state_machine.hpp"
#include "core/version.hpp"

namespace tenure::core {
namespace {

using std::chrono::seconds;

constexpr LeaseId ann{1};
constexpr LeaseId bob{2};
constexpr LeaseId cid{3};
constexpr LeaseId dora{4};  // the one that the store chooses

Item lock(std::string name, LockMode mode = LockMode::exclusive) {
  return {.name = std::move(name), .claim = Whole{.mode = mode}};
}

Item keys(std::string space, BytesRange range, LockMode mode) {
  return {.name = std::move(space), .claim = Keys{.range = std::move(range), .mode = mode}};
}

Item permits(std::string name, std::uint32_t wanted) {
  return {.name = std::move(name), .claim = Permits{.capacity = 300, .wanted = wanted}};
}

Acquire acquire(LeaseId lease, std::uint64_t request, std::vector<Item> items) {
  return {.lease = lease,
          .request = RequestId{request},
          .items = std::move(items),
          .self_conflict = SelfConflict::wait,
          .owner = "owner " + std::to_string(lease.get()),
          .metadata = std::string("\0meta\xFF", 6)};
}

std::filesystem::path path_of(const std::string& name) {
  return std::filesystem::path(TENURE_SOURCE_DIR) / "tests" / "fixtures" / name;
}

}  // namespace

Limits fixture_limits() {
  return {.answers_per_lease_max = 1024};
}

State fixture_state() {
  StateMachine machine(fixture_limits());
  const auto apply = [&](const Command& command) {
    return machine.apply(command, {.time = machine.state().now + seconds(1)});
  };
  for (const auto lease : {ann, bob, cid}) {
    apply(GrantLease{.id = lease,
                     .request = RequestId{9},
                     .ttl = seconds(60),
                     .client = "client " + std::to_string(lease.get() % 2),
                     .address = "10.0.0." + std::to_string(lease.get())});
  }
  apply(GrantLease{.ttl = seconds(300)});
  apply(acquire(ann, 1, {lock("a"), permits("p", 200)}));
  apply(acquire(bob, 1,
                {keys("s", BytesRange::at_least("k"), LockMode::shared),
                 keys("s", *BytesRange::half_open("a", "c"), LockMode::update)}));
  apply(acquire(bob, 2, {lock("r", LockMode::shared)}));
  apply(acquire(cid, 1, {lock("r", LockMode::shared), lock("x")}));
  auto stronger = acquire(bob, 3, {lock("r")});
  stronger.self_conflict = SelfConflict::reenter;
  apply(stronger);
  apply(acquire(cid, 2, {lock("a"), lock("free")}));
  auto impatient = acquire(bob, 5, {lock("a")});
  impatient.queue = Queue::skip;
  apply(impatient);
  auto own = acquire(ann, 2, {permits("p", 200)});
  own.self_conflict = SelfConflict::refuse;
  apply(own);
  apply(acquire(dora, 3, {lock("free"), lock("r", LockMode::shared)}));
  apply(Release{.lease = cid, .request = RequestId{3}, .what = Target{.name = "x"}});
  apply(Release{.lease = cid, .request = RequestId{4}, .what = FencingToken{1}});
  apply(Abandon{.lease = cid, .request = RequestId{5}});
  apply(Compact{Revision{6}});
  apply(GrantLease{.id = LeaseId{90}, .request = RequestId{9}, .ttl = seconds(60)});
  apply(RevokeLease{LeaseId{90}});
  return machine.state();
}

Batch fixture_batch() {
  const auto range = BytesRange::point("k");
  auto first = acquire(ann, 2,
                       {lock("a"), permits("p", 2), keys("s", range, LockMode::update),
                        keys("t", BytesRange::at_least("x"), LockMode::shared)});
  first.queue = Queue::skip;
  first.self_conflict = SelfConflict::reenter;
  return {.stamp = {.time = seconds(1), .revision = Revision{77}},
          .commands = {
              first,
              Acquire{},
              Release{.lease = ann, .request = RequestId{3}, .what = FencingToken{300}},
              Release{.lease = ann, .what = Target{.name = "a"}},
              Release{.lease = ann, .what = Target{.name = "s", .range = range}},
              Abandon{.lease = ann, .request = RequestId{4}},
              GrantLease{.id = LeaseId{5},
                         .request = RequestId{6},
                         .ttl = seconds(30),
                         .client = "ann",
                         .address = "[::1]:7420"},
              GrantLease{.ttl = ClusterTime{-1}},
              RenewLeases{.leases = {ann, LeaseId{~0ULL}}},
              RevokeLease{.lease = LeaseId{7}},
              Tick{},
              ForceRelease{.resource = {.name = "a"}},
              ForceRelease{.resource = {.name = "s", .kind = ResourceKind::space},
                           .token = FencingToken{8}},
              Compact{.revision = Revision{9}},
              SetLimits{.limits = {.name_bytes_max = 10,
                                   .ttl_min = ClusterTime{-1},
                                   .answers_per_lease_max = 1024}},
          }};
}

State fixture_state_2() {
  auto backup = fixture_state();
  convert(backup, version_2);
  StateMachine before(std::move(backup));
  const auto run = [](StateMachine& machine, const Command& command) {
    return machine.apply(command, {.time = machine.state().now + seconds(1)});
  };
  run(before, SetLimits{{.answers_per_lease_max = 1024,
                         .state_bytes_max = 1'000'000,
                         .state_bytes_per_user_max = 100'000,
                         .answer_retention = seconds(500)}});
  const LeaseId eve{91};
  run(before, GrantLease{.id = eve,
                         .request = RequestId{9},
                         .ttl = seconds(90),
                         .client = "eve/app",
                         .address = "10.0.0.9",
                         .user = "eve"});
  const auto held = run(before, acquire(eve, 1, {lock("e")})).outcome;
  run(before, acquire(eve, 2, {lock("f")}));
  run(before, ForceRelease{.resource = {.name = "f"}, .operator_name = "root", .reason = "a test"});
  run(before, Downgrade{.lease = eve,
                        .request = RequestId{3},
                        .token = std::get<Granted>(held).token,
                        .mode = LockMode::shared});
  run(before, SetTtl{.lease = eve, .request = RequestId{4}, .ttl = seconds(120)});
  auto state = before.state();
  begin_restoration(state, seconds(400));
  StateMachine after(std::move(state));
  run(after, ConfirmHolds{.lease = eve, .tokens = {std::get<Granted>(held).token}});
  run(after, acquire(eve, 5, {lock("a"), lock("g")}));
  run(after, acquire(eve, 6, {permits("p", 299)}));
  return after.state();
}

Batch fixture_batch_2() {
  auto batch = fixture_batch();
  batch.version = version_2;
  const std::vector<Command> added{
      GrantLease{.id = LeaseId{5}, .ttl = seconds(30), .client = "ann/app", .user = "ann"},
      ForceRelease{.resource = {.name = "a"}, .operator_name = "root", .reason = "a test"},
      SetLimits{.limits = {.answers_per_lease_max = 1024,
                           .state_bytes_max = 1'000'000,
                           .state_bytes_per_user_max = 100'000,
                           .answer_retention = seconds(500)}},
      Downgrade{.lease = ann,
                .request = RequestId{10},
                .token = FencingToken{300},
                .mode = LockMode::update},
      SetTtl{.lease = ann, .request = RequestId{11}, .ttl = seconds(7)},
      SetClusterVersion{version_2},
      ConfirmHolds{.lease = ann, .tokens = {FencingToken{300}, FencingToken{301}}},
      ConfirmHolds{.lease = bob},
  };
  batch.commands.insert(batch.commands.end(), added.begin(), added.end());
  return batch;
}

std::string read_fixture(const std::string& name) {
  std::ifstream in(path_of(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_fixture(const std::string& name, const std::string& bytes) {
  std::filesystem::create_directories(path_of(name).parent_path());
  std::ofstream(path_of(name), std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace tenure::core
