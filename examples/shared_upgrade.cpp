// Read first, then write: a shared lock becomes exclusive in place once no other reader is left. An
// update lock announces the write from the start, so two such readers cannot deadlock.

#include <tenure/tenure.hpp>

#include "check.hpp"

using tenure::Errc;
using tenure::LockManager;
using tenure::LockMode;

int main() {
  const LockManager locks;
  const auto ann = locks.begin();
  const auto ben = locks.begin();

  ann.lock("page/7", LockMode::shared).or_throw();
  ben.lock("page/7", LockMode::shared).or_throw();
  check(locks.holder_count("page/7") == 2, "ann and ben read page 7 together");

  const auto refused = ann.try_lock("page/7", LockMode::exclusive);
  check(!refused && refused.error() == Errc::would_block,
        "ann cannot write while ben reads: would_block");
  check(ann.mode_held("page/7") == LockMode::shared,
        "ann still reads: a failed upgrade changes nothing");

  ben.unlock("page/7").or_throw();
  ann.try_lock("page/7", LockMode::exclusive).or_throw();
  check(ann.mode_held("page/7") == LockMode::exclusive, "ben is done: ann's S has become X");

  ann.downgrade("page/7", LockMode::shared).or_throw();
  check(ben.try_lock("page/7", LockMode::shared).has_value(),
        "ann downgrades to S, and ben reads again");
  ann.unlock_all();
  ben.unlock_all();

  ann.lock("table", LockMode::shared).or_throw();
  ann.lock("table", LockMode::intention_exclusive).or_throw();
  check(ann.mode_held("table") == LockMode::shared_intention_exclusive,
        "S and IX together are SIX: reads the table, writes some rows of it");
  ann.unlock_all();

  ann.lock("page/8", LockMode::update).or_throw();
  check(ben.try_lock("page/8", LockMode::shared).has_value(), "a reader joins ann's U");
  ben.unlock_all();
  check(!ben.try_lock("page/8", LockMode::update),
        "a second U is rejected: only one holder may upgrade to X");
  check(ann.try_lock("page/8", LockMode::exclusive).has_value(), "ann's U has become X");
}
