#ifdef TENURE_WITH_SERVER  // which has the server's end of gRPC

#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/etcd/relay.hpp"
#include "support/etcd/server.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// What goes wrong only if a client hears of two things in the wrong order, or not of one of them.
class EtcdOrder : public ::testing::Test {
 protected:
  [[nodiscard]] bool soon(const std::string& name, int count) const {
    return eventually([&] { return server.keys(root + "/" + name + "/").kvs_size() == count; });
  }
  [[nodiscard]] bool keeps(std::size_t answers) const {
    return eventually([&] { return relay.kept() == answers; });
  }

  /// Connected, and with nothing under way: a destructor would not wait for the end of its hold,
  /// whose answer would be kept back, too.
  void warm_up() { EXPECT_TRUE(ann.mutex("warm").lock().value().unlock()); }

  EtcdServer& server = shared_etcd();
  std::string root = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  EtcdRelay relay{server.port()};
  Client ann = connect(relay.url(root), {.request_timeout = test_timeout}).value();
};

// A reader that queues behind a reader of the same client waits for the same writer. The second
// reply arrives after the first reader was notified of the writer's deletion; that event is not
// repeated for the second one.
TEST_F(EtcdOrder, a_reader_that_joins_a_wait_which_just_ended_is_granted) {
  const auto writer = root + "/a/stranger";
  server.put(writer, "");
  const auto read = [this] {
    auto share = ann.rw_lock("a").try_lock_shared_for(test_timeout);
    ASSERT_TRUE(share) << to_string(share.error());
    EXPECT_TRUE(share->unlock());
  };
  std::jthread first(read);
  ASSERT_TRUE(eventually([&] { return relay.watch_notifications() == 1; })) << "it waits";

  relay.keep_back();
  std::jthread second(read);
  ASSERT_TRUE(soon("a", 3));
  ASSERT_TRUE(keeps(1)) << "that it has joined";
  server.remove(writer);
  ASSERT_TRUE(keeps(2)) << "what the first one sees when it looks";
  relay.pass_on_one();
  relay.pass_on_all();
  first.join();
  second.join();

  EXPECT_TRUE(soon("a", 0));
}

// The same for a writer behind a writer: the one before him leaves while he joins.
TEST_F(EtcdOrder, a_writer_that_queues_behind_a_leaving_waiter_is_granted) {
  auto guard = ann.mutex("a").lock().value();

  relay.keep_back();
  std::jthread next([this] {
    auto mine = ann.mutex("a").try_lock_for(test_timeout);
    ASSERT_TRUE(mine) << to_string(mine.error());
    EXPECT_TRUE(mine->unlock());
  });
  ASSERT_TRUE(keeps(1)) << "that it has joined";
  std::jthread holder([&] { EXPECT_TRUE(guard.unlock()); });
  ASSERT_TRUE(soon("a", 1));
  relay.pass_on_all();
  holder.join();
  next.join();

  EXPECT_TRUE(soon("a", 0));
}

// 002-B2, 002-B7: the key was created and the reply lost. The retry finds it and keeps its
// position: a second creation would move it behind later waiters.
TEST_F(EtcdOrder, a_key_whose_reply_was_lost_is_found_again) {
  warm_up();
  relay.keep_back();
  FencingToken token{};
  std::jthread locking([&] {
    auto mine = ann.mutex("a").lock();
    ASSERT_TRUE(mine) << to_string(mine.error());
    token = mine->token();
    EXPECT_EQ(server.keys(root + "/a/").kvs_size(), 1);
    EXPECT_TRUE(mine->unlock());
  });
  ASSERT_TRUE(soon("a", 1));
  const auto key = server.keys(root + "/a/").kvs(0);

  relay.lose_kept();
  locking.join();

  EXPECT_EQ(token.get(), static_cast<std::uint64_t>(key.create_revision()));
  EXPECT_TRUE(soon("a", 0));
}

// The same for one that does not wait, and for the end of a hold.
TEST_F(EtcdOrder, a_try_lock_and_a_release_whose_replies_were_lost_are_retried) {
  warm_up();
  relay.keep_back();
  std::jthread trying([&] {
    auto mine = ann.mutex("a").try_lock();
    ASSERT_TRUE(mine) << to_string(mine.error());
    relay.keep_back();
    const auto given_back = mine->unlock();
    EXPECT_TRUE(given_back || given_back.error() == Errc::unavailable);
  });
  EXPECT_TRUE(keeps(1));
  relay.lose_kept();
  EXPECT_TRUE(keeps(1));
  relay.lose_kept();
  trying.join();

  EXPECT_TRUE(soon("a", 0));
}

// 002-B7's like: a member hung with the question, another one answered it, and the lock was given
// back. Then the first one goes on, and makes the key once more.
TEST_F(EtcdOrder, a_late_request_leaves_no_key_after_the_release) {
  warm_up();
  const auto lease = ann.lease().value();  // It lives on, and its keys would with it.
  relay.keep_questions();
  std::jthread locking([&] {
    auto mine = ann.mutex("a", {.lease = lease}).lock();
    ASSERT_TRUE(mine) << to_string(mine.error());
    EXPECT_TRUE(mine->unlock());
  });
  ASSERT_TRUE(eventually([&] { return relay.requests() == 1; }));
  relay.lose_questions();
  locking.join();
  ASSERT_TRUE(soon("a", 0));

  relay.deliver_late();

  EXPECT_TRUE(soon("a", 0));
  EXPECT_TRUE(lease.is_alive());
}

// The same for one that did not wait, and was refused.
TEST_F(EtcdOrder, a_late_try_lock_leaves_no_key_after_its_refusal) {
  warm_up();
  const auto lease = ann.lease().value();
  const auto other_key = root + "/a/stranger";
  relay.keep_questions();
  std::jthread trying(
      [&] { EXPECT_EQ(ann.mutex("a", {.lease = lease}).try_lock().error(), Errc::would_block); });
  ASSERT_TRUE(eventually([&] { return relay.requests() == 1; }));
  server.put(other_key, "");
  relay.lose_questions();
  trying.join();
  server.remove(other_key);
  ASSERT_TRUE(soon("a", 0));

  relay.deliver_late();

  EXPECT_TRUE(soon("a", 0));
  EXPECT_TRUE(lease.is_alive());
}

}  // namespace
}  // namespace tenure::test

#endif
