#include "history/check.hpp"

#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "history/lines.hpp"

namespace tenure::history {
namespace {

constexpr const char* header =
    R"({"at":0,"kind":"history","properties":"MTSFREXWQL","bound":1000,"ttl_max":500})"
    "\n";

/// Letters of the violated properties of these lines, once each.
std::string violations(const std::string& lines) {
  std::istringstream in(header + lines);
  const auto events = read_lines(in);
  if (!events) {
    return events.error().detail;
  }
  const auto result = check(assemble(*events));
  std::string letters;
  for (const auto& [property, count] : result.findings.counts()) {
    letters += property;
  }
  return letters;
}

// Lines, written as in a file but shorter.
std::string line(int at, const std::string& kind, const std::string& rest) {
  return R"({"at":)" + std::to_string(at) + R"(,"kind":")" + kind + "\"" +
         (rest.empty() ? "" : "," + rest) + "}\n";
}
std::string invoke(int at, const std::string& id, const std::string& items,
                   const std::string& rest = "") {
  // The owner is the first letter of the id, so that a1 and a2 are of one.
  const auto owner = id.substr(0, 1);
  return line(at, "invoke",
              R"("request":")" + id + R"(","client":")" + owner + R"(","owner":")" + owner +
                  R"(","items":[)" + items + "]" + (rest.empty() ? "" : "," + rest));
}
std::string granted(int at, const std::string& id, int token, int until) {
  return line(at, "granted",
              R"("request":")" + id + R"(","token":)" + std::to_string(token) + R"(,"until":)" +
                  std::to_string(until));
}
std::string of(int at, const std::string& kind, const std::string& id,
               const std::string& rest = "") {
  return line(at, kind, R"("request":")" + id + "\"" + (rest.empty() ? "" : "," + rest));
}
std::string renewed(int at, const std::string& owner, int until) {
  return line(at, "renewed", R"("owner":")" + owner + R"(","until":)" + std::to_string(until));
}
std::string write(int at, int token, int accepted) {
  return line(at, "write",
              R"("resource":"r","token":)" + std::to_string(token) + R"(,"accepted":)" +
                  std::to_string(accepted));
}
std::string watch(int at, int token, const std::string& id) {
  return line(at, "watch",
              R"("watcher":"w","items":[{"name":"n"}],"token":)" + std::to_string(token) +
                  R"(,"request":")" + id + "\"");
}
std::string ended(int at) {
  return line(at, "end", "");
}

const std::string n_exclusive = R"({"name":"n","mode":"X"})";
const std::string n_shared = R"({"name":"n","mode":"S"})";
const std::string m_exclusive = R"({"name":"m","mode":"X"})";

/// Two successive holders that write to a storage, and a watcher.
std::string good_history() {
  return line(0, "watching", R"("watcher":"w","items":[{"name":"n"}])") + renewed(5, "a", 500) +
         renewed(5, "b", 900) + invoke(10, "a1", n_exclusive) + granted(20, "a1", 7, 500) +
         write(25, 7, 1) + watch(26, 7, "a1") + invoke(30, "b1", n_exclusive) +
         of(40, "queued", "b1") + of(100, "release", "a1") + of(110, "released", "a1") +
         granted(120, "b1", 9, 900) + write(130, 9, 1) + write(131, 7, 0) + watch(135, 9, "b1") +
         of(200, "release", "b1") + of(210, "released", "b1") + ended(5000);
}

std::string without(std::string text, const std::string& part) {
  const auto at = text.find(part);
  EXPECT_NE(at, std::string::npos);
  return text.erase(at, part.size());
}

std::string with(std::string text, const std::string& before, const std::string& after) {
  const auto at = text.find(before);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, before.size(), after);
}

TEST(HistoryCheck, two_successive_holders_violate_nothing) {
  EXPECT_EQ(violations(good_history()), "");
}

TEST(HistoryCheck, a_refused_stale_write_is_counted_and_no_violation) {
  std::istringstream in(header + good_history());

  const auto result = check(assemble(*read_lines(in)));

  EXPECT_EQ(result.stale_writes, 1U);
  EXPECT_EQ(result.names_searched, 1U);
}

