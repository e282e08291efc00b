#include <string>

#include <gtest/gtest.h>

#include "support/redis/scripts.hpp"

namespace tenure::test {
namespace {

class RwScripts : public RedisScripts {
 protected:
  std::string read(const std::string& member, int ttl = 60'000) {
    return acquire({.member = member, .want = "S", .ttl = ttl});
  }
  std::string try_read(const std::string& member) {
    return try_acquire({.member = member, .want = "S"});
  }
  std::string write(const std::string& member, int ttl = 60'000) {
    return acquire({.member = member, .ttl = ttl});
  }
  std::string try_write(const std::string& member) { return try_acquire({.member = member}); }
  std::string upgrade(const std::string& member, int request = 2) {
    return acquire({.member = member, .request = request, .reentry = "reenter"});
  }
};

// 000.075, 000.128
TEST_F(RwScripts, read_is_shared) {
  EXPECT_TRUE(is_granted(read("ann")));
  EXPECT_TRUE(is_granted(read("bob")));
  EXPECT_TRUE(holds("ann") && holds("bob"));
}

// 000.074, 000.129
TEST_F(RwScripts, writer_blocks_new_readers) {
  write("ann");

  EXPECT_EQ(try_read("bob"), "0");
}

// 000.130, 000.079
TEST_F(RwScripts, write_waits_for_readers) {
  subscribe();
  read("ann");

  EXPECT_TRUE(is_queued(write("bob")));
  release("ann");

  EXPECT_TRUE(holds("bob"));
}

// 000.131
TEST_F(RwScripts, write_excludes_write) {
  write("ann");

  EXPECT_EQ(try_write("bob"), "0");
}

// 000.132, 000.064, 000-B16: as corrected, only on request, and counted.
TEST_F(RwScripts, reentrant_write_succeeds) {
  const auto token = write("ann");
  EXPECT_TRUE(acquire({.member = "ann", .request = 2}).starts_with("-1 ")) << "only on request";

  EXPECT_EQ(upgrade("ann", 2), "1 " + token + " 0 2");
  EXPECT_EQ(release("ann", 2), "1");

  EXPECT_TRUE(holds("ann"));
  EXPECT_EQ(release("ann", 1), "1");
  EXPECT_FALSE(holds("ann"));
}

// 000.133, 000.078, 000.057
TEST_F(RwScripts, read_blocked_by_waiting_writer) {
  read("ann");
  write("bob");

  EXPECT_EQ(try_read("cid"), "0");
  EXPECT_TRUE(is_queued(read("cid")));
}

// 000.134, 000.059-061
TEST_F(RwScripts, oneshot_write_does_not_enqueue_or_block_readers) {
  read("ann");

  EXPECT_EQ(try_write("bob"), "0");

  EXPECT_EQ(waiting(), "");
  EXPECT_TRUE(is_granted(try_read("cid")));
}

// 000.135
TEST_F(RwScripts, waiting_write_enqueues_and_blocks_readers) {
  read("ann");
  write("bob");

  EXPECT_EQ(waiting(), "bob");
  EXPECT_EQ(try_read("cid"), "0");
  leave("bob");
  EXPECT_TRUE(is_granted(try_read("cid")));
}

// 000.136, 000.058, 000.076
TEST_F(RwScripts, writers_are_served_fifo) {
  subscribe();
  write("ann");
  write("zoe");
  write("bob");

  release("ann");
  EXPECT_TRUE(holds("zoe"));
  release("zoe");

  EXPECT_TRUE(holds("bob"));
}

// 000.137, 000.085
TEST_F(RwScripts, expired_readers_are_purged) {
  read("ann", 1);
  read("bob", 1);

  EXPECT_TRUE(eventually([&] { return is_granted(try_write("cid")); }));
  EXPECT_FALSE(holds("ann") || holds("bob"));
}

// 000.138, 000.086
TEST_F(RwScripts, dead_waiting_writer_is_purged) {
  read("ann");
  write("bob", 1);

  EXPECT_TRUE(eventually([&] { return is_granted(try_read("cid")); }));
}

// 000.139, 000.080
TEST_F(RwScripts, refresh_read_renews_and_reports_loss) {
  read("ann");
  read("bob", 5);
  EXPECT_EQ(renew("ann"), "1");

  EXPECT_TRUE(eventually([&] { return renew("bob", 1) == "0"; }));
  EXPECT_EQ(renew("ann"), "1");
  EXPECT_EQ(renew("cid"), "0");
}

// 000.140, 000.081
TEST_F(RwScripts, refresh_write_is_owner_gated) {
  read("ann");
  release("ann");
  write("ann");

  EXPECT_EQ(renew("ann"), "1");
  EXPECT_EQ(renew("bob"), "0");
}

// 000.141, 000.083
TEST_F(RwScripts, release_write_is_owner_gated_and_frees) {
  write("ann");

  EXPECT_EQ(release("bob"), "0");
  EXPECT_EQ(try_write("bob"), "0");
  EXPECT_EQ(release("ann"), "1");
  EXPECT_TRUE(is_granted(try_write("bob")));
}

// 000.142, 000.084, 000.065, 000-B5: leave removes the wait, and never a hold.
TEST_F(RwScripts, release_write_clears_pending_on_abandon) {
  read("ann");
  write("bob");

  EXPECT_EQ(release("bob"), "0") << "the member holds nothing";
  EXPECT_EQ(waiting(), "bob");
  EXPECT_EQ(leave("bob"), "0");

  EXPECT_EQ(waiting(), "");
  EXPECT_TRUE(holds("ann"));
}

// 000.143
TEST_F(RwScripts, write_held_until_all_readers_released) {
  subscribe();
  read("ann");
  read("bob");
  write("cid");

  release("ann");
  EXPECT_FALSE(holds("cid"));
  release("bob");

  EXPECT_TRUE(holds("cid"));
}

// 000.144
TEST_F(RwScripts, writer_blocked_by_writer_enqueues_and_keeps_preference) {
  subscribe();
  write("ann");
  write("bob");
  EXPECT_EQ(try_read("cid"), "0");

  release("ann");

  EXPECT_TRUE(holds("bob"));
  EXPECT_EQ(try_read("cid"), "0");
}

// 000.145, 000-B17: as corrected, by ticket and not by name: requests of the same millisecond are
// served in order of arrival.
TEST_F(RwScripts, same_ms_writer_fifo_is_by_ticket) {
  write("ann");
  for (const auto* who : {"zoe", "yan", "xia", "bob"}) {
    write(who);
  }

  EXPECT_EQ(waiting(), "zoe yan xia bob");
}

// 000.146, 000-B3: as corrected, the opposite of the document's name.
TEST_F(RwScripts, purge_uses_the_members_own_ttl) {
  read("ann", 60'000);
  read("bob", 1);

  EXPECT_TRUE(eventually([&] { return !holds("bob"); }));
  read("cid", 1);

  EXPECT_TRUE(holds("ann"));
  EXPECT_EQ(try_write("dan"), "0");
}

// 000.147, 000.077, 000-B18: unless it is renewed.
TEST_F(RwScripts, idle_waiting_writer_loses_its_slot) {
  read("ann");
  write("bob", 5);
  write("cid");
  EXPECT_EQ(renew("cid"), "2");

  EXPECT_TRUE(eventually([&] { return renew("bob", 1) == "0"; }));

  EXPECT_EQ(waiting(), "cid");
}

// 000.148, 000.087
TEST_F(RwScripts, writer_key_expires_by_itself) {
  write("ann", 1);

  EXPECT_TRUE(eventually([&] { return !holds("ann"); }));
  EXPECT_TRUE(is_granted(try_read("bob")));
}

// 000.149, 000.082
TEST_F(RwScripts, release_read_nonmember_and_double_release_return_false) {
  read("ann");
  read("bob");

  EXPECT_EQ(release("cid"), "0");
  EXPECT_EQ(release("ann"), "1");
  EXPECT_EQ(release("ann"), "3") << "this hold was released last";
  release("bob");
  EXPECT_EQ(release("ann"), "0");
}

// 000-B14: admission in phases.
TEST_F(RwScripts, readers_behind_a_writer_enter_together_before_the_next_writer) {
  subscribe();
  write("ann");
  read("bob");
  write("cid");
  read("dan");
  read("eve");
  write("fay");

  release("ann");
  EXPECT_TRUE(holds("bob"));
  EXPECT_FALSE(holds("dan"));
  release("bob");
  EXPECT_TRUE(holds("cid"));
  release("cid");

  EXPECT_TRUE(holds("dan") && holds("eve"));
  EXPECT_FALSE(holds("fay"));
}

// 000-B15: at most one upgrade at a time, before the queue.
TEST_F(RwScripts, the_second_of_two_upgrades_fails_at_once) {
  subscribe();
  read("ann");
  read("bob");
  write("cid");
  EXPECT_TRUE(is_queued(upgrade("ann")));

  EXPECT_TRUE(upgrade("bob").starts_with("-1 "));
  EXPECT_EQ(try_read("dan"), "0");
  release("bob");

  EXPECT_TRUE(server.next_message().starts_with("g ann 2 "));
  EXPECT_TRUE(upgrade("ann").starts_with("1 ")) << "a retry finds it";
  EXPECT_EQ(release("ann", 1), "1");
  EXPECT_TRUE(holds("ann")) << "it was reentered";
  EXPECT_EQ(release("ann", 1), "1");
  EXPECT_TRUE(holds("cid"));
}

TEST_F(RwScripts, a_cancelled_upgrade_admits_readers_again) {
  subscribe();
  read("ann");
  read("bob");
  upgrade("ann");
  EXPECT_TRUE(is_queued(read("cid")));

  EXPECT_EQ(leave("ann", 2), "0");

  EXPECT_TRUE(holds("ann") && holds("cid"));
}

// 000-B15
TEST_F(RwScripts, a_downgrade_keeps_the_token_and_admits_readers) {
  subscribe();
  const auto token = write("ann");
  read("bob");
  write("cid");

  EXPECT_EQ(run(Script::downgrade, {"ann", "1"}), "1");

  EXPECT_TRUE(holds("ann") && holds("bob"));
  EXPECT_NE(run(Script::holders, {"9"}).find("S " + token), std::string::npos);
  EXPECT_EQ(run(Script::downgrade, {"ann", "1"}), "1") << "a retry";
  EXPECT_EQ(run(Script::downgrade, {"dan", "1"}), "0");
  release("ann");
  release("bob");
  EXPECT_TRUE(holds("cid"));
}

// One call grants at most a thousand waiters, so that no call blocks the server for long.
TEST_F(RwScripts, many_readers_are_granted_in_batches) {
  subscribe();
  write("ann");
  for (int n = 0; n < 1200; ++n) {
    read("reader" + std::to_string(n));
  }

  EXPECT_EQ(release("ann"), "2");
  EXPECT_NE(server.command({"ZCARD", head + ":q"}), "0");
  EXPECT_NE(expire(), "0");

  EXPECT_EQ(server.command({"ZCARD", head + ":q"}), "0");
}

}  // namespace
}  // namespace tenure::test
