// One row, one writer, one reader: the reader times out while the writer holds the row, and
// acquires it when the writer is done. Two interfaces: transaction objects, and ids.

#include <chrono>

#include <tenure/tenure.hpp>

#include "check.hpp"

using namespace std::chrono_literals;
using tenure::Errc;
using tenure::LockManager;
using tenure::LockMode;
using tenure::ResourceId;
using tenure::TxnId;

namespace {

void with_transaction_objects(const LockManager& locks) {
  const auto reader = locks.begin();
  {
    const auto writer = locks.begin();
    check(writer.lock("accounts/42", LockMode::exclusive).has_value(),
          "the writer holds accounts/42 exclusively");

    const auto refused = reader.try_lock_for("accounts/42", LockMode::shared, 10ms);
    check(!refused && refused.error() == Errc::timed_out, "the reader waits 10 ms: timed_out");
  }  // the writer's end releases everything it held

  check(reader.lock("accounts/42", LockMode::shared).has_value(),
        "the writer is done, the reader holds accounts/42");
}

void with_numbers_alone(const LockManager& locks) {
  constexpr ResourceId row{1};
  constexpr TxnId writer{1};
  constexpr TxnId reader{2};

  check(locks.try_acquire(writer, row, LockMode::exclusive).has_value(),
        "transaction 1 holds row 1 exclusively");
  const auto refused = locks.try_acquire(reader, row, LockMode::shared);
  check(!refused && refused.error() == Errc::conflict, "transaction 2 fails at once: would_block");

  check(locks.release(writer, row).has_value(), "transaction 1 releases row 1");
  check(locks.try_acquire(reader, row, LockMode::shared).has_value(), "transaction 2 holds row 1");
  check(locks.release_all(reader) == 1, "transaction 2 releases its one lock");
}

}  // namespace

int main() {
  const LockManager locks;
  with_transaction_objects(locks);
  with_numbers_alone(locks);
}