// The mutant: double grant.
TEST(HistoryCheck, two_overlapping_exclusive_holds_break_exclusion) {
  EXPECT_EQ(violations(invoke(0, "a1", n_exclusive) + granted(10, "a1", 1, 500) +
                       invoke(5, "b1", n_exclusive) + granted(499, "b1", 2, 900)),
            "LM");
}

TEST(HistoryCheck, a_reader_and_a_writer_at_once_break_exclusion_and_two_readers_do_not) {
  const auto beside = [](const std::string& second) {
    return invoke(0, "a1", n_shared) + granted(10, "a1", 1, 500) + invoke(5, "b1", second) +
           granted(20, "b1", 2, 500);
  };

  EXPECT_EQ(violations(beside(n_shared)), "");
  EXPECT_EQ(violations(beside(n_exclusive)), "LM");
}

// The mutant: a lease that the service lets expire early.
TEST(HistoryCheck, a_grant_before_the_last_confirmed_renewal_ends_breaks_exclusion) {
  const auto renewed_until = [](int until) {
    return invoke(0, "a1", n_exclusive) + granted(10, "a1", 1, 300) + renewed(100, "a", until) +
           invoke(150, "b1", n_exclusive) + granted(350, "b1", 2, 900);
  };

  EXPECT_EQ(violations(renewed_until(350)), "");
  EXPECT_EQ(violations(renewed_until(351)), "LM");
}

TEST(HistoryCheck, validity_ends_when_the_release_starts_or_the_loss_is_known) {
  const auto ends_by = [](const std::string& end) {
    return invoke(0, "a1", n_exclusive) + granted(10, "a1", 1, 500) + end +
           invoke(40, "b1", n_exclusive) + granted(60, "b1", 2, 900);
  };

  EXPECT_EQ(violations(ends_by(of(50, "release", "a1"))), "");
  EXPECT_EQ(violations(ends_by(line(50, "lost", R"("owner":"a")"))), "");
  EXPECT_EQ(violations(ends_by(of(61, "release", "a1"))), "LM");
}

TEST(HistoryCheck, readers_may_hold_after_a_downgrade_and_not_before) {
  const auto reader_at = [](int at) {
    return invoke(0, "a1", n_exclusive) + granted(10, "a1", 1, 500) +
           of(50, "downgrade", "a1", R"("items":[{"name":"n","mode":"S"}])") +
           invoke(20, "b1", n_shared) + granted(at, "b1", 2, 900);
  };

  EXPECT_EQ(violations(reader_at(60)), "");
  EXPECT_EQ(violations(reader_at(40)), "M");
}

// The mutant: a counter that goes back after a restart.
TEST(HistoryCheck, a_later_grant_with_a_smaller_token_breaks_token_order) {
  EXPECT_EQ(
      violations(with(good_history(), R"("token":9,"until":900)", R"("token":6,"until":900)")),
      "ELT");
}

TEST(HistoryCheck, an_exclusive_token_of_two_holders_breaks_token_order) {
  EXPECT_EQ(violations(invoke(0, "a1", n_exclusive) + granted(10, "a1", 3, 20) +
                       invoke(5, "b1", n_exclusive) + granted(30, "b1", 3, 50)),
            "LT");
}

TEST(HistoryCheck, a_reentered_hold_shares_its_token) {
  EXPECT_EQ(violations(invoke(0, "a1", n_exclusive) + granted(10, "a1", 3, 500) +
                       invoke(20, "a2", n_exclusive, R"("policy":"reenter")") +
                       granted(30, "a2", 3, 500)),
            "");
}

// The mutant: the token check of the storage is off.
TEST(HistoryCheck, an_accepted_write_with_an_older_token_breaks_fencing) {
  EXPECT_EQ(violations(with(good_history(), write(131, 7, 0), write(131, 7, 1))), "S");
}

// The mutant: FIFO broken.
TEST(HistoryCheck, a_grant_before_an_earlier_waiter_breaks_order) {
  const auto first = renewed(5, "b", 2000) + invoke(10, "a1", n_exclusive) +
                     granted(20, "a1", 1, 500) + invoke(30, "b1", n_exclusive) +
                     of(40, "queued", "b1") + invoke(50, "c1", n_exclusive) +
                     of(100, "release", "a1") + of(110, "released", "a1");

  EXPECT_EQ(violations(first + granted(120, "b1", 2, 130) + granted(140, "c1", 3, 200)), "");
  EXPECT_EQ(violations(first + granted(120, "c1", 2, 130) + granted(140, "b1", 3, 200)), "F");
  EXPECT_EQ(violations(first + granted(120, "c1", 2, 130)), "F") << "the first still waits";
}

