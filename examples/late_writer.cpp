// A holder that slept through its lease wakes up and writes. Storage that remembers the largest
// token it has seen refuses it: the lock alone could not.

#include <chrono>
#include <string>

#include <tenure/tenure.hpp>

#include "promise.hpp"

using namespace std::chrono_literals;
using tenure::FencingToken;

namespace {

/// A table that takes a write only from the latest holder of its lock. A real one compares inside
/// the transaction that writes.
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
  const auto client = tenure::connect("memory://").value();
  Account account;

  // Never renewed, as if the process were stopped.
  const auto sleeper =
      client.mutex("accounts/42", {.ttl = 100ms, .renewals_per_ttl = 0}).lock().value();
  const auto token = sleeper.token();

  const auto successor = client.mutex("accounts/42").lock().value();
  promise(successor.token() > token, "the lease ran out; the successor has a larger token");
  promise(account.write(100, successor.token()), "the successor writes 100");
  promise(!account.write(7, token), "the sleeper wakes up and writes 7: refused");
  promise(account.balance() == 100, "the balance is 100");
  promise(sleeper.lost().stop_requested(), "and the sleeper knows that it lost the lock");
}
