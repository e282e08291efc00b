// A holder that was paused loses its lock without knowing. Storage that remembers the newest
// fencing token refuses its late write, so what the next holder wrote stays.

#include <mutex>
#include <string>

#include <tenure/fence.hpp>

#include "promise.hpp"

using tenure::Admission;
using tenure::Fence;
using tenure::FencingToken;
using tenure::Refusal;

namespace {

/// The fence lives beside what it protects, under the same mutex: nobody gets between the question
/// and the write.
class Storage {
 public:
  Admission write(FencingToken token, const std::string& text) {
    const std::lock_guard guard(mutex_);
    auto admitted = fence_.admit("report", token);
    if (admitted) {
      report_ = text;
    }
    return admitted;
  }
  Admission send_invoice(FencingToken token) {
    const std::lock_guard guard(mutex_);
    auto admitted = fence_.admit_once("invoice", token);
    if (admitted) {
      ++invoices_;
    }
    return admitted;
  }
  std::string report() {
    const std::lock_guard guard(mutex_);
    return report_;
  }
  int invoices() {
    const std::lock_guard guard(mutex_);
    return invoices_;
  }

 private:
  std::mutex mutex_;
  Fence fence_;         // guarded by mutex_
  std::string report_;  // guarded by mutex_
  int invoices_ = 0;    // guarded by mutex_
};

void a_late_write(Storage& storage) {
  constexpr FencingToken ann{100};  // came with ann's lock; then ann's machine was suspended
  constexpr FencingToken bob{101};  // came with bob's, after ann's lease had ended

  promise(storage.write(bob, "by bob").has_value(), "bob writes with token 101");
  promise(storage.write(bob, "by bob, corrected").has_value(),
          "bob writes again: the same holder may");

  const auto late = storage.write(ann, "by ann");
  promise(!late && late.error().reason == Refusal::Reason::stale,
          "ann wakes up and writes with token 100: refused");
  promise(late.error().highest == bob, to_string(late.error()));
  promise(storage.report() == "by bob, corrected", "the report is still bob's");
}

void once_only(Storage& storage) {
  constexpr FencingToken token{102};
  promise(storage.send_invoice(token).has_value(), "the invoice is sent with token 102");

  const auto again = storage.send_invoice(token);
  promise(!again && again.error().reason == Refusal::Reason::reused,
          "the answer got lost, so it is sent again: refused as reused");
  promise(storage.invoices() == 1, "one invoice was sent");
}

}  // namespace

int main() {
  Storage storage;
  a_late_write(storage);
  once_only(storage);
}