TEST(HistoryCheck, a_waiter_that_left_or_lost_its_lease_may_be_overtaken) {
  const auto first = renewed(5, "b", 100) + invoke(10, "a1", n_exclusive) +
                     granted(20, "a1", 1, 60) + invoke(30, "b1", n_exclusive) +
                     of(40, "queued", "b1");
  const auto overtaken = invoke(80, "c1", n_exclusive) + granted(120, "c1", 2, 200);

  EXPECT_EQ(violations(first + overtaken), "") << "the lease was over at 100";
  EXPECT_EQ(violations(first + of(90, "leave", "b1") + renewed(95, "b", 900) + overtaken), "");
  EXPECT_EQ(violations(first + renewed(95, "b", 900) + overtaken), "F");
}

std::string permits(int wanted) {
  return R"({"name":"s","permits":)" + std::to_string(wanted) + R"(,"capacity":3})";
}

TEST(HistoryCheck, a_waiter_for_permits_is_not_overtaken_by_a_smaller_request) {
  EXPECT_EQ(
      violations(renewed(5, "b", 2000) + invoke(10, "a1", permits(2)) + granted(20, "a1", 1, 500) +
                 invoke(30, "b1", permits(2)) + of(40, "queued", "b1") +
                 invoke(50, "c1", permits(1)) + granted(60, "c1", 2, 100)),
      "F");
}

// Seeds 10356 and 10601 of the simulation: b1 was granted before c1, and its reply was lost.
TEST(HistoryCheck, a_grant_with_a_lost_reply_is_not_overtaken_by_compatible_requests) {
  const auto asked = renewed(5, "b", 2000) + invoke(10, "a1", permits(2)) +
                     granted(20, "a1", 1, 500) + invoke(30, "b1", permits(2)) +
                     of(40, "queued", "b1") + of(45, "release", "a1");

  EXPECT_EQ(violations(asked + invoke(50, "c1", permits(1)) + granted(60, "c1", 3, 100)), "");
  EXPECT_EQ(violations(asked + invoke(50, "c1", permits(2)) + granted(60, "c1", 3, 100)), "F")
      << "there is no room for both";
}

TEST(HistoryCheck, a_watcher_proves_the_order_of_unobserved_grants) {
  const auto seen = [](int token) {
    return line(5, "watching", R"("watcher":"w","items":[{"name":"s"}])") + renewed(5, "b", 2000) +
           invoke(10, "a1", permits(2)) + granted(20, "a1", 1, 500) + invoke(30, "b1", permits(2)) +
           of(40, "queued", "b1") + of(45, "release", "a1") + invoke(50, "c1", permits(1)) +
           granted(60, "c1", 3, 100) +
           line(70, "watch",
                R"("watcher":"w","items":[{"name":"s"}],"request":"b1","token":)" +
                    std::to_string(token));
  };

  EXPECT_EQ(violations(seen(2)), "");
  EXPECT_EQ(violations(seen(4)), "F");
}

// The mutant: a lost release, a lost wake-up.
TEST(HistoryCheck, a_waiter_of_a_free_lock_breaks_progress) {
  const auto lines = renewed(5, "b", 20000) + invoke(10, "a1", n_exclusive) +
                     granted(20, "a1", 1, 500) + invoke(30, "b1", n_exclusive) +
                     of(40, "queued", "b1") + of(100, "release", "a1") + of(110, "released", "a1");

  EXPECT_EQ(violations(lines + ended(1110)), "");
  EXPECT_EQ(violations(lines + ended(1111)), "R");
  EXPECT_EQ(violations(lines + granted(1111, "b1", 2, 3000) + ended(1200)), "R") << "too late";
  EXPECT_EQ(violations(lines + line(200, "fault", "") + ended(3000)), "") << "never healed";
  EXPECT_EQ(violations(lines + line(200, "fault", "") + line(1500, "healed", "") + ended(2501)),
            "R");
}

