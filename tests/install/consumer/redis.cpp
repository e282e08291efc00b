// What a user of locks on Redis writes:
//
//   redis redis://host:port

#include <iostream>

#include <tenure/client/client.hpp>

int main(int count, char** words) {
  if (count != 2) {
    return 64;
  }
  const auto ann = tenure::connect(words[1], {.owner = "ann"});
  const auto bob = tenure::connect(words[1], {.owner = "bob"});
  if (!ann || !bob) {
    std::cout << to_string((ann ? bob : ann).error()) << '\n';
    return 1;
  }
  auto guard = ann->mutex("a").lock();
  const auto refused = bob->mutex("a").try_lock();
  if (!guard || refused) {
    return 1;
  }
  std::cout << "held by " << ann->holders("a").or_throw().front().owner << ", for others "
            << to_string(refused.error().code);
  if (!guard->unlock() || !bob->mutex("a").try_lock()) {
    return 1;
  }
  std::cout << ", then free\n";
}
