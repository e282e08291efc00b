#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/rpc/fixture.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// A Watch stream of a client.
class Watcher {
 public:
  explicit Watcher(v1::LockService::Stub& locks) {
    context_.set_deadline(std::chrono::system_clock::now() + RpcTest::test_timeout);
    stream_ = locks.Watch(&context_);
  }
  ~Watcher() { context_.TryCancel(); }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  v1::WatchResponse create(const v1::WatchCreate& wanted) {
    v1::WatchRequest request;
    *request.mutable_create() = wanted;
    EXPECT_TRUE(stream_->Write(request));
    return read();
  }
  void cancel(std::uint64_t id) {
    v1::WatchRequest request;
    request.mutable_cancel()->set_watch_id(id);
    EXPECT_TRUE(stream_->Write(request));
  }
  v1::WatchResponse read() {
    v1::WatchResponse response;
    EXPECT_TRUE(stream_->Read(&response));
    return response;
  }
  /// The next `count` events, from however many messages.
  std::vector<v1::Event> events(std::size_t count) {
    std::vector<v1::Event> all;
    while (all.size() < count) {
      v1::WatchResponse response;
      if (!stream_->Read(&response)) {
        ADD_FAILURE() << "the stream ended after " << all.size() << " events";
        break;
      }
      all.insert(all.end(), response.events().begin(), response.events().end());
    }
    return all;
  }

 private:
  ::grpc::ClientContext context_;
  std::unique_ptr<::grpc::ClientReaderWriter<v1::WatchRequest, v1::WatchResponse>> stream_;
};

v1::WatchCreate watch(const std::string& key) {
  v1::WatchCreate wanted;
  wanted.set_key(key);
  return wanted;
}

v1::WatchCreate watch_prefix(const std::string& key) {
  auto wanted = watch(key);
  wanted.set_prefix(true);
  return wanted;
}

class WatchRpc : public RpcTest {
 protected:
  void lock_and_unlock(const std::string& name, std::uint64_t owner) {
    const auto held = lock(name, owner);
    ASSERT_TRUE(unlock(owner, held.fencing_token()).ok());
  }
};

// 002.027, 002.034, 002.035, 002.036, 002.084, 002.087, 002.095
TEST_F(WatchRpc, an_exact_watch_delivers_events_of_its_lock_only) {
  const auto owner = lease();
  Watcher watcher(*locks_);
  auto wanted = watch("a");
  wanted.set_watch_id(12);
  wanted.set_previous_record(true);
  const auto created = watcher.create(wanted);
  EXPECT_TRUE(created.created());
  EXPECT_EQ(created.watch_id(), 12U);

  lock_and_unlock("ab", owner);
  const auto held = lock("a", owner);
  ASSERT_TRUE(unlock(owner, held.fencing_token()).ok());

  const auto events = watcher.events(2);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].type(), v1::CHANGE_PUT);
  EXPECT_EQ(events[0].cause(), v1::EVENT_TYPE_GRANTED);
  EXPECT_EQ(events[0].record().key(), "a");
  EXPECT_EQ(events[0].record().lease_id(), owner);
  EXPECT_EQ(events[0].record().fencing_token(), held.fencing_token());
  EXPECT_EQ(events[1].type(), v1::CHANGE_DELETE);
  EXPECT_EQ(events[1].cause(), v1::EVENT_TYPE_RELEASED);
  EXPECT_EQ(events[1].record().key(), "a");
  EXPECT_EQ(events[1].record().lease_id(), 0U);
  EXPECT_EQ(events[1].previous().fencing_token(), held.fencing_token());
}

// 002.084, 002.101
TEST_F(WatchRpc, a_prefix_watch_delivers_all_names_with_the_prefix) {
  const auto owner = lease();
  Watcher below(*locks_);
  Watcher all(*locks_);
  ASSERT_TRUE(below.create(watch_prefix("db/")).created());
  ASSERT_TRUE(all.create(watch_prefix("")).created());

  ASSERT_TRUE(lock("dc", owner).acquired());
  ASSERT_TRUE(lock("db/1", owner).acquired());
  ASSERT_TRUE(lock("db/2", owner).acquired());

  const auto some = below.events(2);
  EXPECT_EQ(some[0].record().key(), "db/1");
  EXPECT_EQ(some[1].record().key(), "db/2");
  EXPECT_EQ(all.events(3)[0].record().key(), "dc");
}

