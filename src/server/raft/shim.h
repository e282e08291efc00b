#ifndef TENURE_SERVER_RAFT_SHIM_H
#define TENURE_SERVER_RAFT_SHIM_H

// C adapter of libraft 0.22.1: a step function from events to updates. raft.h is not valid C++, and
// its rules of buffer ownership differ between events; this interface hides both.
//
// Ownership: arguments stay with the caller and are only read during the call. Results are valid
// until the next shim_step() on the same object. No clock, thread or I/O. Not thread safe.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shim_bytes {
  const void* start;
  size_t size;
};

enum shim_entry_type { shim_command = 1, shim_barrier = 2, shim_change = 3 };

struct shim_entry {
  uint64_t term;
  int type;
  struct shim_bytes payload;
};

struct shim_snapshot {
  uint64_t index;
  uint64_t term;
  uint64_t configuration_index;
  struct shim_bytes configuration;
};

enum shim_message_type {
  shim_append_entries = 1,
  shim_append_result,
  shim_request_vote,
  shim_vote_result,
  shim_install_snapshot,
  shim_timeout_now
};

// The type determines the valid fields. The library returns the number of entries to send, and the
// snapshot to send; the caller adds the bytes of both.
struct shim_message {
  enum shim_message_type type;
  uint64_t peer;                     // Sender of a received message, recipient of a sent one.
  uint64_t term;                     // All types.
  uint64_t previous_index;           // append_entries
  uint64_t previous_term;            // append_entries
  uint64_t commit;                   // append_entries
  const struct shim_entry* entries;  // append_entries, when received
  unsigned entry_count;              // append_entries
  uint64_t rejected;                 // append_result: 0: accepted
  uint64_t last_index;               // append_result, request_vote, timeout_now
  uint64_t last_term;                // request_vote, timeout_now
  uint64_t candidate;                // request_vote
  bool disrupts_leader;              // request_vote
  bool is_pre_vote;                  // request_vote, vote_result
  bool is_granted;                   // vote_result
  struct shim_snapshot snapshot;     // install_snapshot
  struct shim_bytes body;            // install_snapshot
};

enum shim_event_type {
  shim_start = 1,
  shim_receive,
  shim_persisted_entries,
  shim_persisted_snapshot,
  shim_configuration,
  shim_snapshot_taken,
  shim_timeout,
  shim_submit,
  shim_catch_up,
  shim_transfer
};

struct shim_event {
  enum shim_event_type type;
  uint64_t now_ms;                       // Monotonic time.
  uint64_t term;                         // start
  uint64_t voted_for;                    // start
  uint64_t index;                        // start: of the first entry; persisted_entries;
                                         // configuration
  uint64_t member;                       // catch_up, transfer
  unsigned trailing;                     // snapshot_taken: how many older entries are kept
  const struct shim_snapshot* snapshot;  // start (may be null), persisted_snapshot, snapshot_taken
  struct shim_bytes configuration;       // configuration
  const struct shim_entry* entries;      // start, submit
  unsigned entry_count;                  // start, submit
  const struct shim_message* message;    // receive
};

enum shim_update_flag {
  shim_has_term = 1,
  shim_has_vote = 2,
  shim_has_entries = 4,
  shim_has_snapshot = 8,
  shim_has_messages = 16,
  shim_has_state = 32,
  shim_has_commit = 64
};

struct shim_update {
  unsigned flags;
  uint64_t entries_index;  // First index: the log is truncated here, then the entries follow.
  const struct shim_entry* entries;
  unsigned entry_count;
  struct shim_snapshot snapshot;  // Snapshot to install; its body is that of the received message.
  const struct shim_message* messages;
  unsigned message_count;
};

struct shim_options {
  uint64_t id;
  unsigned seed;  // Seed of the random part of the election timeout.
  unsigned election_timeout_ms;
  unsigned heartbeat_ms;
  unsigned entries_in_flight_max;
};

enum shim_state { shim_unavailable = 0, shim_follower, shim_candidate, shim_leader };
// Roles of libraft: RAFT_STANDBY receives the log and does not vote, which Raft and etcd call a
// learner. RAFT_SPARE does not receive the log; Tenure never assigns it.
enum shim_role { shim_learner = 0, shim_voter, shim_spare };

// Size of an address with its terminator: fits two host names with ports.
enum { shim_address_size = 640 };

struct shim_member {
  uint64_t id;
  int role;
  char address[shim_address_size];  // Opaque, unique among the members; empty: the id is used.
};

struct shim;

// Null: out of memory.
struct shim* shim_create(const struct shim_options* options);
void shim_destroy(struct shim* shim);

// Returns 0, or an error for shim_error_text(); then the update is empty.
int shim_step(struct shim* shim, const struct shim_event* event, struct shim_update* update);
const char* shim_error_text(int error);

uint64_t shim_term(const struct shim* shim);
uint64_t shim_voted_for(const struct shim* shim);
uint64_t shim_commit(const struct shim* shim);
uint64_t shim_last_stored(const struct shim* shim);
uint64_t shim_last_index(const struct shim* shim);
uint64_t shim_leader_id(struct shim* shim);
uint64_t shim_deadline_ms(const struct shim* shim);
enum shim_state shim_state_of(const struct shim* shim);
bool shim_is_installing(const struct shim* shim);
bool shim_is_changing(const struct shim* shim);
// Match index of a peer; false: not the leader, or an unknown peer.
bool shim_match(const struct shim* shim, uint64_t peer, uint64_t* index);
// Target of the leadership transfer in progress; 0: none.
uint64_t shim_transferee(const struct shim* shim);
// Catch-up progress of a learner: RAFT_CATCH_UP_* (0 none to 3 finished), or -1.
int shim_catch_up_status(const struct shim* shim, uint64_t peer);

// Identity of the newest configuration in the log, committed or not. It differs from the identity
// before the last step if the configuration changed.
struct shim_configuration_mark {
  const void* place;
  uint64_t committed;
  uint64_t uncommitted;
};
struct shim_configuration_mark shim_mark_configuration(const struct shim* shim);
size_t shim_configuration_members(const struct shim* shim, struct shim_member* out,
                                  size_t capacity);

// Encodes and decodes the members of a configuration. Both return the required size or count, or 0
// if the input is invalid; nothing is written beyond the capacity.
size_t shim_encode_members(const struct shim_member* members, size_t count, void* out,
                           size_t capacity);
size_t shim_decode_members(struct shim_bytes bytes, struct shim_member* out, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
