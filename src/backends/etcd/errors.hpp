#pragma once

#include <cstdint>
#include <string>

#include <tenure/error.hpp>

#include "grpc/status.hpp"

namespace tenure::backends::etcd {

/// What to do after a call that did not end well.
enum class Recovery : std::uint8_t {
  other_member,    ///< This member cannot, at the moment: ask another one, or this one later.
  reauthenticate,  ///< It does not know any more who we are: say so, and ask again.
  none,            ///< The answer would be the same: tell whoever asked. Nothing was changed.
};

struct Failure {
  Recovery recovery = Recovery::other_member;
  Error error{};
};

/// `server` is its address.
[[nodiscard]] Failure classify(const grpc::Status& status, const std::string& server);

/// The same for a stream, which never ends of its own accord: it begins anew, here or elsewhere.
[[nodiscard]] Failure classify_stream(const grpc::Status& status, const std::string& server);

/// The same for words of etcd's without a status, as a watch has them.
[[nodiscard]] Failure classify(const std::string& words, const std::string& server);

/// An answer that cannot be etcd's. Nobody knows what became of the request.
[[nodiscard]] Error malformed_reply(const std::string& server);

}  // namespace tenure::backends::etcd