// 002.085, 002.086, 002.106, 002-B30: replay, then live, without gap or duplicate.
TEST_F(WatchRpc, a_watch_from_a_revision_replays_and_continues) {
  const auto owner = lease();
  const auto first = lock("a", owner);
  ASSERT_TRUE(unlock(owner, first.fencing_token()).ok());
  Watcher watcher(*locks_);
  auto wanted = watch("a");
  wanted.set_start_revision(first.fencing_token());

  ASSERT_TRUE(watcher.create(wanted).created());
  const auto second = lock("a", owner);

  const auto events = watcher.events(3);
  EXPECT_EQ(events[0].revision(), first.fencing_token());
  EXPECT_EQ(events[1].cause(), v1::EVENT_TYPE_RELEASED);
  EXPECT_EQ(events[2].revision(), second.fencing_token());
}

/// A store that retains more events than one part of a replay contains.
class LongWatchRpc : public RpcTest {
 protected:
  LongWatchRpc() : RpcTest({}, {.events_max = 20'000}) {}
};

TEST_F(LongWatchRpc, a_replay_of_several_parts_has_no_gap_and_continues) {
  constexpr std::size_t cycles = 5000;
  const auto owner = lease();
  for (std::size_t i = 0; i < cycles; ++i) {
    ASSERT_TRUE(store_.ask(core::Acquire{.lease = core::LeaseId{owner},
                                         .request = core::RequestId{1000 + i},
                                         .items = {{.name = "a", .claim = core::Whole{}}}}));
    ASSERT_TRUE(
        store_.ask(core::Release{.lease = core::LeaseId{owner}, .what = core::Target{"a"}}));
  }
  Watcher watcher(*locks_);
  auto wanted = watch("a");
  wanted.set_start_revision(1);

  ASSERT_TRUE(watcher.create(wanted).created());
  const auto held = lock("a", owner);

  const auto events = watcher.events((2 * cycles) + 1);
  ASSERT_EQ(events.size(), (2 * cycles) + 1);
  for (std::size_t i = 1; i < events.size(); ++i) {
    ASSERT_EQ(events[i].revision(), events[i - 1].revision() + 1);
  }
  EXPECT_EQ(events.back().revision(), held.fencing_token());
}

// 002.090, 002.106, 002-B30: a compacted start revision is an error, not a silent gap.
TEST_F(WatchRpc, a_watch_from_a_compacted_revision_gets_the_resume_revision) {
  const auto owner = lease();
  lock_and_unlock("a", owner);
  v1::CompactRequest compact;
  compact.set_revision(lock("b", owner).header().revision());
  v1::CompactResponse done;
  ASSERT_TRUE(admin_->Compact(context().get(), compact, &done).ok());
  Watcher watcher(*locks_);
  auto wanted = watch("a");
  wanted.set_start_revision(1);

  const auto response = watcher.create(wanted);

  EXPECT_FALSE(response.created());
  EXPECT_TRUE(response.cancelled());
  EXPECT_EQ(response.compact_revision(), compact.revision());
  EXPECT_EQ(response.resume_revision(), compact.revision() + 1);
}

// 002.088
TEST_F(WatchRpc, a_type_filter_delivers_only_its_types) {
  const auto owner = lease();
  Watcher watcher(*locks_);
  auto wanted = watch("a");
  wanted.add_only(v1::EVENT_TYPE_RELEASED);
  ASSERT_TRUE(watcher.create(wanted).created());

  lock_and_unlock("a", owner);
  lock_and_unlock("a", owner);

  for (const auto& event : watcher.events(2)) {
    EXPECT_EQ(event.cause(), v1::EVENT_TYPE_RELEASED);
  }
}

// 002-B20: queue events have their own types, neither PUT nor DELETE.
TEST_F(WatchRpc, joining_and_leaving_the_queue_are_events) {
  const auto owner = lease();
  const auto other = lease();
  ASSERT_TRUE(lock("a", owner).acquired());
  Watcher watcher(*locks_);
  ASSERT_TRUE(watcher.create(watch("a")).created());
  auto request = lock_request("a", other);
  request.set_timeout_ms(1);

  ASSERT_FALSE(lock(request).acquired());

  const auto events = watcher.events(2);
  EXPECT_EQ(events[0].cause(), v1::EVENT_TYPE_QUEUED);
  EXPECT_EQ(events[0].type(), v1::CHANGE_NONE);
  EXPECT_EQ(events[1].cause(), v1::EVENT_TYPE_ABANDONED);
}

// 002.073, 002.095
TEST_F(WatchRpc, an_expiry_is_a_deletion_with_its_cause) {
  const auto owner = lease(5'000);
  ASSERT_TRUE(lock("a", owner).acquired());
  Watcher watcher(*locks_);
  ASSERT_TRUE(watcher.create(watch("a")).created());

  store_.advance(6s);

  const auto events = watcher.events(1);
  EXPECT_EQ(events[0].type(), v1::CHANGE_DELETE);
  EXPECT_EQ(events[0].cause(), v1::EVENT_TYPE_EXPIRED);
}

// 002.089
TEST_F(WatchRpc, a_cancelled_watch_ends_and_other_watches_continue) {
  const auto owner = lease();
  Watcher watcher(*locks_);
  const auto first = watcher.create(watch("a")).watch_id();
  const auto second = watcher.create(watch("b")).watch_id();
  EXPECT_NE(first, second);

  watcher.cancel(first);
  const auto answer = watcher.read();
  lock_and_unlock("a", owner);
  ASSERT_TRUE(lock("b", owner).acquired());

  EXPECT_TRUE(answer.cancelled());
  EXPECT_EQ(answer.watch_id(), first);
  EXPECT_EQ(watcher.events(1)[0].record().key(), "b");
  EXPECT_TRUE(
      becomes_true([&](const server::View&) { return server_.context().watches.watches() == 1; }));
}

TEST_F(WatchRpc, an_invalid_watch_is_rejected_and_the_stream_continues) {
  Watcher watcher(*locks_);
  auto unknown = watch("a");
  unknown.add_only(static_cast<v1::EventType>(99));
  auto taken = watch("a");
  taken.set_watch_id(3);

  EXPECT_NE(watcher.create(watch("")).detail().find("key is required"), std::string::npos);
  EXPECT_NE(watcher.create(unknown).detail().find("event type"), std::string::npos);
  EXPECT_TRUE(watcher.create(taken).created());
  const auto twice = watcher.create(taken);
  EXPECT_TRUE(twice.cancelled());
  EXPECT_EQ(twice.watch_id(), 0U);
  EXPECT_NE(twice.detail().find("in use"), std::string::npos);
}

// No majority confirmed the leadership in time: only the new watch fails.
TEST_F(WatchRpc, a_watch_that_cannot_start_gets_the_resume_revision_and_others_continue) {
  const auto owner = lease();
  Watcher watcher(*locks_);
  auto wanted = watch("a");
  wanted.set_watch_id(1);
  ASSERT_TRUE(watcher.create(wanted).created());
  store_.fail_reads(2);
  wanted = watch("b");
  wanted.set_watch_id(2);

  const auto from_now_on = watcher.create(wanted);
  wanted.set_start_revision(1);
  const auto from_then_on = watcher.create(wanted);
  lock_and_unlock("a", owner);

  EXPECT_TRUE(from_now_on.cancelled());
  EXPECT_EQ(from_now_on.watch_id(), 2U);
  EXPECT_EQ(from_now_on.resume_revision(), from_now_on.header().revision() + 1);
  EXPECT_EQ(from_then_on.resume_revision(), 1U);
  EXPECT_EQ(watcher.events(2).size(), 2U);
  EXPECT_TRUE(watcher.create(wanted).created());
}

TEST_F(WatchRpc, a_cancellation_needs_no_majority) {
  Watcher watcher(*locks_);
  auto wanted = watch("a");
  wanted.set_watch_id(1);
  ASSERT_TRUE(watcher.create(wanted).created());
  store_.fail_reads(1);

  watcher.cancel(1);

  const auto answer = watcher.read();
  EXPECT_TRUE(answer.cancelled());
  EXPECT_EQ(answer.watch_id(), 1U);
}

TEST_F(WatchRpc, the_watches_of_a_stream_are_limited) {
  Watcher watcher(*locks_);
  for (std::size_t n = 0; n < server::RpcLimits{}.watches_per_stream_max; ++n) {
    ASSERT_TRUE(watcher.create(watch("a")).created());
  }

  const auto one_too_many = watcher.create(watch("a"));

  EXPECT_TRUE(one_too_many.cancelled());
  EXPECT_NE(one_too_many.detail().find("watches_per_stream_max"), std::string::npos);
}

TEST_F(WatchRpc, the_watches_of_a_disconnected_client_are_removed) {
  {
    Watcher watcher(*locks_);
    ASSERT_TRUE(watcher.create(watch("a")).created());
    EXPECT_TRUE(becomes_true(
        [&](const server::View&) { return server_.context().watches.watches() == 1; }));
  }

  EXPECT_TRUE(
      becomes_true([&](const server::View&) { return server_.context().watches.watches() == 0; }));
}

/// A server with small watch buffers in the hub and on the connection.
class SlowWatchRpc : public RpcTest {
 protected:
  SlowWatchRpc() : RpcTest(with_small_buffers(), core::Limits{}) {}

  [[nodiscard]] std::unique_ptr<v1::LockService::Stub> reader_of_little() const {
    ::grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65'536);
    return v1::LockService::NewStub(
        ::grpc::CreateCustomChannel(address_, ::grpc::InsecureChannelCredentials(), arguments));
  }

  bool is_anybody_cut() {
    bool is_cut = false;
    store_.look(
        [&](const server::View&) { is_cut = server_.context().watches.cancelled_total() > 0; });
    return is_cut;
  }

  void make_large_events(std::uint64_t owner) {
    const auto held = store_.ask(core::Acquire{.lease = core::LeaseId(owner),
                                               .request = core::RequestId(++last_request_),
                                               .items = {{.name = "a"}},
                                               .metadata = std::string(4000, 'x')});
    const auto token = std::get<core::Granted>(held->outcome).token;
    (void)store_.ask(core::Release{.lease = core::LeaseId(owner), .what = token});
  }

 private:
  static server::RpcOptions with_small_buffers() {
    server::RpcOptions options;
    options.limits.watch_buffer_events_max = 100;
    return options;
  }

  std::uint64_t last_request_ = 0;
};

// 002-B30: a slow watcher is cancelled with its resume revision and delays no other client.
TEST_F(SlowWatchRpc, a_slow_watcher_is_cancelled_and_can_resume) {
  const auto owner = lease();
  const auto stub = reader_of_little();
  Watcher slow(*stub);
  ASSERT_TRUE(slow.create(watch("a")).created());
  constexpr int more_than_fits = 10'000;
  for (int n = 0; n < more_than_fits && !is_anybody_cut(); ++n) {
    make_large_events(owner);
  }
  ASSERT_TRUE(is_anybody_cut());

  std::uint64_t last = 0;
  auto response = slow.read();
  while (!response.cancelled() && !HasFailure()) {
    for (const auto& event : response.events()) {
      EXPECT_GT(event.revision(), last);
      last = event.revision();
    }
    response = slow.read();
  }

  EXPECT_GT(response.resume_revision(), last);
  EXPECT_NE(response.detail().find("slow reader"), std::string::npos);
}

}  // namespace
}  // namespace tenure::test
