// A holder is suspended past its lease, resumes and writes. Storage that remembers the largest
// token rejects the write; the lock alone cannot.

#include <chrono>
#include <string>

#include <tenure/tenure.hpp>

#include "check.hpp"

using namespace std::chrono_literals;
using tenure::FencingToken;

namespace {

/// A table that accepts writes only from the latest holder of its lock. A database compares tokens
/// in the transaction that writes.
class Account {
 public:
  [[nodiscard]] bool write(int balance, FencingToken token) {
    if (token < newest_) {
      return false;
    }
    newest_ = token;
    balance_ = balance;
    return true;
  }
  [[nodiscard]] int balance() const { return balance_; }

 private:
  FencingToken newest_{};
  int balance_ = 0;
};

}  // namespace

int main() {
  const auto client = tenure::connect("memory://").or_throw();
  Account account;

  // Never renewed, as if the process were suspended.
  const auto sleeper =
      client.mutex("accounts/42", {.ttl = 100ms, .renewals_per_ttl = 0}).lock().or_throw();
  const auto token = sleeper.token();

  const auto successor = client.mutex("accounts/42").lock().or_throw();
  check(successor.token() > token, "the lease expired; the successor has a larger token");
  check(account.write(100, successor.token()), "the successor writes 100");
  check(!account.write(7, token), "the suspended holder resumes and writes 7: rejected");
  check(account.balance() == 100, "the balance is 100");
  check(sleeper.lost().stop_requested(), "the first holder is notified that it lost the lock");
}
