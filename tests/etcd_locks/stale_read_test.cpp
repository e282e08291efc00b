#ifdef TENURE_WITH_SERVER  // which has the server's end of gRPC

#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/etcd/fake.hpp"

namespace tenure::test {
namespace {

namespace pb = backends::etcd::pb;

/// Fake etcd member that reports the deletion of the predecessor and then serves reads from before
/// it, like another member after a reconnect.
class LaggingMember {
 public:
  LaggingMember() {
    fake_.answer("/etcdserverpb.KV/Txn", [this](std::string_view bytes) {
      pb::TxnRequest request;
      request.ParseFromString(std::string(bytes));
      const std::lock_guard lock(mutex_);
      return answer(request);
    });
    fake_.answer("/etcdserverpb.Watch/Watch", [this](std::string_view bytes) -> FakeEtcd::Reply {
      pb::WatchRequest request;
      request.ParseFromString(std::string(bytes));
      if (!request.has_create() || request.create().key() != before_) {
        return FakeEtcd::Messages{};
      }
      auto created = std::make_shared<pb::WatchResponse>();
      created->set_created(true);
      auto gone = std::make_shared<pb::WatchResponse>();
      auto& event = *gone->add_events();
      event.set_type(pb::Event::DELETE);
      event.mutable_kv()->set_key(before_);
      event.mutable_kv()->set_mod_revision(gone_at);
      return FakeEtcd::Messages{created, gone};
    });
  }

  std::string start() { return fake_.start(); }
  /// Of each look after the first list: by what one member knows?
  std::vector<bool> looks() {
    const std::lock_guard lock(mutex_);
    return queries_;
  }

  static constexpr std::int64_t joined_at = 5;

 private:
  static constexpr std::int64_t gone_at = 8;

  FakeEtcd::Reply answer(const pb::TxnRequest& request) {
    auto response = std::make_shared<pb::TxnResponse>();
    response->set_succeeded(true);
    const auto& first = request.success(0);
    if (first.has_put()) {
      own_ = first.put().key();
      before_ = own_.substr(0, own_.rfind('/') + 1) + "before";
      response->mutable_header()->set_revision(joined_at);
      response->add_responses()->mutable_put();
      list(*response, true);
    } else if (first.has_range()) {
      queries_.push_back(first.range().serializable());
      const bool is_behind = queries_.size() == 1;
      response->mutable_header()->set_revision(is_behind ? gone_at - 1 : gone_at + 1);
      list(*response, is_behind);
    } else {
      response->mutable_header()->set_revision(gone_at + 2);
      response->add_responses()->mutable_remove()->set_deleted(1);
    }
    return response;
  }

  void list(pb::TxnResponse& response, bool with_one_before) const {
    auto& range = *response.add_responses()->mutable_range();
    const auto add = [&](const std::string& key, std::int64_t revision) {
      auto& one = *range.add_kvs();
      one.set_key(key);
      one.set_create_revision(revision);
      one.set_mod_revision(revision);
    };
    add(own_, joined_at);
    if (with_one_before) {
      add(before_, joined_at - 2);
    }
    range.set_count(range.kvs_size());
  }

  std::mutex mutex_;
  std::string own_;
  std::string before_;
  std::vector<bool> queries_;
  FakeEtcd fake_;  // Last: its thread uses all the rest.
};

TEST(EtcdStaleReads, a_list_older_than_the_notified_revision_is_ignored) {
  LaggingMember member;
  const auto client = connect(member.start()).value();

  auto guard = client.mutex("a").lock();

  ASSERT_TRUE(guard) << to_string(guard.error());
  EXPECT_EQ(guard->token().get(), std::uint64_t{LaggingMember::joined_at});
  EXPECT_EQ(member.looks(), (std::vector<bool>{true, false})) << "then all of them are asked";
}

}  // namespace
}  // namespace tenure::test

#endif
