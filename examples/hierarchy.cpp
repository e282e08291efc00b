// Database, table, page, row: intention locks on the ancestors of a row announce a lock below, so a
// lock on a whole table need not check its rows.

#include <tenure/tenure.hpp>

#include "check.hpp"

using tenure::LockManager;
using tenure::LockMode;
using tenure::ResourceId;
using tenure::TxnId;

namespace {

void by_path(const LockManager& locks) {
  const auto writer = locks.begin();
  writer.lock_path({"shop", "users", "page-3", "42"}, LockMode::exclusive).or_throw();
  check(writer.mode_held("shop/users") == LockMode::intention_exclusive &&
            writer.mode_held("shop/users/page-3/42") == LockMode::exclusive,
        "writing row 42: X on the row, IX on page, table and database");

  const auto reader = locks.begin();
  check(reader.lock_path({"shop", "users", "page-3", "43"}, LockMode::shared).has_value(),
        "another row of the same page can be read");
  check(!reader.try_lock("shop/users/page-3/42", LockMode::shared), "row 42 itself cannot be read");

  const auto scan = locks.begin();
  check(!scan.try_lock("shop/users", LockMode::shared),
        "the whole table cannot be read: its IX announces a write below");
  check(scan.try_lock("shop/orders", LockMode::shared).has_value(),
        "the table shop/orders can be read");
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
    locks.try_acquire(writer, node, LockMode::intention_exclusive).or_throw();
  }
  locks.try_acquire(writer, row, LockMode::exclusive).or_throw();
  for (const auto node : {database, table}) {
    locks.try_acquire(reader, node, LockMode::intention_shared).or_throw();
  }
  check(!locks.try_acquire(reader, row, LockMode::shared),
        "the same by ids: the reader gets the table, not the row");

  // Fine to coarse, or all at once.
  locks.release(writer, row).or_throw();
  check(locks.try_acquire(reader, row, LockMode::shared).has_value(),
        "the row is released first, and the reader gets it");
  check(locks.release_all(writer) == 3, "release_all releases the three intention locks");
  locks.release_all(reader);
}

}  // namespace

int main() {
  const LockManager locks;
  by_path(locks);
  by_number(locks);
}
