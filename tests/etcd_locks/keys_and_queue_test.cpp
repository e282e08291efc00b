#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "backends/etcd/errors.hpp"
#include "backends/etcd/keys.hpp"
#include "backends/etcd/queue.hpp"

namespace tenure::backends::etcd {
namespace {

pb::RangeResponse queue_of(const std::vector<std::pair<std::string, Claim>>& places) {
  pb::RangeResponse list;
  std::int64_t revision = 10 + static_cast<std::int64_t>(places.size());
  for (const auto& [key, claim] : places) {
    auto& one = *list.add_kvs();
    one.set_key(key);
    one.set_value(text_of(Record{.claim = claim, .owner = "o"}));
    one.set_create_revision(revision--);
  }
  return list;
}

const Claim exclusive = LockMode::exclusive;
const Claim shared = LockMode::shared;

// 002.045: as etcdctl writes it, and on.
TEST(EtcdKeys, a_key_begins_with_the_lease_in_hex) {
  const auto folder = folder_of("root/", "a/b");

  EXPECT_EQ(folder, "root/a/b/");
  EXPECT_EQ(end_of(folder), "root/a/b0");
  EXPECT_EQ(key_of(folder, LeaseId{0x694d7fbd}, RequestId{31}), "root/a/b/694d7fbd-1f");
  // etcd's numbers are signed.
  EXPECT_EQ(number_of(LeaseId{~std::uint64_t{0}}), std::int64_t{0x7FFFFFFFFFFFFFFF});
  EXPECT_EQ(number_of(LeaseId{std::uint64_t{1} << 63U}), 1);
}

TEST(EtcdKeys, a_queue_key_does_not_belong_to_the_parent_lock) {
  EXPECT_TRUE(is_queue_key("a/", "a/1f"));
  EXPECT_FALSE(is_queue_key("a/", "a/b/1f"));
  EXPECT_FALSE(is_queue_key("a/", "a/"));
  EXPECT_FALSE(is_queue_key("a/", "ab/1f"));
}

TEST(EtcdKeys, a_record_round_trips_and_an_unknown_one_is_exclusive) {
  const Record record{
      .claim = Permits{.capacity = 5, .wanted = 2}, .owner = "ann", .metadata = "two\nlines"};
  const auto read = record_from(text_of(record));

  EXPECT_EQ(text_of(record), "tenure1 permits 2 of 5\nann\ntwo\nlines");
  EXPECT_EQ(std::get<Permits>(read.claim).capacity, 5U);
  EXPECT_EQ(std::get<Permits>(read.claim).wanted, 2U);
  EXPECT_EQ(read.owner, "ann");
  EXPECT_EQ(read.metadata, "two\nlines");
  for (const auto* text : {"", "x", "tenure1 ", "tenure2 shared\n", "tenure1 permits 3 of 2\n",
                           "tenure1 permits 0 of 2\n", "tenure1 permits 1 of x\n"}) {
    EXPECT_EQ(std::get<LockMode>(record_from(text).claim), LockMode::exclusive) << text;
  }
}

// 002.047, 002.048
TEST(EtcdQueue, a_writer_waits_for_its_predecessor) {
  const auto list = queue_of({{"a/2", shared}, {"a/1", exclusive}});
  const auto admission = admission_of(exclusive, "a/", {.keys = list.kvs()});

  EXPECT_EQ(std::get<WaitFor>(admission).key, "a/2");
  EXPECT_TRUE(std::holds_alternative<Admitted>(
      admission_of(exclusive, "a/", {.keys = list.kvs(), .first = 2})));
}

TEST(EtcdQueue, a_reader_waits_for_the_last_writer_only) {
  const auto readers = queue_of({{"a/3", shared}, {"a/2", shared}});
  const auto mixed = queue_of({{"a/3", shared}, {"a/2", exclusive}, {"a/1", exclusive}});

  EXPECT_TRUE(
      std::holds_alternative<Admitted>(admission_of(shared, "a/", {.keys = readers.kvs()})));
  EXPECT_TRUE(std::holds_alternative<ListTooShort>(
      admission_of(shared, "a/", {.keys = readers.kvs(), .has_more = true})));
  EXPECT_EQ(std::get<WaitFor>(admission_of(shared, "a/", {.keys = mixed.kvs()})).key, "a/2");
}

// A list that contains only keys of other locks does not decide the admission.
TEST(EtcdQueue, queue_keys_of_child_locks_are_ignored) {
  const auto list = queue_of({{"a/b/3", exclusive}, {"a/b/2", exclusive}});

  EXPECT_TRUE(
      std::holds_alternative<Admitted>(admission_of(exclusive, "a/", {.keys = list.kvs()})));
  EXPECT_TRUE(std::holds_alternative<ListTooShort>(
      admission_of(exclusive, "a/", {.keys = list.kvs(), .has_more = true})));
  EXPECT_TRUE(holders_in("a/", list).empty());
}

TEST(EtcdQueue, waiters_count_against_the_capacity_like_holders) {
  const auto of = [](std::uint32_t wanted) {
    return Claim(Permits{.capacity = 3, .wanted = wanted});
  };
  const auto full = queue_of({{"a/3", of(3)}, {"a/2", of(1)}});
  const auto room = queue_of({{"a/2", of(1)}, {"a/1", of(1)}});

  const auto last = std::get<WaitFor>(admission_of(of(1), "a/", {.keys = full.kvs()}));
  EXPECT_EQ(last.key, "a/3");
  EXPECT_FALSE(last.is_first);
  EXPECT_TRUE(std::get<WaitFor>(admission_of(of(2), "a/", {.keys = room.kvs()})).is_first);
  EXPECT_TRUE(std::holds_alternative<Admitted>(admission_of(of(1), "a/", {.keys = room.kvs()})));
}

TEST(EtcdQueue, a_name_used_as_another_kind_of_lock_is_rejected) {
  const Claim two = Permits{.capacity = 2, .wanted = 1};
  const Claim three = Permits{.capacity = 3, .wanted = 1};
  const auto permits = queue_of({{"a/1", two}});
  const auto mutex = queue_of({{"a/1", exclusive}});

  EXPECT_TRUE(std::holds_alternative<Misused>(admission_of(three, "a/", {.keys = permits.kvs()})));
  EXPECT_TRUE(std::holds_alternative<Misused>(admission_of(shared, "a/", {.keys = permits.kvs()})));
  EXPECT_TRUE(std::holds_alternative<Misused>(admission_of(two, "a/", {.keys = mutex.kvs()})));
}

TEST(EtcdErrors, transient_errors_are_retried_elsewhere_and_permanent_ones_are_reported) {
  const auto judged = [](grpc::StatusCode code, const char* words) {
    return classify(grpc::Status{code, words}, "here:1");
  };
  using enum grpc::StatusCode;

  EXPECT_EQ(judged(unavailable, "etcdserver: no leader").recovery, Recovery::other_member);
  EXPECT_EQ(judged(unavailable, "etcdserver: request timed out").recovery, Recovery::other_member);
  EXPECT_EQ(judged(resource_exhausted, "etcdserver: too many requests").recovery,
            Recovery::other_member);
  EXPECT_EQ(judged(unauthenticated, "etcdserver: invalid auth token").recovery,
            Recovery::reauthenticate);
  EXPECT_EQ(judged(not_found, "etcdserver: requested lease not found").error, Errc::lease_lost);
  EXPECT_EQ(judged(invalid_argument, "etcdserver: user name is empty").error,
            Errc::permission_denied);
  EXPECT_EQ(judged(unimplemented, "unknown method").error, Errc::unsupported);
  EXPECT_EQ(judged(internal, "unreadable message").recovery, Recovery::none);
}

}  // namespace
}  // namespace tenure::backends::etcd
