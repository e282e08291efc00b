#pragma once

#include <string>
#include <string_view>

#include <tenure/error.hpp>

namespace tenure::backends::zookeeper {

/// Where the queue of a lock is: its name below the chroot, as a path. Different names have
/// different paths, and each is one that ZooKeeper takes: what it does not is written %XX.
/// `chroot`: empty, or a path that begins with '/'.
[[nodiscard]] std::string folder_of(std::string_view chroot, std::string_view name);

/// The two of a semaphore.
[[nodiscard]] std::string gate_of(std::string_view folder);
[[nodiscard]] std::string leases_of(std::string_view folder);

/// Everything before the last '/'; empty for "/a".
[[nodiscard]] std::string_view parent_of(std::string_view path);
/// Everything behind it.
[[nodiscard]] std::string_view last_of(std::string_view path);

/// Why it cannot be a chroot; empty: it can.
[[nodiscard]] std::string_view flaw_of_chroot(std::string_view path);

}  // namespace tenure::backends::zookeeper
