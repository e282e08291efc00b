#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <tenure/error.hpp>

#include "server/auth/access.hpp"
#include "server/auth/denials.hpp"
#include "server/auth/rulebook.hpp"
#include "sys/mutex.hpp"

namespace tenure::server::auth {

/// What a call, an operation or a page asks of whoever wants it. The first half is checked at the
/// door, by Guest::why_not(); the rest by whoever knows which name and which lease it is about.
enum class Need : std::uint8_t {
  nothing,         ///< Open to everybody: health, the login.
  identity,        ///< Any user.
  lock_somewhere,  ///< A user who may lock something.
  read_overall,    ///< To read "": what is about no name in particular.
  admin_overall,   ///< To be admin of "".
  read_names,      ///< Shows only what may be read; refused where that can be nothing.
  lock_names,      ///< To lock each of the names.
  admin_name,      ///< To be admin of the name.
  own_lease,       ///< The lease is the user's own.
  each_operation,  ///< Checked for each operation of the stream.
};

/// What somebody shows: a token, or the names in a certificate.
using Proof = std::variant<std::monostate, Digest, std::vector<std::string>>;

class Gate;

/// Why somebody is not let through.
struct Denial {
  enum class Kind : std::uint8_t { unknown, denied };
  Kind kind = Kind::denied;  ///< unknown: show a token; denied: another one.
  Error error{.code = Errc::permission_denied};
};

/// Whom a call, a stream or a page is for. What it may do is looked up anew when the rules have
/// changed. Of one thread.
class Guest {
 public:
  Guest(Gate& gate, Proof proof, std::string address);

  [[nodiscard]] const Access& access();
  /// Nothing: it is let in. Denials are logged.
  [[nodiscard]] std::optional<Denial> why_not(Need need);
  [[nodiscard]] std::optional<Denial> why_not(Verb verb, std::string_view name);
  /// A lease that lives, of this client: is it not the user's? An admin of "" may use all.
  /// Nobody is told that it lives.
  [[nodiscard]] bool is_foreign(std::string_view client, std::uint64_t lease);

 private:
  [[nodiscard]] Denial unknown();
  void note(std::string_view verb, std::string_view name);

  Gate& gate_;
  Proof proof_;
  std::string address_;
  std::uint64_t version_ = 0;
  Access access_;
};

/// Who is who, and what each may do: the rules in force, and the file they come from. Thread safe.
class Gate {
 public:
  /// `invalid_argument`: the file cannot be read, or what is wrong with it.
  [[nodiscard]] static Result<std::unique_ptr<Gate>> open(std::filesystem::path file);
  /// Of rules, and the file that reload() reads.
  explicit Gate(Rulebook rules, std::filesystem::path file = {});

  /// Reads the file again: what it says counts for all that comes from now on, on streams that are
  /// open, too. If it is wrong the old rules stay, and the log says so.
  Result<std::size_t> reload();
  /// The same with these.
  void replace(Rulebook rules);

  /// Somebody who shows this; a wrong token is not made good by a certificate.
  [[nodiscard]] std::unique_ptr<Guest> admit(Proof proof, std::string address) {
    return std::make_unique<Guest>(*this, std::move(proof), std::move(address));
  }
  /// What an Authorization field proves: nothing if there is none.
  [[nodiscard]] static Proof proof_in(std::string_view authorization);

  /// Changes when the rules do. Not 0.
  [[nodiscard]] std::uint64_t version() const noexcept {
    return version_.load(std::memory_order_acquire);
  }
  [[nodiscard]] Access access_by(const Proof& proof) const;

  /// `verb`: what was denied; "identify": the guest is nobody that we know.
  struct Refused {
    std::string_view who{};
    std::string_view verb{};
    std::string_view name{};
    std::string_view address{};
  };
  void note(const Refused& refused);
  /// Is called for each denial, logged or not. REQUIRES: before anybody is admitted.
  void when_denied(std::function<void(std::string_view verb)> denied) {
    denied_ = std::move(denied);
  }

 private:
  const std::filesystem::path file_;
  std::function<void(std::string_view)> denied_;
  std::atomic<std::uint64_t> version_ = 1;
  mutable sys::Mutex mutex_;
  std::shared_ptr<const Rulebook> rules_ TENURE_GUARDED_BY(mutex_);
  Denials denials_ TENURE_GUARDED_BY(mutex_);
};

}  // namespace tenure::server::auth
