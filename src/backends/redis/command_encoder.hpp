#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tenure/ids.hpp>

#include "backends/backend.hpp"
#include "backends/redis/scripts.hpp"
#include "backends/redis/slots.hpp"

namespace tenure::backends::redis {

/// Who stands in a lock's record: the lease, as 16 hexadecimal digits. A semaphore and a plain lock
/// have one of its own for each request, so there '.' and the request follow.
class MemberId {
 public:
  MemberId() = default;
  /// Beyond bytes_max it is cut: it is nobody's.
  explicit MemberId(std::string_view text) noexcept;
  // NOLINTNEXTLINE(google-explicit-constructor): it is a word, and kept without an allocation.
  operator std::string_view() const noexcept { return {text_.data(), size_}; }
  [[nodiscard]] std::string to_string() const { return std::string(std::string_view(*this)); }

  friend bool operator==(const MemberId& one, const MemberId& other) noexcept {
    return std::string_view(one) == std::string_view(other);
  }
  template <class Hash>
  // NOLINTNEXTLINE(readability-identifier-naming): as Abseil looks for it.
  friend Hash AbslHashValue(Hash hash, const MemberId& member) {
    return Hash::combine_contiguous(std::move(hash), member.text_.data(), member.size_);
  }

  static constexpr std::size_t bytes_max = 16 + 1 + 20;

 private:
  std::array<char, bytes_max> text_{};
  std::uint8_t size_ = 0;
};

[[nodiscard]] MemberId member_of(const AcquireSpec& spec, LeaseId lease, RequestId request);
/// The lease that a member begins with; 0 if it is none.
[[nodiscard]] LeaseId lease_of(std::string_view member);

/// By which servers wake a client: short, since it stands in every record.
[[nodiscard]] std::string new_client_id();

/// Everything that is said to a server about locks, as the wire has it. scripts/ says what the
/// words mean. Immutable.
class CommandEncoder {
 public:
  /// Which keys a script may be given.
  enum class KeyScope : std::uint8_t {
    any,       ///< Also the plain key of the same name.
    one_slot,  ///< Those of a cluster's slot.
  };
  /// `client`: by which the server wakes us.
  CommandEncoder(std::string name_space, std::string client, KeyScope scope = KeyScope::any);

  /// Where our wake-ups arrive; in a cluster it goes on with ':' and the node that says it.
  [[nodiscard]] std::string channel() const { return name_space_ + ":wake:" + client_; }

  [[nodiscard]] std::string acquire(const AcquireRequest& request,
                                    std::chrono::milliseconds ttl) const;
  /// Of one acquisition.
  [[nodiscard]] std::string release(const ReleaseRequest& request, std::string_view member) const;
  enum class IfGranted : std::uint8_t { keep, drop };
  [[nodiscard]] std::string leave(const AcquireSpec& spec, std::string_view member,
                                  RequestId request, IfGranted if_granted) const;
  /// Whether the request holds the lock.
  [[nodiscard]] std::string confirm(const AcquireSpec& spec, std::string_view member,
                                    RequestId request) const;
  /// All of the member.
  [[nodiscard]] std::string remove(const AcquireSpec& spec, std::string_view member) const;
  /// `words`: ttl and member, for each; '=' before a ttl makes it shorter, too.
  [[nodiscard]] std::string renew(const AcquireSpec& spec,
                                  std::span<const std::string> words) const;
  [[nodiscard]] std::string expire(std::string_view name) const;
  [[nodiscard]] std::string downgrade(const AcquireSpec& spec, std::string_view member,
                                      RequestId acquired) const;
  [[nodiscard]] std::string holders(std::string_view name, std::size_t most) const;
  [[nodiscard]] std::string force_release(std::string_view name) const;

  /// The key that everything about a fair lock begins with.
  [[nodiscard]] std::string head_of(std::string_view name) const;
  /// Key of the largest token that was issued on this server, or in a cluster in the slot of `key`,
  /// because a script may use keys of one slot only. It never expires.
  [[nodiscard]] std::string last_token_of(std::string_view key) const;
  /// The first key of what is said about it.
  [[nodiscard]] std::string key_of(const AcquireSpec& spec) const;

 private:
  /// A script on the four keys of a lock.
  [[nodiscard]] std::string on_lock(Script script, std::string_view name,
                                    std::initializer_list<std::string_view> words) const;
  /// By which client it is woken, and whose it is, for people.
  [[nodiscard]] std::string label_of(const AcquireSpec& spec) const;

  std::string name_space_;
  std::string client_;
  KeyScope scope_;
  std::shared_ptr<const SlotTags> slot_tags_;  ///< In a cluster.
};

}  // namespace tenure::backends::redis
