// Locks on intervals of keys: who has read "all users from 100 to 200" must not find a new one
// there before he is done (a phantom). Ranges and single keys of one space see each other.

#include <tenure/tenure.hpp>

#include "promise.hpp"

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
  report.lock(KeysOf{index, from_100_to_200}, LockMode::shared).value();
  promise(locks.range_count(index) == 1, "the report has read the keys 100 to 200");

  const auto other = locks.begin();
  promise(
      other.try_lock(KeysOf{index, KeyRange::of(150, 250).value()}, LockMode::shared).has_value(),
      "another reader may overlap: 150 to 250");
  other.unlock_all();

  const auto insert = locks.begin();
  const auto refused = insert.try_lock(KeysOf{index, KeyRange::point(150)}, LockMode::exclusive);
  promise(!refused && refused.error() == Errc::would_block,
          "inserting key 150 is refused: it would be a phantom");
  promise(insert.try_lock(KeysOf{index, KeyRange::point(201)}, LockMode::exclusive).has_value(),
          "inserting key 201 is fine: both ends of a range are inside, 201 is not");
  promise(
      insert.try_lock(KeysOf{ResourceId{2}, KeyRange::point(150)}, LockMode::exclusive).has_value(),
      "key 150 of another index is another key");

  report.unlock(KeysOf{index, from_100_to_200}).value();
  promise(insert.try_lock(KeysOf{index, KeyRange::point(150)}, LockMode::exclusive).has_value(),
          "the report is done, key 150 can be inserted");

  report.lock(BytesOf{index, BytesRange::prefix("user/")}, LockMode::exclusive).value();
  promise(!insert.try_lock(BytesOf{index, BytesRange::point("user/ann")}, LockMode::shared),
          "keys may be strings: the prefix user/ bars user/ann");
  promise(
      insert.try_lock(BytesOf{index, BytesRange::point("order/1")}, LockMode::shared).has_value(),
      "and leaves order/1 alone");
}
