#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "backends/redis/scripts.hpp"
#include "support/redis_server.hpp"

// What burst.lua does by itself.

namespace tenure::test {
namespace {

using namespace backends;

std::string head_of(const std::string& name) {
  return "{tenure:" + name + "}";
}

/// A letter, and what it says.
using Said = std::pair<char, std::string>;

class RedisBurstScript : public ::testing::Test {
 protected:
  /// For each acquisition and release what the answer says of it.
  static std::string each(const std::string& letters, const std::string& answer) {
    std::istringstream words(answer);
    std::string token;
    words >> token;
    std::string all;
    for (const auto letter : letters) {
      if (letter == 'a' || letter == 'r' || letter == 's') {
        std::string told = "1";  // if there is no list
        words >> told;
        all += (all.empty() ? "" : " ") + (told == "1" && letter == 'a' ? token : told);
      }
    }
    return all;
  }
  /// About these, and `said` of them.
  std::string burst(const std::vector<std::string>& names, const std::vector<Said>& said) {
    std::string letters;
    std::string lengths;
    std::string words;
    std::vector<std::string> keys;
    std::vector<std::string> plain_keys;
    for (const auto& [letter, word] : said) {
      letters += letter;
      lengths += "c" + std::to_string(word.size());
      words += word;
      if (letter == 'a') {
        plain_keys.push_back(names.at(keys.size()));
      }
      if (letter == 'a' || letter == 'r' || letter == 's') {
        keys.push_back(head_of(names.at(keys.size())));
      }
    }
    std::vector<std::string> all{"EVAL", std::string(redis::text_of(redis::Script::burst).text),
                                 std::to_string(keys.size() + plain_keys.size() + 1)};
    all.insert(all.end(), keys.begin(), keys.end());
    all.insert(all.end(), plain_keys.begin(), plain_keys.end());
    all.insert(all.end(), {"{tenure:}:t", letters, lengths, words, std::to_string(keys.size())});
    return each(letters, server.ask(all));
  }
  std::string acquire(const std::string& name, const std::string& life = "90000",
                      const std::string& label = "ann\n") {
    return burst({name}, {{'t', life}, {'c', " L X ear " + label}, {'a', "ann.1"}});
  }
  /// Ann gives it back.
  std::string release(const std::string& name) { return burst({name}, {{'r', "ann.1 "}}); }
  /// Ann gives it back, and Bob takes it.
  std::string again(const std::string& name, const std::string& holder = "ann.1 ") {
    return burst({name}, {{'t', "90000"}, {'c', " L X ear bob\n"}, {'b', holder}, {'a', "bob.7"}});
  }
  std::string renew(const std::string& name, const std::string& ttl) {
    return server.ask({"EVAL", std::string(redis::text_of(redis::Script::renew).text), "5",
                       head_of(name), head_of(name) + ":m", head_of(name) + ":e",
                       head_of(name) + ":q", "{tenure:}:t", ttl, "ann"});
  }
  std::string get(const std::string& name) { return server.ask({"GET", head_of(name)}); }
  /// Without what it says of its time.
  std::string told(const std::string& name) {
    const auto head = get(name);
    return head.substr(0, head.size() - 14);
  }
  std::int64_t life_of(const std::string& name) {
    return std::stoll(server.ask({"PTTL", head_of(name)}));
  }
  std::int64_t now_ms() {
    std::istringstream words(server.ask({"TIME"}));
    std::int64_t seconds = 0;
    std::int64_t micros = 0;
    words >> seconds >> micros;
    return seconds * 1000 + micros / 1000;
  }
  std::int64_t end_of(const std::string& name) {
    return std::stoll(server.ask({"PEXPIRETIME", head_of(name)}));
  }
  RedisServer server;
};

TEST_F(RedisBurstScript, what_is_free_is_granted_and_given_back) {
  const auto tokens = burst({"a", "b"}, {{'t', "90000"},
                                         {'c', " L X ear ann\n"},
                                         {'a', "ann.1"},
                                         {'t', "70000"},
                                         {'c', " L X ear bob\n"},
                                         {'a', "bob.2"}});
  ASSERT_GE(tokens.size(), 33U) << tokens;
  const auto token = tokens.substr(0, 16);
  EXPECT_EQ(get("a"), "H " + token + " ann.1 L X ear ann\n " + std::to_string(end_of("a")));
  EXPECT_GT(life_of("a"), 71'000);
  EXPECT_LE(life_of("b"), 71'000);

  const auto released = burst({"a", "b"}, {{'r', "ann.1 "}, {'r', "cid.2 "}});

  EXPECT_EQ(released, "1 0") << "only what is its own";
  EXPECT_TRUE(get("a").starts_with("T " + token + " ann.1 "));
  EXPECT_GT(life_of("a"), 60'000) << "it is remembered for a minute, and what was left to it";
  EXPECT_TRUE(get("b").starts_with("H "));
}

TEST_F(RedisBurstScript, tokens_of_forgotten_locks_grow_though_the_clock_steps_back) {
  server.ask({"SET", "{tenure:}:t", "8000000000000000"});

  EXPECT_EQ(acquire("a"), "8000000000000001");
  EXPECT_EQ(server.ask({"GET", "{tenure:}:t"}), "8000000000000001");
  EXPECT_EQ(acquire("b"), "8000000000000002");
  server.ask({"DEL", "{tenure:}:t"});
  const auto token = acquire("c");
  EXPECT_EQ(server.ask({"GET", "{tenure:}:t"}), token);
}

// An error of the script would hide that the first lock was given back.
TEST_F(RedisBurstScript, a_head_that_is_no_lock_does_not_stop_the_rest) {
  const auto token = acquire("a");
  server.ask({"SET", head_of("b"), "T x"});

  const auto answers =
      burst({"a", "b"}, {{'r', "ann.1 "}, {'t', "90000"}, {'c', " L X ear ann\n"}, {'a', "ann.2"}});

  EXPECT_EQ(answers, "1 0");
  EXPECT_TRUE(get("a").starts_with("T " + token));
  EXPECT_EQ(get("b"), "T x");
}

// Else what is held for a day would be remembered for a day.
TEST_F(RedisBurstScript, what_was_granted_for_long_is_forgotten_after_a_minute) {
  const auto token = acquire("a");
  server.ask({"PEXPIRE", head_of("a"), "9000000"});

  EXPECT_EQ(burst({"a"}, {{'s', "ann.1 "}}), "1");

  EXPECT_TRUE(get("a").starts_with("T " + token + " ann.1"));
  EXPECT_LE(life_of("a"), 60'000);
}

TEST_F(RedisBurstScript, what_is_not_that_easy_is_left_as_it_is) {
  server.ask({"SET", head_of("held"), "H 1 bob.1 L X ear bob\n 0000000000000", "PX", "90000"});
  server.ask({"SET", head_of("wide"), "F L 1 1 X 1 - 0 1 -", "PX", "90000"});
  server.ask({"SET", "barged", "somebody"});
  server.ask({"LPUSH", head_of("list"), "1"});
  for (const std::string name : {"held", "wide", "barged", "list"}) {
    const auto before = server.ask({"DUMP", head_of(name)});

    EXPECT_EQ(acquire(name), "0") << name;

    EXPECT_EQ(server.ask({"DUMP", head_of(name)}), before) << name;
  }
}

// The clock of the server stepped back.
TEST_F(RedisBurstScript, tokens_grow_whatever_the_clock_says) {
  server.ask({"SET", head_of("a"), "T 4000000000000000 bob.1", "PX", "60000"});

  EXPECT_EQ(acquire("a"), "4000000000000001");
  EXPECT_EQ(told("a"), "H 4000000000000001 ann.1 L X ear ann\n");
}

TEST_F(RedisBurstScript, each_is_told_its_own_token) {
  server.ask({"SET", head_of("later"), "T 4000000000000000 bob.1", "PX", "60000"});
  server.ask({"SET", head_of("held"), "H 1 bob.1 L X ear bob\n 0000000000000", "PX", "90000"});

  std::istringstream told(burst(
      {"now", "later", "held"},
      {{'t', "90000"}, {'c', " L X ear ann\n"}, {'a', "ann.1"}, {'a', "ann.2"}, {'a', "ann.3"}}));

  std::string now;
  std::string later;
  std::string held;
  told >> now >> later >> held;
  EXPECT_TRUE(get("now").starts_with("H " + now + " ann.1 ")) << get("now");
  EXPECT_EQ(later, "4000000000000001");
  EXPECT_EQ(held, "0");
}

TEST_F(RedisBurstScript, a_token_of_few_digits_is_a_small_one) {
  for (const std::string token : {"1", "9", "17", "999999999999999"}) {
    server.ask({"SET", head_of("a"), "T " + token + " bob.1", "PX", "60000"});

    EXPECT_GT(std::stoll(acquire("a")), 1'000'000'000'000'000) << token;
  }
}

TEST_F(RedisBurstScript, a_full_memory_changes_nothing) {
  const auto token = acquire("a");
  server.ask({"CONFIG", "SET", "maxmemory", "1"});

  EXPECT_EQ(acquire("b"), "0");
  EXPECT_EQ(release("a"), "0");

  EXPECT_TRUE(get("a").starts_with("H " + token));
  EXPECT_EQ(get("b"), "(nil)");
}

// Who gives it back and takes it again at once.
TEST_F(RedisBurstScript, what_is_given_back_and_taken_again_is_one_step) {
  const auto token = acquire("a");

  const auto answer = again("a");

  EXPECT_GT(std::stoll(answer), std::stoll(token));
  EXPECT_EQ(told("a"), "H " + answer + " bob.7 L X ear bob\n");
  EXPECT_GT(life_of("a"), 60'000);
}

TEST_F(RedisBurstScript, tokens_grow_in_that_step_too) {
  server.ask(
      {"SET", head_of("a"), "H 4000000000000000 ann.1 L X ear ann\n 0000000000000", "PX", "90000"});

  EXPECT_EQ(again("a"), "4000000000000001");
}

// Its time was over when it came: somebody with a barging lock may have it by then.
TEST_F(RedisBurstScript, who_comes_too_late_does_not_take_again_what_is_barged) {
  const auto token = acquire("a");
  server.ask({"PEXPIRE", head_of("a"), "50000"});
  const std::string barge(redis::text_of(redis::Script::barge).text);
  ASSERT_TRUE(server.ask({"EVAL", barge, "3", "a", "{tenure:}:t", head_of("a"), "cid", "90000"})
                  .starts_with("1 "));

  EXPECT_EQ(again("a"), "0");

  EXPECT_TRUE(get("a").starts_with("H " + token + " ann.1 "));
}

TEST_F(RedisBurstScript, of_that_step_nothing_is_done_if_it_is_not_that_easy) {
  const auto token = acquire("a");
  EXPECT_EQ(again("a", "ann.2 "), "0") << "somebody else holds it";
  EXPECT_EQ(again("b"), "0") << "nobody does; first it is to be said to who gave it back";
  server.ask({"CONFIG", "SET", "maxmemory", "1"});

  EXPECT_EQ(again("a"), "0") << "there is no memory";

  EXPECT_TRUE(get("a").starts_with("H " + token + " ann.1 "));
}

// To say how long takes as long as all the rest. Said of time: to the end of the second.
TEST_F(RedisBurstScript, who_takes_it_in_the_same_second_does_not_say_how_long) {
  std::string token;
  std::string next;
  std::int64_t end = 0;
  std::int64_t second = 0;
  do {
    server.ask({"DEL", head_of("a")});
    second = now_ms() / 1000;
    token = acquire("a");
    end = end_of("a");
    ASSERT_EQ(release("a"), "1");
    next = acquire("a");
  } while (now_ms() / 1000 != second);

  EXPECT_GT(std::stoll(next), std::stoll(token));
  EXPECT_EQ(end_of("a"), end);
  EXPECT_EQ(end, (second + 1) * 1000 + 90'000);
  EXPECT_EQ(get("a"), "H " + next + " ann.1 L X ear ann\n " + std::to_string(end));
}

TEST_F(RedisBurstScript, it_has_its_time_and_at_most_a_sixteenth_more) {
  for (const std::int64_t ttl : {1, 15, 160, 1'599, 1'600, 15'999, 16'000, 3'600'000}) {
    const auto life = ttl + 60'000;
    const auto before = now_ms();

    acquire("a", std::to_string(life));

    EXPECT_GE(end_of("a"), before + life) << ttl;
    EXPECT_LE(end_of("a"), now_ms() + life + std::max<std::int64_t>(1, ttl / 16)) << ttl;
    EXPECT_TRUE(get("a").ends_with(" " + std::to_string(end_of("a")))) << ttl;
    server.ask({"DEL", head_of("a")});
  }
}

TEST_F(RedisBurstScript, who_needs_it_for_longer_says_so) {
  acquire("a");
  ASSERT_EQ(release("a"), "1");

  acquire("a", "200000");

  EXPECT_GT(life_of("a"), 190'000);
  EXPECT_TRUE(get("a").ends_with(" " + std::to_string(end_of("a"))));
}

TEST_F(RedisBurstScript, nothing_is_left_of_another_head_of_the_same_length) {
  acquire("a", "90000", "bob\n");
  ASSERT_EQ(release("a"), "1");

  const auto next = acquire("a");

  EXPECT_EQ(told("a"), "H " + next + " ann.1 L X ear ann\n");
}

TEST_F(RedisBurstScript, nothing_is_left_of_a_longer_head) {
  acquire("a", "90000", "somebody with a long name\nand a note");
  ASSERT_EQ(release("a"), "1");

  const auto next = acquire("a");

  EXPECT_EQ(told("a"), "H " + next + " ann.1 L X ear ann\n");
}

TEST_F(RedisBurstScript, a_free_head_of_the_short_form_says_nothing_of_its_time) {
  const std::string fresh = "H 1000000000000000 ann.1 L X ear ann\n";
  const std::string other = "T 1000000000000000 " + std::string(fresh.size() + 14 - 19, '9');
  server.ask({"SET", head_of("a"), other, "PX", "60000"});

  const auto token = acquire("a");

  EXPECT_GT(life_of("a"), 80'000);
  EXPECT_EQ(told("a"), "H " + token + " ann.1 L X ear ann\n");
}

// The next one would believe that it has the time that the head tells.
TEST_F(RedisBurstScript, what_is_made_to_end_sooner_is_not_said_to_live) {
  acquire("a");
  ASSERT_EQ(renew("a", "=1000"), "1");
  ASSERT_LE(life_of("a"), 61'000);
  ASSERT_EQ(release("a"), "1");

  acquire("a");

  EXPECT_GT(life_of("a"), 80'000);
  EXPECT_EQ(told("a").substr(18), " ann.1 L X ear ann\n");
}

TEST_F(RedisBurstScript, a_renewal_makes_nothing_shorter_and_writes_all_the_same) {
  acquire("a");
  const auto end = end_of("a");
  const auto changes = [this] {
    const auto info = server.ask({"INFO", "persistence"});
    return std::stoll(info.substr(info.find("rdb_changes_since_last_save:") + 28));
  };
  const auto before = changes();

  ASSERT_EQ(renew("a", "20000"), "1");

  EXPECT_GE(end_of("a"), end);
  EXPECT_GT(changes(), before) << "who waits for replicas after it waits for something";
}

TEST_F(RedisBurstScript, words_may_be_long) {
  const std::string label = "ann\n" + std::string(4096, 'x');

  const auto token = acquire("a", "90000", label);

  EXPECT_EQ(told("a"), "H " + token + " ann.1 L X ear " + label);
}

}  // namespace
}  // namespace tenure::test
