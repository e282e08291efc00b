#include <iostream>

#include <tenure/tenure.hpp>

int main() {
  const tenure::LockManager locks;
  const auto txn = locks.begin();
  if (!txn.lock("a", tenure::LockMode::exclusive)) {
    return 1;
  }
  std::cout << "held: " << tenure::to_string(txn.mode_held("a").value()) << '\n';

  // The error of a scheme names the library that is not linked.
  const auto refused = tenure::connect("tenure://127.0.0.1:1");
  const bool names_library = !refused && refused.error() == tenure::Errc::unsupported &&
                             refused.error().detail.find("tenure::cluster") != std::string::npos;
  return names_library ? 0 : 1;
}
