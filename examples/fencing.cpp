// A suspended holder loses its lock without noticing. Storage that remembers the newest fencing
// token rejects its late write, so the write of the next holder stays.

#include <mutex>
#include <string>

#include <tenure/fence.hpp>

#include "check.hpp"

using tenure::Fence;
using tenure::FenceError;
using tenure::FenceResult;
using tenure::FencingToken;

namespace {

/// The fence and the data it protects have one mutex, so check and write are atomic.
class Storage {
 public:
  FenceResult write(FencingToken token, const std::string& text) {
    const std::lock_guard guard(mutex_);
    auto admitted = fence_.admit("report", token);
    if (admitted) {
      report_ = text;
    }
    return admitted;
  }
  FenceResult send_invoice(FencingToken token) {
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

  check(storage.write(bob, "by bob").has_value(), "bob writes with token 101");
  check(storage.write(bob, "by bob, corrected").has_value(),
        "bob writes again: the same token is accepted");

  const auto late = storage.write(ann, "by ann");
  check(!late && late.error().reason == FenceError::Reason::stale,
        "ann resumes and writes with token 100: rejected");
  check(late.error().highest == bob, to_string(late.error()));
  check(storage.report() == "by bob, corrected", "the report is still bob's");
}

void once_only(Storage& storage) {
  constexpr FencingToken token{102};
  check(storage.send_invoice(token).has_value(), "the invoice is sent with token 102");

  const auto again = storage.send_invoice(token);
  check(!again && again.error().reason == FenceError::Reason::reused,
        "the reply was lost, so the request is sent again: rejected as reused");
  check(storage.invoices() == 1, "one invoice was sent");
}

}  // namespace

int main() {
  Storage storage;
  a_late_write(storage);
  once_only(storage);
}
