#include <iostream>

#include <tenure/tenure.hpp>

int main() {
  const tenure::LockManager locks;
  const auto txn = locks.begin();
  if (!txn.lock("a", tenure::LockMode::exclusive)) {
    return 1;
  }
  std::cout << "held: " << tenure::to_string(txn.mode_held("a").value()) << '\n';
}
