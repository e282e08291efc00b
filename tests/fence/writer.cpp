// Lock holder in a process of its own, which a test can stop. It acquires the lock, reports that,
// waits for a command, and writes as if it still held the lock.
//   tenure_fence_writer kind address resource fenced|unfenced

#include <exception>
#include <iostream>
#include <string>

#include "fence/storage.hpp"

namespace tenure::test {
namespace {

/// Acquires from the lock service, which is the test at the other end of the pipes.
FencingToken take_lock() {
  std::cout << "lock" << std::endl;
  std::string word;
  std::uint64_t token = 0;
  std::cin >> word >> token;
  std::cin.ignore();
  return FencingToken{token};
}

std::string write(Storage& storage, const Entry& entry, bool is_fenced) {
  if (!is_fenced) {
    storage.add_unfenced(entry);
    return "written";
  }
  const auto admitted = storage.add(entry);
  return admitted ? "written" : "refused, " + to_string(admitted.error());
}

void hold_and_write(Storage& storage, const std::string& resource, bool is_fenced) {
  const auto token = take_lock();
  std::cout << "holds " << token.get() << std::endl;
  std::string text;
  while (std::getline(std::cin, text)) {
    const Entry entry{.resource = resource, .token = token, .text = text};
    std::cout << write(storage, entry, is_fenced) << std::endl;
  }
}

}  // namespace
}  // namespace tenure::test

int main(int count, char** words) try {
  if (count != 5) {
    std::cerr << "usage: tenure_fence_writer kind address resource fenced|unfenced\n";
    return 64;
  }
  const auto storage = tenure::test::connect_storage(words[1], words[2]);
  tenure::test::hold_and_write(*storage, words[3], std::string(words[4]) == "fenced");
} catch (const std::exception& problem) {
  std::cout << "failed, " << problem.what() << std::endl;
  return 1;
}
