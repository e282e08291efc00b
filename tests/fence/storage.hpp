#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/fence.hpp>

namespace tenure::test {

enum class Repeat : std::uint8_t { allowed, refused };  ///< admit() or admit_once()

/// A text that the holder of a lock adds to a resource.
struct Entry {
  std::string resource;
  FencingToken token{};
  std::string text = {};
  Repeat repeat = Repeat::allowed;
};

/// One connection to a database that keeps a list of texts for each resource behind a fence. What
/// an application would have.
class Storage {
 public:
  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  virtual ~Storage() = default;

  /// Makes the tables unless they are there.
  virtual void create() = 0;
  /// Asks the fence and adds the text, as one transaction.
  [[nodiscard]] virtual FenceResult add(const Entry& entry) = 0;
  /// Appends the text without a fence.
  virtual void add_unfenced(const Entry& entry) = 0;

  /// The texts in the order in which they were added.
  [[nodiscard]] virtual std::vector<std::string> texts(const std::string& resource) = 0;
  [[nodiscard]] virtual Result<FencingToken> highest(std::string_view resource) = 0;
};

/// `address` is a file for "sqlite", the settings of libpq for "postgresql", a socket for "redis".
[[nodiscard]] std::unique_ptr<Storage> connect_storage(const std::string& kind,
                                                       const std::string& address);

}  // namespace tenure::test
