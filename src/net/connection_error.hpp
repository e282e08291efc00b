#pragma once

#include <boost/system/error_code.hpp>

#include <tenure/error.hpp>

namespace tenure::net {

/// Error category of X509_V_ERR_… values: why the certificate of the peer was rejected.
[[nodiscard]] const boost::system::error_category& certificate_category() noexcept;

/// Describes to a client why its connection failed, and what to do about it. `permission_denied`:
/// one side rejects the certificate of the other, so a retry does not help; `unavailable`: a retry
/// may help.
[[nodiscard]] Error connection_error(const boost::system::error_code& error);

}  // namespace tenure::net
