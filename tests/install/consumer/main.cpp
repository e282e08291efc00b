#include <iostream>

#include <tenure/tenure.hpp>

int main() {
  const tenure::LockManager locks;
  const auto txn = locks.begin();
  if (!txn.lock("a", tenure::LockMode::exclusive)) {
    return 1;
  }
  std::cout << "held: " << tenure::to_string(txn.mode_held("a").value()) << '\n';

  // A scheme whose library is not linked says which one that is.
  const auto refused = tenure::connect("tenure://127.0.0.1:1");
  const bool says_which = !refused && refused.error() == tenure::Errc::unsupported &&
                          refused.error().detail.find("tenure::cluster") != std::string::npos;
  return says_which ? 0 : 1;
}
