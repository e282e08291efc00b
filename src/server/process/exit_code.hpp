#pragma once

namespace tenure::server {

/// How `tenured` ends, in the numbers of sysexits.h, which systemd knows by name.
enum class ExitCode : int {
  stopped = 0,         ///< It was asked to stop and did.
  usage = 64,          ///< The command line cannot be understood.
  unavailable = 69,    ///< An address cannot be bound.
  internal = 70,       ///< A broken invariant: a bug of ours.
  disk = 74,           ///< The directory of the store cannot be used, or the disk failed.
  configuration = 78,  ///< A setting is wrong.
};

}  // namespace tenure::server
