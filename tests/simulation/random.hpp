#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <iterator>

namespace tenure::simulation {

/// Random source of a run, seeded: SplitMix64 (Steele, Lea, Flood, "Fast Splittable
/// Pseudorandom Number Generators", 2014). Not <random>: its distributions differ from library to
/// library, and a seed has to mean the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  [[nodiscard]] std::uint64_t next() {
    auto mixed = state_ += 0x9E3779B97F4A7C15U;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
    return mixed ^ (mixed >> 31);
  }
  /// Uniform in [0, end); 0 if `end` is 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t end) { return end == 0 ? 0 : next() % end; }
  [[nodiscard]] bool one_in(std::uint64_t count) { return below(count) == 0; }
  [[nodiscard]] bool percent(std::uint64_t share) { return below(100) < share; }
  [[nodiscard]] bool permille(std::uint64_t share) { return below(1000) < share; }
  template <class Duration>
  [[nodiscard]] Duration between(Duration least, Duration most) {
    const auto span = static_cast<std::uint64_t>((most - least).count());
    return least + Duration(static_cast<typename Duration::rep>(below(span + 1)));
  }
  template <class Value>
  [[nodiscard]] Value one_of(std::initializer_list<Value> values) {
    return *std::next(values.begin(), static_cast<std::ptrdiff_t>(below(values.size())));
  }
  [[nodiscard]] std::size_t index(std::size_t size) {
    return static_cast<std::size_t>(below(size));
  }

 private:
  std::uint64_t state_;
};

}  // namespace tenure::simulation
