// Read first, then write: a shared lock becomes exclusive in place once no other reader is left. An
// update lock says from the start that it will write, so that two such readers cannot deadlock.

#include <tenure/tenure.hpp>

#include "promise.hpp"

using tenure::Errc;
using tenure::LockManager;
using tenure::LockMode;

int main() {
  const LockManager locks;
  const auto ann = locks.begin();
  const auto ben = locks.begin();

  ann.lock("page/7", LockMode::shared).value();
  ben.lock("page/7", LockMode::shared).value();
  promise(locks.holder_count("page/7") == 2, "ann and ben read page 7 together");

  const auto refused = ann.try_lock("page/7", LockMode::exclusive);
  promise(!refused && refused.error() == Errc::would_block,
          "ann cannot write while ben reads: would_block");
  promise(ann.mode_held("page/7") == LockMode::shared,
          "ann still reads: a refusal changes nothing");

  ben.unlock("page/7").value();
  ann.try_lock("page/7", LockMode::exclusive).value();
  promise(ann.mode_held("page/7") == LockMode::exclusive, "ben is done: ann's S has become X");

  ann.downgrade("page/7", LockMode::shared).value();
  promise(ben.try_lock("page/7", LockMode::shared).has_value(),
          "ann goes back to S, and ben reads again");
  ann.unlock_all();
  ben.unlock_all();

  ann.lock("table", LockMode::shared).value();
  ann.lock("table", LockMode::intention_exclusive).value();
  promise(ann.mode_held("table") == LockMode::shared_intention_exclusive,
          "S and IX together are SIX: reads the table, writes some rows of it");
  ann.unlock_all();

  ann.lock("page/8", LockMode::update).value();
  promise(ben.try_lock("page/8", LockMode::shared).has_value(), "a reader comes in beside ann's U");
  ben.unlock_all();
  promise(!ben.try_lock("page/8", LockMode::update),
          "a second U is refused: only one may go on to X");
  promise(ann.try_lock("page/8", LockMode::exclusive).has_value(), "ann's U has become X");
}
