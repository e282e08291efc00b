#pragma once

#include <boost/system/error_code.hpp>

#include "h2/status.hpp"

namespace tenure::h2 {

/// Of errors that are X509_V_ERR_…: what is wrong with the other end's certificate.
[[nodiscard]] const boost::system::error_category& certificate_category() noexcept;

/// Why a connection failed, for the client's end of it, with what to do about it.
/// `unauthenticated`: one end does not accept the other's certificate, and trying again will not
/// help.
[[nodiscard]] Status explain(const boost::system::error_code& fault);

}  // namespace tenure::h2
