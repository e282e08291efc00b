#pragma once

namespace tenure::bench {

/// The deadlock rows of Berkeley DB and RocksDB, whose waiters are blocked threads. Measured is the
/// CPU time of one run of Berkeley DB's detector after one more thread began to wait, and of one
/// request to RocksDB that waits, looks for a cycle and times out.
void register_threaded_deadlock_peers();

}  // namespace tenure::bench
