#include <set>

#include <gtest/gtest.h>

#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

class CoreClients : public CoreTest {
 protected:
  void grant(LeaseId id, std::string client, std::string address = {}) {
    apply(GrantLease{
        .id = id, .ttl = seconds(30), .client = std::move(client), .address = std::move(address)});
  }
  [[nodiscard]] const auto& clients() const { return machine.state().leases.clients(); }
};

// 002.020: client holds leases, lease owns locks, lock has waiters, client waits.
TEST_F(CoreClients, a_client_has_the_leases_that_name_it) {
  grant(ann, "service", "10.0.0.1");
  grant(bob, "service", "10.0.0.2");
  grant(cid, "other", "10.0.0.3");
  acquire(ann, {lock("a"), lock("b")});
  acquire(bob, {lock("c")});
  acquire(bob, {lock("a")});

  EXPECT_EQ(machine.state().leases.of_client("service"), (std::set{ann, bob}));
  EXPECT_EQ(machine.state().leases.of_client("other"), std::set{cid});
  EXPECT_EQ(clients().size(), 2U);
  EXPECT_EQ(machine.state().leases.waits_of_client("service"), 1U);
}

TEST_F(CoreClients, a_client_without_a_lease_is_unknown) {
  grant(ann, "service");
  apply(RevokeLease{ann});

  EXPECT_TRUE(machine.state().leases.of_client("service").empty());
  EXPECT_TRUE(clients().empty());
}

TEST_F(CoreClients, a_lease_without_a_client_belongs_to_no_client) {
  machine = StateMachine(Limits{.leases_per_client_max = 1});
  grant(ann, "");
  grant(bob, "");

  EXPECT_EQ(machine.state().leases.all().size(), 2U);
  EXPECT_TRUE(clients().empty());
}

TEST_F(CoreClients, clients_are_the_same_after_a_restore) {
  grant(ann, "service", "10.0.0.1");
  acquire(ann, {lock("a")});
  const auto before = clients();

  const auto restored = decode(encode(machine.state()));

  EXPECT_EQ(restored.value().leases.clients(), before);
}

TEST_F(CoreClients, leases_of_a_client_are_counted) {
  machine = StateMachine(Limits{.leases_per_client_max = 2});
  const GrantLease command{
      .id = bob, .request = RequestId{1}, .ttl = seconds(30), .client = "service"};
  grant(ann, "service");
  apply(command);

  const GrantLease third{.id = cid, .ttl = seconds(30), .client = "service"};
  EXPECT_EQ(code_of(apply(third).outcome), Errc::resource_exhausted);
  EXPECT_EQ(std::get<LeaseGranted>(apply(command).outcome).id, bob) << "a retry is no new lease";
  apply(RevokeLease{ann});
  EXPECT_EQ(std::get<LeaseGranted>(apply(third).outcome).id, cid);
}

// The count is derived: it must follow every way in which a wait begins and ends.
TEST_F(CoreClients, the_wait_count_drops_at_every_end_of_a_wait) {
  grant(ann, "holder");
  grant(bob, "service");
  grant(cid, "service");
  const auto waits = [&] { return machine.state().leases.waits_of_client("service"); };
  const auto token = token_of(acquire(ann, {lock("a")}));
  acquire(bob, {lock("a")});
  acquire(bob, {lock("a")}, SelfConflict::wait);
  acquire(cid, {lock("a")});
  EXPECT_EQ(waits(), 3U);

  const auto restored = decode(encode(machine.state()));
  EXPECT_EQ(restored.value().leases.waits_of_client("service"), 3U);

  apply(Abandon{.lease = cid, .request = last_request});
  EXPECT_EQ(waits(), 2U);
  release(ann, token);
  EXPECT_EQ(waits(), 1U);
  apply(RevokeLease{bob});
  EXPECT_EQ(waits(), 0U);
  EXPECT_EQ(machine.state().leases.waiting_clients(), 0U);
}

TEST_F(CoreClients, waits_of_a_client_are_counted_over_its_leases) {
  machine = StateMachine(Limits{.waits_per_client_max = 2});
  constexpr LeaseId dora{4};
  grant(ann, "holder");
  grant(bob, "service");
  grant(cid, "service");
  grant(dora, "");
  acquire(ann, {lock("a")});
  acquire(bob, {lock("a")});
  acquire(cid, {lock("a")});

  EXPECT_EQ(code_of(acquire(bob, {lock("a")}, SelfConflict::wait)), Errc::resource_exhausted);
  apply(RevokeLease{cid});
  EXPECT_TRUE(is_queued(acquire(bob, {lock("a")}, SelfConflict::wait)));
  EXPECT_TRUE(is_queued(acquire(dora, {lock("a")}))) << "counts for no other client";
}

}  // namespace
}  // namespace tenure::core