TEST(HistoryCheck, a_lock_of_a_dead_holder_is_free_after_its_lease) {
  const auto lines = renewed(5, "b", 20000) + renewed(15, "a", 500) +
                     invoke(10, "a1", n_exclusive) + granted(20, "a1", 1, 500) +
                     invoke(30, "b1", n_exclusive) + of(40, "queued", "b1") +
                     line(100, "died", R"("client":"a")");

  EXPECT_EQ(violations(lines + ended(2000)), "") << "500, the longest lease, the bound";
  EXPECT_EQ(violations(lines + ended(2001)), "R");
}

// Mutants: an event that is dropped, doubled, out of order, invented.
TEST(HistoryCheck, a_watcher_that_misses_doubles_reorders_or_invents_a_grant_is_noticed) {
  const auto good = good_history();
  const auto first = watch(26, 7, "a1");
  const auto second = watch(135, 9, "b1");

  EXPECT_EQ(violations(without(good, first)), "E");
  EXPECT_EQ(violations(without(good, second)), "E");
  EXPECT_EQ(violations(with(good, second, second + second)), "E");
  EXPECT_EQ(violations(with(without(good, first), second, second + first)), "E");
  EXPECT_EQ(violations(with(good, second, second + watch(140, 11, "b1"))), "E");
}

// The mutant: a retry is done twice.
TEST(HistoryCheck, two_tokens_for_one_request_are_noticed) {
  EXPECT_EQ(violations(with(good_history(), granted(120, "b1", 9, 900),
                            granted(120, "b1", 9, 900) + granted(125, "b1", 10, 900))),
            "X");
}

// The mutant: a deadlock that is none.
TEST(HistoryCheck, a_victim_without_a_cycle_is_noticed) {
  const auto half = invoke(0, "a1", n_exclusive) + granted(10, "a1", 1, 900) +
                    invoke(0, "b1", m_exclusive) + granted(11, "b1", 2, 900);
  const auto other_half = invoke(20, "a2", m_exclusive) + of(30, "queued", "a2");
  const auto victim = invoke(40, "b2", n_exclusive) + of(50, "failed", "b2", R"("why":"deadlock")");

  EXPECT_EQ(violations(half + other_half + victim), "");
  EXPECT_EQ(violations(half + victim), "W");
}

TEST(HistoryCheck, a_waiter_that_lost_its_lease_by_its_own_clock_may_still_be_in_a_cycle) {
  const auto aborted_at = [](int at) {
    return invoke(0, "a1", n_exclusive) + granted(10, "a1", 1, 60) + invoke(0, "b1", m_exclusive) +
           granted(11, "b1", 2, 9000) + invoke(20, "a2", m_exclusive) + of(30, "queued", "a2") +
           of(at, "failed", "a2", R"("why":"lease_lost")") + line(at, "lost", R"("owner":"a")") +
           invoke(800, "b2", n_exclusive) + of(810, "failed", "b2", R"("why":"deadlock")");
  };

  EXPECT_EQ(violations(aborted_at(400)), "") << "the service may have kept its lease until 900";
  EXPECT_EQ(violations(aborted_at(200)), "W");
}

// The mutant: deadlocks are not looked for.
TEST(HistoryCheck, a_cycle_that_stays_is_noticed) {
  const auto lines = renewed(0, "a", 9000) + renewed(0, "b", 9000) + invoke(0, "a1", n_exclusive) +
                     granted(10, "a1", 1, 9000) + invoke(0, "b1", m_exclusive) +
                     granted(11, "b1", 2, 9000) + invoke(20, "a2", m_exclusive) +
                     of(30, "queued", "a2") + invoke(40, "b2", n_exclusive) +
                     of(50, "queued", "b2");

  EXPECT_EQ(violations(lines + ended(1000)), "");
  EXPECT_EQ(violations(lines + ended(2000)), "W");
}

// The mutant: one permit too many.
TEST(HistoryCheck, permits_beyond_the_capacity_are_noticed) {
  const auto beside = [&](int wanted) {
    return invoke(0, "a1", permits(2)) + granted(10, "a1", 1, 500) +
           invoke(5, "b1", permits(wanted)) + granted(20, "b1", 2, 500);
  };

  EXPECT_EQ(violations(beside(1)), "");
  EXPECT_EQ(violations(beside(2)), "LQ");
}

