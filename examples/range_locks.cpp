// Locks on intervals of keys: a transaction that has read all users from 100 to 200 must not see a
// new one there before it ends (a phantom). Ranges and single keys of one space conflict.

#include <tenure/tenure.hpp>

#include "check.hpp"

using tenure::BytesOf;
using tenure::BytesRange;
using tenure::Errc;
using tenure::KeyRange;
using tenure::KeysOf;
using tenure::LockManager;
using tenure::LockMode;
using tenure::ResourceId;

int main() {
  const LockManager locks;
  constexpr ResourceId index{1};
  const auto from_100_to_200 = KeyRange::of(100, 200).value();

  const auto report = locks.begin();
  report.lock(KeysOf{index, from_100_to_200}, LockMode::shared).or_throw();
  check(locks.range_count(index) == 1, "the report has read the keys 100 to 200");

  const auto other = locks.begin();
  check(other.try_lock(KeysOf{index, KeyRange::of(150, 250).value()}, LockMode::shared).has_value(),
        "another reader may overlap: 150 to 250");
  other.unlock_all();

  const auto insert = locks.begin();
  const auto refused = insert.try_lock(KeysOf{index, KeyRange::point(150)}, LockMode::exclusive);
  check(!refused && refused.error() == Errc::would_block,
        "inserting key 150 is rejected: it would be a phantom");
  check(insert.try_lock(KeysOf{index, KeyRange::point(201)}, LockMode::exclusive).has_value(),
        "inserting key 201 works: a range includes both ends, and 201 is outside");
  check(
      insert.try_lock(KeysOf{ResourceId{2}, KeyRange::point(150)}, LockMode::exclusive).has_value(),
      "key 150 of another index does not conflict");

  report.unlock(KeysOf{index, from_100_to_200}).or_throw();
  check(insert.try_lock(KeysOf{index, KeyRange::point(150)}, LockMode::exclusive).has_value(),
        "the report is done, key 150 can be inserted");

  report.lock(BytesOf{index, BytesRange::prefix("user/")}, LockMode::exclusive).or_throw();
  check(!insert.try_lock(BytesOf{index, BytesRange::point("user/ann")}, LockMode::shared),
        "keys may be strings: the prefix user/ bars user/ann");
  check(insert.try_lock(BytesOf{index, BytesRange::point("order/1")}, LockMode::shared).has_value(),
        "the prefix user/ does not bar order/1");
}
