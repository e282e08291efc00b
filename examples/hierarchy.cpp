// Database, table, page, row: intention locks on what lies above say "somebody works below", so
// that a lock on a whole table need not look at its rows.

#include <tenure/tenure.hpp>

#include "promise.hpp"

using tenure::LockManager;
using tenure::LockMode;
using tenure::ResourceId;
using tenure::TxnId;

namespace {

void by_path(const LockManager& locks) {
  const auto writer = locks.begin();
  writer.lock_path({"shop", "users", "page-3", "42"}, LockMode::exclusive).value();
  promise(writer.mode_held("shop/users") == LockMode::intention_exclusive &&
              writer.mode_held("shop/users/page-3/42") == LockMode::exclusive,
          "writing row 42: X on the row, IX on page, table and database");

  const auto reader = locks.begin();
  promise(reader.lock_path({"shop", "users", "page-3", "43"}, LockMode::shared).has_value(),
          "another row of the same page can be read meanwhile");
  promise(!reader.try_lock("shop/users/page-3/42", LockMode::shared), "row 42 itself cannot");

  const auto scan = locks.begin();
  promise(!scan.try_lock("shop/users", LockMode::shared),
          "the whole table cannot be read: its IX says that somebody writes below");
  promise(scan.try_lock("shop/orders", LockMode::shared).has_value(), "the table next to it can");
}

void by_number(const LockManager& locks) {
  constexpr ResourceId database{1};
  constexpr ResourceId table{2};
  constexpr ResourceId page{3};
  constexpr ResourceId row{4};
  constexpr TxnId writer{1};
  constexpr TxnId reader{2};

  // Coarse to fine.
  for (const auto node : {database, table, page}) {
    locks.try_acquire(writer, node, LockMode::intention_exclusive).value();
  }
  locks.try_acquire(writer, row, LockMode::exclusive).value();
  for (const auto node : {database, table}) {
    locks.try_acquire(reader, node, LockMode::intention_shared).value();
  }
  promise(!locks.try_acquire(reader, row, LockMode::shared),
          "the same by numbers: the reader comes down to the table, not into the row");

  // Fine to coarse, or all at once.
  locks.release(writer, row).value();
  promise(locks.try_acquire(reader, row, LockMode::shared).has_value(),
          "the row is released first, and the reader is in");
  promise(locks.release_all(writer) == 3, "release_all gives back the three intention locks");
  locks.release_all(reader);
}

}  // namespace

int main() {
  const LockManager locks;
  by_path(locks);
  by_number(locks);
}
