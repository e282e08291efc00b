#pragma once

namespace tenure::server {

/// Exit codes of `tenured`. Values of sysexits.h, which systemd prints by name.
enum class ExitCode : int {
  stopped = 0,         ///< Stopped by a signal.
  usage = 64,          ///< Invalid command line.
  unavailable = 69,    ///< An address cannot be bound.
  internal = 70,       ///< Broken invariant: a bug.
  disk = 74,           ///< The data directory is unusable, or the disk failed.
  configuration = 78,  ///< Invalid configuration.
};

}  // namespace tenure::server
