#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "support/rpc/fixture.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// A Session of a client: sends operations one by one, reads outcomes one by one.
class Session {
 public:
  Session(v1::LockService::Stub& locks, const v1::Hello& hello) {
    context_.set_deadline(std::chrono::system_clock::now() + RpcTest::test_timeout);
    stream_ = locks.Session(&context_);
    v1::SessionRequest request;
    *request.mutable_hello() = hello;
    EXPECT_TRUE(stream_->Write(request));
  }
  ~Session() { drop(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void drop() { context_.TryCancel(); }

  [[nodiscard]] v1::Operation operation() {
    v1::Operation made;
    made.set_id(++last_id_);
    return made;
  }
  void send(const v1::Operation& operation) {
    v1::SessionRequest request;
    *request.add_operations() = operation;
    send(request);
  }
  void send(const v1::SessionRequest& request) { EXPECT_TRUE(stream_->Write(request)); }

  v1::Outcome outcome() {
    while (outcomes_.empty() && read()) {
    }
    if (outcomes_.empty()) {
      ADD_FAILURE() << "the session ended";
      return {};
    }
    auto first = outcomes_.front();
    outcomes_.pop_front();
    return first;
  }
  std::uint64_t lost_lease() {
    while (lost_.empty() && read()) {
    }
    EXPECT_FALSE(lost_.empty());
    return lost_.empty() ? 0 : lost_.front();
  }
  v1::Taken taken() {
    while (taken_.empty() && read()) {
    }
    EXPECT_FALSE(taken_.empty());
    return taken_.empty() ? v1::Taken{} : taken_.front();
  }

  std::uint64_t lease(std::uint64_t ttl_ms = 60'000) {
    auto grant = operation();
    grant.mutable_grant_lease()->set_ttl_ms(ttl_ms);
    send(grant);
    return outcome().lease_granted().id();
  }
  v1::Operation acquire(const std::string& name, std::uint64_t lease, std::uint64_t request) {
    auto wanted = operation();
    wanted.mutable_acquire()->set_lease_id(lease);
    wanted.mutable_acquire()->set_request_id(request);
    wanted.mutable_acquire()->add_items()->set_name(name);
    return wanted;
  }
  v1::Outcome lock(const std::string& name, std::uint64_t lease, std::uint64_t request) {
    send(acquire(name, lease, request));
    return outcome();
  }

  ::grpc::Status finish() {
    stream_->WritesDone();
    while (read()) {
    }
    return stream_->Finish();
  }

 private:
  bool read() {
    v1::SessionResponse response;
    if (!stream_->Read(&response)) {
      return false;
    }
    outcomes_.insert(outcomes_.end(), response.outcomes().begin(), response.outcomes().end());
    lost_.insert(lost_.end(), response.lost_leases().begin(), response.lost_leases().end());
    taken_.insert(taken_.end(), response.taken().begin(), response.taken().end());
    return true;
  }

  ::grpc::ClientContext context_;
  std::unique_ptr<::grpc::ClientReaderWriter<v1::SessionRequest, v1::SessionResponse>> stream_;
  std::uint64_t last_id_ = 0;
  std::deque<v1::Outcome> outcomes_;
  std::deque<std::uint64_t> lost_;
  std::deque<v1::Taken> taken_;
};

v1::Hello hello() {
  v1::Hello made;
  made.set_client("test");
  return made;
}

class SessionRpc : public RpcTest {};

TEST_F(SessionRpc, a_batch_of_operations_is_applied_in_order_and_each_is_answered) {
  Session session(*locks_, hello());
  const auto owner = session.lease();
  v1::SessionRequest batch;
  *batch.add_operations() = session.acquire("a", owner, 1);
  *batch.add_operations() = session.acquire("b", owner, 2);
  auto renew = session.operation();
  renew.mutable_renew_leases()->add_ids(owner);
  renew.mutable_renew_leases()->add_ids(999);
  *batch.add_operations() = renew;
  auto release = session.operation();
  release.mutable_release()->set_lease_id(owner);
  release.mutable_release()->set_name("a");
  *batch.add_operations() = release;

  session.send(batch);

  const auto first = session.outcome();
  EXPECT_EQ(first.id(), batch.operations(0).id());
  EXPECT_GT(first.granted().fencing_token(), 0U);
  EXPECT_GT(session.outcome().granted().fencing_token(), first.granted().fencing_token());
  const auto renewed = session.outcome().renewed();
  ASSERT_EQ(renewed.ttl_ms_size(), 2);
  EXPECT_EQ(renewed.ttl_ms(0), 60'000U);
  EXPECT_EQ(renewed.ttl_ms(1), 0U);
  EXPECT_TRUE(session.outcome().has_released());
}

TEST_F(SessionRpc, a_wait_has_an_outcome_when_queued_and_when_it_ends) {
  Session session(*locks_, hello());
  const auto one = session.lease();
  const auto two = session.lease();
  const auto held = session.lock("a", one, 1);
  const auto queued = session.lock("a", two, 1);
  EXPECT_EQ(queued.queued().position(), 1U);

  auto release = session.operation();
  release.mutable_release()->set_lease_id(one);
  release.mutable_release()->set_fencing_token(held.granted().fencing_token());
  session.send(release);

  EXPECT_TRUE(session.outcome().has_released());
  const auto granted = session.outcome();
  EXPECT_EQ(granted.id(), queued.id());
  EXPECT_GT(granted.granted().fencing_token(), held.granted().fencing_token());
}

TEST_F(SessionRpc, a_downgrade_and_its_retry_return_the_mode) {
  Session session(*locks_, hello());
  const auto owner = session.lease();
  auto downgrade = session.operation();
  downgrade.mutable_downgrade()->set_lease_id(owner);
  downgrade.mutable_downgrade()->set_request_id(2);
  downgrade.mutable_downgrade()->set_fencing_token(
      session.lock("a", owner, 1).granted().fencing_token());

  session.send(downgrade);
  EXPECT_EQ(session.outcome().downgraded().mode(), v1::MODE_SHARED);
  EXPECT_TRUE(try_lock("a", lease(), v1::MODE_SHARED).acquired());
  downgrade.set_id(session.operation().id());
  session.send(downgrade);
  EXPECT_EQ(session.outcome().downgraded().mode(), v1::MODE_SHARED);

  downgrade.set_id(session.operation().id());
  downgrade.mutable_downgrade()->set_request_id(3);
  downgrade.mutable_downgrade()->set_mode(static_cast<v1::Mode>(99));
  session.send(downgrade);
  EXPECT_EQ(session.outcome().refused().code(), v1::CODE_INVALID_ARGUMENT);
}

// 003.006
TEST_F(SessionRpc, set_ttl_returns_the_outcome_of_a_renewal) {
  Session session(*locks_, hello());
  auto set = session.operation();
  set.mutable_set_ttl()->set_lease_id(session.lease());
  set.mutable_set_ttl()->set_request_id(1);
  set.mutable_set_ttl()->set_ttl_ms(7'000);

  session.send(set);
  EXPECT_EQ(session.outcome().renewed().ttl_ms(0), 7'000U);

  set.set_id(session.operation().id());
  set.mutable_set_ttl()->set_request_id(2);
  set.mutable_set_ttl()->set_ttl_ms(0);
  session.send(set);
  EXPECT_EQ(session.outcome().refused().code(), v1::CODE_INVALID_ARGUMENT);
  set.set_id(session.operation().id());
  set.mutable_set_ttl()->set_lease_id(999);
  session.send(set);
  EXPECT_EQ(session.outcome().renewed().ttl_ms(0), 0U);
}

TEST_F(SessionRpc, timeouts_and_abandoning_end_a_wait) {
  Session session(*locks_, hello());
  const auto one = session.lease();
  const auto two = session.lease();
  ASSERT_TRUE(session.lock("a", one, 1).has_granted());
  auto impatient = session.acquire("a", two, 1);
  impatient.mutable_acquire()->set_timeout_ms(5);

  session.send(impatient);
  EXPECT_TRUE(session.outcome().has_queued());
  EXPECT_EQ(session.outcome().refused().code(), v1::CODE_TIMED_OUT);

  auto unwilling = session.acquire("a", two, 2);
  unwilling.mutable_acquire()->set_timeout_ms(0);
  session.send(unwilling);
  EXPECT_EQ(session.outcome().refused().code(), v1::CODE_WOULD_BLOCK);

  EXPECT_TRUE(session.lock("a", two, 3).has_queued());
  auto abandon = session.operation();
  abandon.mutable_abandon()->set_lease_id(two);
  abandon.mutable_abandon()->set_request_id(3);
  session.send(abandon);
  EXPECT_EQ(session.outcome().refused().code(), v1::CODE_CANCELLED);
  EXPECT_TRUE(waits_become(0));
}

// 002-B27: by default a short disconnect loses no lease.
TEST_F(SessionRpc, the_end_of_the_stream_ends_its_waits_and_no_lease) {
  const auto holder = lease();
  ASSERT_TRUE(lock("a", holder).acquired());
  std::uint64_t owner = 0;
  {
    Session session(*locks_, hello());
    owner = session.lease();
    ASSERT_TRUE(session.lock("b", owner, 1).has_granted());
    ASSERT_TRUE(session.lock("a", owner, 2).has_queued());
  }

  EXPECT_TRUE(waits_become(0));
  EXPECT_FALSE(try_lock("b", holder).acquired());
}

// 002.072, 002-B27: revocation at the end of the stream is opt-in, by a field of Hello.
TEST_F(SessionRpc, leases_end_with_the_stream_if_hello_requested_it) {
  auto request = hello();
  request.set_revoke_leases(true);
  {
    Session session(*locks_, request);
    ASSERT_TRUE(session.lock("a", session.lease(), 1).has_granted());
  }

  EXPECT_TRUE(
      becomes_true([](const server::View& view) { return view.state.leases.all().empty(); }));
  EXPECT_TRUE(try_lock("a", lease()).acquired());
}

// 002-B32: a client that reconnects keeps its queue position.
TEST_F(SessionRpc, a_kept_wait_is_reattached_by_its_request_id) {
  auto request = hello();
  request.set_keep_waits(true);
  const auto holder = lease();
  const auto held = lock("a", holder);
  const auto owner = lease();
  {
    Session first(*locks_, request);
    ASSERT_TRUE(first.lock("a", owner, 5).has_queued());
  }
  ASSERT_TRUE(
      becomes_true([&](const server::View&) { return server_.context().waiters.attached() == 0; }));
  Session second(*locks_, request);

  EXPECT_EQ(second.lock("a", owner, 5).queued().position(), 1U);
  ASSERT_TRUE(unlock(holder, held.fencing_token()).ok());

  EXPECT_TRUE(second.outcome().has_granted());
}

TEST_F(SessionRpc, an_expired_lease_is_notified_without_a_request) {
  Session session(*locks_, hello());
  const auto owner = session.lease(5'000);
  ASSERT_TRUE(session.lock("a", owner, 1).has_granted());

  store_.advance(6s);

  EXPECT_EQ(session.lost_lease(), owner);
}

TEST_F(SessionRpc, the_holder_is_notified_of_a_forced_release) {
  Session session(*locks_, hello());
  const auto owner = session.lease();
  const auto held = session.lock("a", owner, 1);
  v1::ForceReleaseRequest force;
  force.set_name("a");
  v1::ForceReleaseResponse forced;

  ASSERT_TRUE(admin_->ForceRelease(context().get(), force, &forced).ok());

  EXPECT_EQ(forced.holds(), 1U);
  const auto taken = session.taken();
  EXPECT_EQ(taken.lease_id(), owner);
  EXPECT_EQ(taken.fencing_token(), held.granted().fencing_token());
}

TEST_F(SessionRpc, a_lease_revoked_by_its_client_is_not_notified_as_lost) {
  Session session(*locks_, hello());
  const auto owner = session.lease();
  ASSERT_TRUE(session.lock("a", owner, 1).has_granted());
  auto revoke_own = session.operation();
  revoke_own.mutable_revoke_lease()->set_id(owner);
  session.send(revoke_own);
  EXPECT_TRUE(session.outcome().has_done());
  // A second lease is lost later: a notification about the first one would have arrived before.
  const auto other = session.lease();
  ASSERT_TRUE(session.lock("a", other, 1).has_granted());
  ASSERT_TRUE(revoke(other).ok());

  EXPECT_EQ(session.lost_lease(), other);
}

TEST_F(SessionRpc, a_half_closed_stream_receives_its_outcomes_and_ends) {
  Session session(*locks_, hello());
  auto grant = session.operation();
  grant.mutable_grant_lease()->set_ttl_ms(1000);
  session.send(grant);

  EXPECT_TRUE(session.finish().ok());
  EXPECT_TRUE(session.outcome().has_lease_granted());
}

TEST_F(SessionRpc, a_session_starts_with_exactly_one_hello) {
  const auto call = context();
  const auto stream = locks_->Session(call.get());
  v1::SessionRequest request;
  request.add_operations()->set_id(1);
  ASSERT_TRUE(stream->Write(request));
  v1::SessionResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), ::grpc::StatusCode::INVALID_ARGUMENT);

  Session session(*locks_, hello());
  v1::SessionRequest again;
  *again.mutable_hello() = hello();
  session.send(again);
  EXPECT_EQ(session.finish().error_code(), ::grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(SessionRpc, an_invalid_operation_fails_alone) {
  Session session(*locks_, hello());
  session.send(session.operation());
  EXPECT_EQ(session.outcome().refused().code(), v1::CODE_INVALID_ARGUMENT);
  const auto owner = session.lease();
  auto wrong = session.acquire("a", owner, 1);
  wrong.mutable_acquire()->mutable_items(0)->set_mode(static_cast<v1::Mode>(77));
  session.send(wrong);
  EXPECT_NE(session.outcome().refused().detail().find("mode 77"), std::string::npos);

  EXPECT_TRUE(session.lock("a", owner, 2).has_granted());
}

// Above the limit of operations in flight, the server stops reading the stream and loses none.
TEST_F(SessionRpc, a_flood_of_operations_is_throttled_and_all_are_answered) {
  Session session(*locks_, hello());
  const auto owner = session.lease();
  store_.pause();
  constexpr int batches = 20;
  constexpr int each = 500;
  v1::SessionRequest batch;
  for (int n = 0; n < each; ++n) {
    auto renew = session.operation();
    renew.mutable_renew_leases()->add_ids(owner);
    *batch.add_operations() = renew;
  }
  for (int n = 0; n < batches; ++n) {
    session.send(batch);
  }
  store_.resume();

  for (int n = 0; n < batches * each; ++n) {
    ASSERT_TRUE(session.outcome().has_renewed()) << n;
  }
}

}  // namespace
}  // namespace tenure::test
