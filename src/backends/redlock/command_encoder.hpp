#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <tenure/ids.hpp>

#include "backends/backend.hpp"
#include "backends/redis/command_encoder.hpp"
#include "backends/redlock/scripts.hpp"

namespace tenure::backends::redlock {

/// Everything that is said to a server about votes, as the wire has it. scripts/ says what the
/// words mean. Immutable.
class CommandEncoder {
 public:
  /// `client`: by which the servers wake us.
  CommandEncoder(std::string name_space, std::string client);

  /// Where our wake-ups arrive.
  [[nodiscard]] std::string channel() const { return channels_ + client_; }

  struct Vote {
    const AcquireSpec& spec;
    std::string_view member;
    std::chrono::milliseconds ttl{};
    std::uint64_t token = 0;  ///< Proposed.
    bool waits = false;
    bool was_refused = false;
  };
  /// Its end is for set_not_after().
  [[nodiscard]] std::string vote(const Vote& vote) const;
  /// For one server of many: a time of its own clock in µs, beyond which the vote is not to be
  /// given.
  static void set_not_after(std::string& vote, std::int64_t micros);

  [[nodiscard]] std::string write_back(const AcquireSpec& spec, std::string_view member,
                                       FencingToken token) const;
  /// Whether our client still waits for the lock, and is to be woken.
  enum class Waits : std::uint8_t { still, no_longer };
  struct Release {
    const AcquireSpec& spec;
    std::string_view member;
    FencingToken token{};
    std::chrono::milliseconds ttl{};  ///< That was voted for.
    Waits waits = Waits::still;
  };
  /// Of a hold; the next one is woken.
  [[nodiscard]] std::string release(const Release& release) const;
  /// Of a vote that came to nothing; nobody is woken by that.
  [[nodiscard]] std::string withdraw(const AcquireSpec& spec, std::string_view member,
                                     Waits waits) const;
  /// `change`: of the ttl, its number; 0: a renewal.
  [[nodiscard]] std::string extend(const AcquireSpec& spec, std::string_view member,
                                   std::chrono::milliseconds ttl, RequestId change) const;
  [[nodiscard]] std::string holder(std::string_view name) const;
  [[nodiscard]] std::string force_release(std::string_view name) const;

 private:
  /// What withdraw_vote.lua is told of the vote.
  struct Known {
    std::string_view token;
    std::string_view begin;  ///< Of the head.
  };
  [[nodiscard]] std::string withdraw_vote(const AcquireSpec& spec, std::string_view member,
                                          const Known& known, Waits waits) const;

  std::string client_;
  std::string channels_;  ///< How they begin.
  redis::CommandEncoder keys_;
};

/// One value for each acquisition: its lease and its request.
[[nodiscard]] std::string member_of(LeaseId lease, RequestId request);

}  // namespace tenure::backends::redlock
