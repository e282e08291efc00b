#ifdef TENURE_WITH_SERVER  // which has the server's end of gRPC

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/etcd/fake.hpp"
#include "support/etcd/server.hpp"

namespace tenure::test {
namespace {

namespace pb = backends::etcd::pb;

/// A member of a busy cluster: until a watch begins others have changed the store, and the holder
/// before us has gone or not.
class BusyMember {
 public:
  enum class Holder : std::uint8_t { gone, replaced, there };

  explicit BusyMember(Holder holder) : holder_(holder) {
    fake_.answer("/etcdserverpb.KV/Txn", [this](std::string_view bytes) -> FakeEtcd::Reply {
      pb::TxnRequest request;
      request.ParseFromString(std::string(bytes));
      const std::lock_guard lock(mutex_);
      return answer(request);
    });
    fake_.answer("/etcdserverpb.KV/Range", [this](std::string_view bytes) -> FakeEtcd::Reply {
      pb::RangeRequest request;
      request.ParseFromString(std::string(bytes));
      const std::lock_guard lock(mutex_);
      return look(request);
    });
    fake_.answer("/etcdserverpb.Watch/Watch", [this](std::string_view bytes) -> FakeEtcd::Reply {
      pb::WatchRequest request;
      request.ParseFromString(std::string(bytes));
      const std::lock_guard lock(mutex_);
      if (!request.has_create() || request.create().key() != before_) {
        return FakeEtcd::Messages{};
      }
      starts_.push_back(request.create().start_revision());
      auto created = std::make_shared<pb::WatchResponse>();
      created->set_created(true);
      created->mutable_header()->set_revision(watched_at);
      return FakeEtcd::Messages{created};
    });
  }

  std::string start() { return fake_.start(); }
  /// Where watches were to begin; 0: now.
  std::vector<std::int64_t> starts() {
    const std::lock_guard lock(mutex_);
    return starts_;
  }
  /// How often the key before ours was looked at, and the queue.
  std::pair<int, int> looks() {
    const std::lock_guard lock(mutex_);
    return {key_looks_, queue_looks_};
  }

 private:
  static constexpr std::int64_t joined_at = 5;
  static constexpr std::int64_t watched_at = 9;

  FakeEtcd::Reply answer(const pb::TxnRequest& request) {
    auto response = std::make_shared<pb::TxnResponse>();
    response->set_succeeded(true);
    const auto& first = request.success(0);
    response->mutable_header()->set_revision(first.has_put() ? joined_at : watched_at);
    if (first.has_put()) {
      own_ = first.put().key();
      before_ = own_.substr(0, own_.rfind('/') + 1) + "before";
      response->add_responses()->mutable_put();
      list(*response->add_responses()->mutable_range(), true);
    } else if (first.has_range()) {
      ++queue_looks_;
      list(*response->add_responses()->mutable_range(), false);
    } else {
      response->add_responses()->mutable_remove()->set_deleted(1);
    }
    return response;
  }
  FakeEtcd::Reply look(const pb::RangeRequest& request) {
    auto response = std::make_shared<pb::RangeResponse>();
    response->mutable_header()->set_revision(watched_at);
    if (request.key() != before_) {
      return response;
    }
    ++key_looks_;
    if (holder_ != Holder::gone) {
      add(*response, before_, holder_ == Holder::there ? joined_at - 2 : watched_at - 1);
    }
    return response;
  }
  void list(pb::RangeResponse& range, bool with_one_before) const {
    add(range, own_, joined_at);
    if (with_one_before) {
      add(range, before_, joined_at - 2);
    }
    range.set_count(range.kvs_size());
  }
  static void add(pb::RangeResponse& range, const std::string& key, std::int64_t revision) {
    auto& one = *range.add_kvs();
    one.set_key(key);
    one.set_create_revision(revision);
    one.set_mod_revision(revision);
  }

  const Holder holder_;
  std::mutex mutex_;
  std::string own_;
  std::string before_;
  std::vector<std::int64_t> starts_;
  int key_looks_ = 0;
  int queue_looks_ = 0;
  FakeEtcd fake_;  // Last: its thread uses all the rest.
};

// 002-B4: nothing is missed between the list and the watch, and etcd is not asked for the past,
// which it brings only every 100 ms.
TEST(EtcdMissedChanges, a_key_deleted_before_the_watch_began_ends_the_wait) {
  BusyMember member(BusyMember::Holder::gone);
  const auto client = connect(member.start()).value();

  const auto guard = client.mutex("a").lock();

  EXPECT_TRUE(guard) << to_string(guard.error());
  EXPECT_EQ(member.starts(), std::vector<std::int64_t>{0});
  EXPECT_EQ(member.looks(), (std::pair{1, 1}));
}

// 002-B4: a key of the same name may belong to a later waiter.
TEST(EtcdMissedChanges, a_recreated_key_counts_as_deleted) {
  BusyMember member(BusyMember::Holder::replaced);
  const auto client = connect(member.start()).value();

  const auto guard = client.mutex("a").lock();

  EXPECT_TRUE(guard) << to_string(guard.error());
}

TEST(EtcdMissedChanges, an_unchanged_holder_needs_no_second_list) {
  BusyMember member(BusyMember::Holder::there);
  const auto client = connect(member.start()).value();

  const auto guard = client.mutex("a").try_lock_for(std::chrono::milliseconds(300));

  ASSERT_FALSE(guard);
  EXPECT_EQ(guard.error(), Errc::timed_out);
  EXPECT_EQ(member.looks(), (std::pair{1, 0}));
}

// Each wait leaves a watch of a key that is gone, which is not worth a request to cancel it.
TEST(EtcdMissedChanges, watches_of_deleted_keys_do_not_accumulate) {
  auto& server = shared_etcd();
  constexpr auto watchers = "etcd_debugging_mvcc_watcher_total";
  constexpr int turns = 200;
  constexpr std::int64_t spent_max = 64;  // Of each client, as key_watches.cpp has it.
  const auto before = server.count_of(watchers);
  std::vector<Client> clients;
  for (int n = 0; n < 2; ++n) {
    clients.push_back(connect(server.url("/pile")).value());
  }
  {
    std::vector<std::jthread> threads;
    for (const auto& client : clients) {
      threads.emplace_back([&client] {
        for (int turn = 0; turn < turns; ++turn) {
          auto guard = client.mutex("a").lock();
          ASSERT_TRUE(guard) << to_string(guard.error());
          EXPECT_TRUE(guard->unlock());
        }
      });
    }
  }

  EXPECT_LE(server.count_of(watchers) - before, 2 * (spent_max + 2));
}

}  // namespace
}  // namespace tenure::test

#endif
