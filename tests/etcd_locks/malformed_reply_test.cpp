#ifdef TENURE_WITH_SERVER  // which has the server's end of gRPC

#include <atomic>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/etcd/fake.hpp"
#include "support/net/connect_refusal.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
namespace pb = backends::etcd::pb;

constexpr auto txn_path = "/etcdserverpb.KV/Txn";

// An answer without the parts that were asked for must not be read beyond its end.
TEST(EtcdMalformedReply, a_reply_of_another_form_is_an_error_with_a_hint) {
  FakeEtcd fake;
  fake.answer(txn_path, [](auto) {
    auto answer = std::make_shared<pb::TxnResponse>();
    answer->mutable_header()->set_revision(7);
    answer->set_succeeded(true);
    return answer;
  });
  const auto client = connect(fake.start()).value();

  expect(client.mutex("a").try_lock().error(), Errc::unavailable, "is it etcd, 3.4 or later?");
  expect(client.mutex("a").lock().error(), Errc::unavailable, "is it etcd, 3.4 or later?");
  expect(client.holders("a").error(), Errc::unavailable, "is it etcd, 3.4 or later?");
}

TEST(EtcdMalformedReply, undecodable_bytes_are_an_error) {
  FakeEtcd fake;
  fake.answer(txn_path, [](auto) {
    auto garbage = std::make_shared<pb::PutRequest>();
    garbage->set_key("\xff\xff\xff");
    return garbage;
  });
  const auto client = connect(fake.start()).value();

  expect(client.mutex("a").try_lock().error(), Errc::unavailable, "127.0.0.1");
}

TEST(EtcdMalformedReply, an_old_etcd_or_another_service_is_rejected) {
  FakeEtcd old;
  old.answer("/etcdserverpb.Maintenance/Status", [](auto) {
    auto status = std::make_shared<pb::StatusResponse>();
    status->set_version("3.2.1");
    return status;
  });
  FakeEtcd other;
  other.answer("/etcdserverpb.Maintenance/Status", [](auto) {
    return grpc::Status{grpc::StatusCode::unimplemented, "unknown service"};
  });

  expect(connect(old.start()).error(), Errc::unsupported, "etcd 3.4 or later is needed");
  expect(connect(other.start()).error(), Errc::unsupported, "unknown service");
}

TEST(EtcdMalformedReply, a_full_database_is_reported_as_resource_exhausted) {
  FakeEtcd fake;
  fake.answer(txn_path, [](auto) {
    return grpc::Status{grpc::StatusCode::resource_exhausted,
                        "etcdserver: mvcc: database space exceeded"};
  });
  const auto client = connect(fake.start()).value();

  expect(client.mutex("a").lock().error(), Errc::resource_exhausted, "nothing was changed");
}

// A client that leaves an overloaded member retries with backoff.
TEST(EtcdMalformedReply, an_overloaded_member_is_retried_with_backoff) {
  std::atomic<int> asked = 0;
  FakeEtcd fake;
  fake.answer(txn_path, [&](auto) {
    ++asked;
    return grpc::Status{grpc::StatusCode::unavailable, "etcdserver: leader changed"};
  });
  const auto client = connect(fake.start(), {.request_timeout = 300ms}).value();

  EXPECT_FALSE(client.mutex("a").try_lock_for(500ms));

  EXPECT_GE(asked, 2);
  EXPECT_LE(asked, 20);
}

TEST(EtcdMalformedReply, a_lease_shorter_than_requested_is_rejected) {
  FakeEtcd fake;
  fake.answer("/etcdserverpb.Lease/LeaseGrant", [](auto) {
    auto granted = std::make_shared<pb::LeaseGrantResponse>();
    granted->set_ttl(1);
    return granted;
  });
  const auto client = connect(fake.start()).value();

  expect(client.mutex("a", {.ttl = 10s}).lock().error(), Errc::unavailable, "malformed reply");
}

}  // namespace
}  // namespace tenure::test

#endif