TEST(HistoryCheck, overlapping_ranges_break_exclusion_and_neighbours_do_not) {
  const auto range = [](const std::string& start, const std::string& end) {
    return R"({"name":"s","mode":"X","start":")" + start + R"(","end":")" + end + R"("})";
  };
  const auto beside = [&](const std::string& start) {
    return invoke(0, "a1", range("b", "d")) + granted(10, "a1", 1, 500) +
           invoke(5, "b1", range(start, "z")) + granted(20, "b1", 2, 500);
  };

  EXPECT_EQ(violations(beside("d")), "");
  EXPECT_EQ(violations(beside("c")), "Q");
}

// The mutant: a read that a deposed leader answers by itself.
TEST(HistoryCheck, a_read_that_does_not_show_a_holder_or_shows_a_former_one_is_noticed) {
  const auto read = [](int since, int at, const std::string& holders) {
    return line(at, "read",
                R"("since":)" + std::to_string(since) + R"(,"items":[{"name":"n"}],"holders":[)" +
                    holders + "]");
  };

  EXPECT_EQ(violations(good_history() + read(30, 50, "7") + read(300, 310, "")), "");
  EXPECT_EQ(violations(good_history() + read(30, 50, "")), "L");
  EXPECT_EQ(violations(good_history() + read(300, 310, "9")), "L");
}

TEST(HistoryCheck, a_failed_attempt_at_a_free_lock_is_noticed) {
  const auto attempt = invoke(300, "c1", n_exclusive, R"("policy":"try")") +
                       of(310, "failed", "c1", R"("why":"would_block")");

  EXPECT_EQ(violations(good_history() + attempt), "L");
}

TEST(HistoryCheck, an_undeclared_property_is_not_checked) {
  std::istringstream in(R"({"at":0,"kind":"history","properties":"TS"})"
                        "\n" +
                        invoke(0, "a1", n_exclusive) + granted(10, "a1", 1, 500) +
                        invoke(5, "b1", n_exclusive) + granted(20, "b1", 2, 900));

  EXPECT_TRUE(check(assemble(*read_lines(in))).is_valid());
}

TEST(HistoryCheck, a_reply_to_a_request_that_was_never_invoked_is_a_contradiction) {
  EXPECT_EQ(violations(granted(10, "a1", 1, 500)), "?");
}

TEST(HistoryLines, every_event_survives_a_round_trip) {
  std::istringstream in(good_history() +
                        invoke(1, "x1",
                               R"({"name":"s","permits":2,"capacity":3},)"
                               R"({"name":"k","mode":"SIX","start":"a"})",
                               R"("policy":"try")") +
                        of(2, "failed", "x1", R"("why":"deadlock","cycle":["x1","a1"])"));
  const auto events = read_lines(in);
  ASSERT_TRUE(events.has_value()) << events.error().detail;

  for (const auto& event : *events) {
    const auto again = from_line(to_line(event));
    ASSERT_TRUE(again.has_value()) << to_line(event);
    EXPECT_EQ(*again, event) << to_line(event);
  }
}

TEST(HistoryLines, an_invalid_line_is_rejected_with_its_number_and_reason) {
  const auto why = [](const std::string& text) {
    std::istringstream in("\n" + text + "\n");
    const auto events = read_lines(in);
    return events ? std::string("nothing") : events.error().detail;
  };

  EXPECT_EQ(why("granted a1"), "line 2: the line is not a JSON object");
  EXPECT_EQ(why(R"({"at":1})"), "line 2: 'kind' is missing");
  EXPECT_EQ(why(R"({"kind":"grant"})"), "line 2: 'kind' has the unknown value 'grant'");
  EXPECT_EQ(why(R"({"kind":"end","tocken":1})"), "line 2: 'tocken' is unknown");
  EXPECT_EQ(why(R"({"kind":"granted","token":-1})"), "line 2: 'token' is not a token");
  EXPECT_EQ(why(R"({"kind":"invoke","items":[{"name":"n","mode":"Y"}]})"),
            "line 2: 'items' is not a lock mode");
}

}  // namespace
}  // namespace tenure::history
