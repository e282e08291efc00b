#pragma once

#include "cli/arguments.hpp"

/// Implementations of the commands. Each returns the exit code.
namespace tenure::cli {

// Acquire locks, and print their events: run.cpp, lock.cpp, wait.cpp, watch.cpp.
[[nodiscard]] int run(const Arguments& arguments);
[[nodiscard]] int lock(const Arguments& arguments);
[[nodiscard]] int try_lock(const Arguments& arguments);
[[nodiscard]] int wait_until_free(const Arguments& arguments);
[[nodiscard]] int elect(const Arguments& arguments);
[[nodiscard]] int watch(const Arguments& arguments);

// Inspect and release locks: views.cpp, unlock.cpp.
[[nodiscard]] int list_locks(const Arguments& arguments);
[[nodiscard]] int show_lock(const Arguments& arguments);
[[nodiscard]] int explain_lock(const Arguments& arguments);
[[nodiscard]] int unlock(const Arguments& arguments);

// Leases: leases.cpp.
[[nodiscard]] int list_leases(const Arguments& arguments);
[[nodiscard]] int show_lease(const Arguments& arguments);
[[nodiscard]] int grant_lease(const Arguments& arguments);
[[nodiscard]] int keep_lease(const Arguments& arguments);
[[nodiscard]] int revoke_lease(const Arguments& arguments);

// Members and users of a cluster: members.cpp, users.cpp.
[[nodiscard]] int cluster_status(const Arguments& arguments);
[[nodiscard]] int add_member(const Arguments& arguments);
[[nodiscard]] int remove_member(const Arguments& arguments);
[[nodiscard]] int transfer_leadership(const Arguments& arguments);
[[nodiscard]] int reload_users(const Arguments& arguments);

// State of a service: snapshot.cpp, fence.cpp, top.cpp.
[[nodiscard]] int save_snapshot(const Arguments& arguments);
[[nodiscard]] int inspect_snapshot(const Arguments& arguments);
[[nodiscard]] int check_token(const Arguments& arguments);
[[nodiscard]] int top(const Arguments& arguments);

// Tools: bench.cpp, doctor.cpp, completion.cpp, man_page.cpp, help.cpp.
[[nodiscard]] int bench(const Arguments& arguments);
[[nodiscard]] int doctor(const Arguments& arguments);
[[nodiscard]] int print_completion(const Arguments& arguments);
[[nodiscard]] int print_man_page(const Arguments& arguments);
[[nodiscard]] int print_help(const Arguments& arguments);
[[nodiscard]] int print_version(const Arguments& arguments);

}  // namespace tenure::cli
