#pragma once

#include <string>
#include <string_view>

#include <tenure/error.hpp>

namespace tenure::backends::zookeeper {

/// Path of the queue of a lock: its name below the chroot. Distinct names have distinct paths;
/// characters that ZooKeeper rejects are written as %XX. `chroot`: empty, or begins with '/'.
[[nodiscard]] std::string folder_of(std::string_view chroot, std::string_view name);

/// Gate (mutex) and lease folder of a semaphore.
[[nodiscard]] std::string gate_of(std::string_view folder);
[[nodiscard]] std::string leases_of(std::string_view folder);

/// Path before the last '/'; empty for "/a".
[[nodiscard]] std::string_view parent_of(std::string_view path);
/// Name after the last '/'.
[[nodiscard]] std::string_view last_of(std::string_view path);

/// Reason why a path is not a valid chroot; empty: it is valid.
[[nodiscard]] std::string_view flaw_of_chroot(std::string_view path);

}  // namespace tenure::backends::zookeeper
