#include "server/raft/shim.h"

#include <inttypes.h>
#include <raft.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shim {
  struct raft raft;
  // Arrays reused by each step.
  struct raft_entry* given_entries;
  size_t given_capacity;
  struct shim_entry* entries;
  size_t entries_capacity;
  struct shim_message* messages;
  size_t messages_capacity;
  // Buffers of the last update; the next step frees them.
  void* configuration;
  void* barrier;
};

enum { address_size = 24 };

static void write_address(uint64_t id, char address[address_size]) {
  snprintf(address, address_size, "%" PRIu64, id);
}

static struct raft_buffer buffer_of(struct shim_bytes bytes) {
  struct raft_buffer buffer;
  memcpy(&buffer.base, &bytes.start,
         sizeof buffer.base);  // The library only reads it, so dropping const is safe.
  buffer.len = bytes.size;
  return buffer;
}

static int decode_configuration(struct shim_bytes bytes, struct raft_configuration* configuration) {
  const struct raft_buffer buffer = buffer_of(bytes);
  raft_configuration_init(configuration);
  return raft_configuration_decode(&buffer, configuration);
}

enum { catch_up_round_ms = 30000 };

// The library only tests the batch for null: it frees no submitted or loaded entries.
static char some_batch;

// Out of memory ends the process, as in the rest of the program.
static void* grown(void* array, size_t* capacity, size_t count, size_t size) {
  if (count <= *capacity) {
    return array;
  }
  *capacity = 2 * count + 16;
  array = realloc(array, *capacity * size);
  if (array == NULL) {
    abort();
  }
  return array;
}

struct shim* shim_create(const struct shim_options* options) {
  struct shim* shim = calloc(1, sizeof *shim);  // raft_init() leaves some fields uninitialised.
  char address[address_size];
  if (shim == NULL) {
    return NULL;
  }
  write_address(options->id, address);
  // Without I/O callbacks the library runs as a pure step function.
  if (raft_init(&shim->raft, NULL, NULL, options->id, address) != 0) {
    free(shim);
    return NULL;
  }
  // No tracer: even a silent one formats messages in every step, into buffers shared by all
  // instances of the process.
  shim->raft.tracer = NULL;
  raft_seed(&shim->raft, options->seed);
  raft_set_election_timeout(&shim->raft, options->election_timeout_ms);
  raft_set_heartbeat_timeout(&shim->raft, options->heartbeat_ms);
  // The library would wait for half a minute for a snapshot that was never sent, because a newer
  // one replaced it. The sender tracks transfers in progress and does not repeat them.
  raft_set_install_snapshot_timeout(&shim->raft, 4 * options->election_timeout_ms);
  raft_set_pre_vote(&shim->raft, true);
  raft_set_max_inflight_entries(&shim->raft, options->entries_in_flight_max);
  // One round of catching up can be the transfer of a whole snapshot.
  raft_set_max_catch_up_round_duration(&shim->raft, catch_up_round_ms);
  return shim;
}

void shim_destroy(struct shim* shim) {
  if (shim == NULL) {
    return;
  }
  raft_close(&shim->raft, NULL);
  free(shim->given_entries);
  free(shim->entries);
  free(shim->messages);
  raft_free(shim->configuration);
  raft_free(shim->barrier);
  free(shim);
}

// Events -----------------------------------------------------------------------------------------

// The library takes ownership of the configuration with the step.
static int decode_snapshot(const struct shim_snapshot* snapshot,
                           struct raft_snapshot_metadata* out) {
  memset(out, 0, sizeof *out);
  out->index = snapshot->index;
  out->term = snapshot->term;
  out->configuration_index = snapshot->configuration_index;
  return decode_configuration(snapshot->configuration, &out->configuration);
}

static struct raft_entry* given(struct shim* shim, const struct shim_entry* entries, unsigned count,
                                void* batch) {
  shim->given_entries =
      grown(shim->given_entries, &shim->given_capacity, count, sizeof *shim->given_entries);
  for (unsigned i = 0; i < count; ++i) {
    struct raft_entry* entry = &shim->given_entries[i];
    entry->term = entries[i].term;
    entry->type = (enum raft_entry_type)entries[i].type;
    entry->buf = buffer_of(entries[i].payload);
    entry->batch = batch;
  }
  return count == 0 ? NULL : shim->given_entries;
}

static void copy_entries_out(struct shim* shim, const struct raft_update* from,
                             struct shim_update* update) {
  shim->entries =
      grown(shim->entries, &shim->entries_capacity, from->entries.n, sizeof *shim->entries);
  for (unsigned i = 0; i < from->entries.n; ++i) {
    const struct raft_entry* entry = &from->entries.batch[i];
    shim->entries[i].term = entry->term;
    shim->entries[i].type = (int)entry->type;
    shim->entries[i].payload.start = entry->buf.base;
    shim->entries[i].payload.size = entry->buf.len;
  }
  update->entries_index = from->entries.index;
  update->entries = shim->entries;
  update->entry_count = from->entries.n;
  // The library allocates the no-op of a new leader and passes its ownership on.
  if (from->entries.batch == &shim->raft.barrier) {
    shim->barrier = shim->raft.barrier.buf.base;
  }
}

static int copy_snapshot_out(struct shim* shim, const struct raft_update* from,
                             struct shim_update* update) {
  struct raft_buffer encoded;
  const int error = raft_configuration_encode(&from->snapshot.metadata.configuration, &encoded);
  if (error != 0) {
    return error;
  }
  shim->configuration = encoded.base;
  update->snapshot.index = from->snapshot.metadata.index;
  update->snapshot.term = from->snapshot.metadata.term;
  update->snapshot.configuration_index = from->snapshot.metadata.configuration_index;
  update->snapshot.configuration.start = encoded.base;
  update->snapshot.configuration.size = encoded.len;
  return 0;
}

static bool copy_message_out(const struct raft_message* from, struct shim_message* out) {
  memset(out, 0, sizeof *out);
  out->type = (enum shim_message_type)from->type;
  out->peer = from->server_id;
  switch (from->type) {
    case RAFT_APPEND_ENTRIES:
      out->term = from->append_entries.term;
      out->previous_index = from->append_entries.prev_log_index;
      out->previous_term = from->append_entries.prev_log_term;
      out->commit = from->append_entries.leader_commit;
      out->entry_count = from->append_entries.n_entries;
      return true;
    case RAFT_APPEND_ENTRIES_RESULT:
      out->term = from->append_entries_result.term;
      out->rejected = from->append_entries_result.rejected;
      out->last_index = from->append_entries_result.last_log_index;
      return true;
    case RAFT_REQUEST_VOTE:
      out->term = from->request_vote.term;
      out->candidate = from->request_vote.candidate_id;
      out->last_index = from->request_vote.last_log_index;
      out->last_term = from->request_vote.last_log_term;
      out->disrupts_leader = from->request_vote.disrupt_leader;
      out->is_pre_vote = from->request_vote.pre_vote;
      return true;
    case RAFT_REQUEST_VOTE_RESULT:
      out->term = from->request_vote_result.term;
      out->is_granted = from->request_vote_result.vote_granted;
      out->is_pre_vote = from->request_vote_result.pre_vote;
      return true;
    case RAFT_INSTALL_SNAPSHOT:
      out->term = from->install_snapshot.term;
      out->snapshot.index = from->install_snapshot.last_index;
      out->snapshot.term = from->install_snapshot.last_term;
      out->snapshot.configuration_index = from->install_snapshot.conf_index;
      return true;
    case RAFT_TIMEOUT_NOW:
      out->term = from->timeout_now.term;
      out->last_index = from->timeout_now.last_log_index;
      out->last_term = from->timeout_now.last_log_term;
      return true;
  }
  return false;
}

static void copy_messages_out(struct shim* shim, const struct raft_update* from,
                              struct shim_update* update) {
  shim->messages =
      grown(shim->messages, &shim->messages_capacity, from->messages.n, sizeof *shim->messages);
  for (unsigned i = 0; i < from->messages.n; ++i) {
    if (copy_message_out(&from->messages.batch[i], &shim->messages[update->message_count])) {
      ++update->message_count;
    }
  }
  update->messages = shim->messages;
}

static int step(struct shim* shim, struct raft_event* event, struct shim_update* update) {
  struct raft_update made;
  memset(&made, 0, sizeof made);
  memset(update, 0, sizeof *update);
  raft_free(shim->barrier);
  shim->barrier = NULL;
  raft_free(shim->configuration);
  shim->configuration = NULL;

  const int error = raft_step(&shim->raft, event, &made);
  if (error != 0) {
    return error;
  }
  update->flags = made.flags;
  if ((made.flags & shim_has_entries) != 0) {
    copy_entries_out(shim, &made, update);
  }
  if ((made.flags & shim_has_messages) != 0) {
    copy_messages_out(shim, &made, update);
  }
  if ((made.flags & shim_has_snapshot) != 0) {
    return copy_snapshot_out(shim, &made, update);
  }
  return 0;
}

// Receiving --------------------------------------------------------------------------------------

static int step_append(struct shim* shim, struct raft_event* event,
                       const struct shim_message* message, struct shim_update* update) {
  struct raft_append_entries* out = &event->receive.message->append_entries;
  void* batch = NULL;
  out->term = message->term;
  out->prev_log_index = message->previous_index;
  out->prev_log_term = message->previous_term;
  out->leader_commit = message->commit;
  out->n_entries = message->entry_count;
  if (message->entry_count > 0) {
    // The library frees entries[0].batch unless it returns the entries to be written.
    batch = raft_malloc(1);
    out->entries = given(shim, message->entries, message->entry_count, batch);
  }
  const int error = step(shim, event, update);
  if (error == 0 && (update->flags & shim_has_entries) != 0) {
    raft_free(batch);
  }
  return error;
}

static int step_install(struct shim* shim, struct raft_event* event,
                        const struct shim_message* message, struct shim_update* update) {
  struct raft_install_snapshot* out = &event->receive.message->install_snapshot;
  const bool was_installing = shim->raft.snapshot.installing;
  out->term = message->term;
  out->last_index = message->snapshot.index;
  out->last_term = message->snapshot.term;
  out->conf_index = message->snapshot.configuration_index;
  int error = decode_configuration(message->snapshot.configuration, &out->conf);
  if (error != 0) {
    return error;
  }
  // The body bypasses the library, which never reads it; the caller keeps the bytes.
  out->data.base = raft_malloc(1);
  out->data.len = 1;
  struct raft_configuration configuration = out->conf;
  void* body = out->data.base;
  error = step(shim, event, update);
  if (error != 0) {
    return error;
  }
  const bool is_ours = (update->flags & shim_has_snapshot) != 0;
  // 0.22.1 leaks both if a second snapshot arrives while the first one is being installed (R6).
  const bool is_forgotten = was_installing && message->term >= shim->raft.current_term;
  if (is_ours || is_forgotten) {
    raft_configuration_close(&configuration);
    raft_free(body);
  }
  return 0;
}

// R9: libraft refuses to vote while it remembers a leader, which is until its own timer of one to
// two election timeouts fires: an election would take as long as the slower half of the survivors.
// The thesis (4.2.3) requires the refusal only within one minimum election timeout after the last
// message.
static raft_id forget_silent_leader(struct shim* shim, raft_time now) {
  struct raft* raft = &shim->raft;
  if (raft->state != RAFT_FOLLOWER || now < raft->election_timer_start + raft->election_timeout) {
    return 0;
  }
  const raft_id leader = raft->follower_state.current_leader.id;
  raft->follower_state.current_leader.id = 0;
  return leader;
}

static void remember_leader(struct shim* shim, raft_id leader) {
  struct raft* raft = &shim->raft;
  // In a new term without a leader the library has cleared the address, too.
  if (leader != 0 && raft->state == RAFT_FOLLOWER &&
      raft->follower_state.current_leader.address != NULL) {
    raft->follower_state.current_leader.id = leader;
  }
}

static int step_request_vote(struct shim* shim, struct raft_event* event,
                             const struct shim_message* message, struct shim_update* update) {
  struct raft_request_vote* out = &event->receive.message->request_vote;
  out->version = 2;
  out->term = message->term;
  out->candidate_id = message->candidate;
  out->last_log_index = message->last_index;
  out->last_log_term = message->last_term;
  out->disrupt_leader = message->disrupts_leader;
  out->pre_vote = message->is_pre_vote;

  // R8: a server that is a learner in its own log would refuse, although a newer configuration may
  // need its vote. Candidates ignore votes of non-voters, so granting it is safe.
  int* role = NULL;
  for (unsigned i = 0; i < shim->raft.configuration.n; ++i) {
    if (shim->raft.configuration.servers[i].id == shim->raft.id) {
      role = &shim->raft.configuration.servers[i].role;
    }
  }
  const int own_role = role == NULL ? RAFT_VOTER : *role;
  if (role != NULL) {
    *role = RAFT_VOTER;
  }
  const raft_id leader = forget_silent_leader(shim, event->time);
  const int error = step(shim, event, update);
  remember_leader(shim, leader);
  if (role != NULL) {
    *role = own_role;
  }
  return error;
}

static int step_receive(struct shim* shim, struct raft_event* event,
                        const struct shim_message* message, struct shim_update* update) {
  struct raft_message* out = event->receive.message;
  char address[address_size];
  write_address(message->peer, address);
  out->type = (enum raft_message_type)message->type;
  out->server_id = message->peer;
  out->server_address = address;
  switch (message->type) {
    case shim_append_entries: return step_append(shim, event, message, update);
    case shim_install_snapshot: return step_install(shim, event, message, update);
    case shim_request_vote: return step_request_vote(shim, event, message, update);
    case shim_append_result:
      out->append_entries_result.version = 2;
      out->append_entries_result.term = message->term;
      out->append_entries_result.rejected = message->rejected;
      out->append_entries_result.last_log_index = message->last_index;
      return step(shim, event, update);
    case shim_vote_result:
      out->request_vote_result.version = 3;
      out->request_vote_result.term = message->term;
      out->request_vote_result.vote_granted = message->is_granted;
      out->request_vote_result.pre_vote = message->is_pre_vote;
      return step(shim, event, update);
    case shim_timeout_now:
      out->timeout_now.term = message->term;
      out->timeout_now.last_log_index = message->last_index;
      out->timeout_now.last_log_term = message->last_term;
      return step(shim, event, update);
  }
  return RAFT_MALFORMED;
}

static int step_start(struct shim* shim, struct raft_event* out, const struct shim_event* event,
                      struct shim_update* update) {
  struct raft_snapshot_metadata snapshot;
  out->start.term = event->term;
  out->start.voted_for = event->voted_for;
  out->start.start_index = event->index;
  if (event->snapshot != NULL) {
    const int error = decode_snapshot(event->snapshot, &snapshot);
    if (error != 0) {
      return error;
    }
    out->start.metadata = &snapshot;
  }
  out->start.entries = given(shim, event->entries, event->entry_count, &some_batch);
  out->start.n_entries = event->entry_count;
  return step(shim, out, update);
}

static int step_submit(struct shim* shim, struct raft_event* out, const struct shim_event* event,
                       struct shim_update* update) {
  out->submit.entries = given(shim, event->entries, event->entry_count, &some_batch);
  out->submit.n = event->entry_count;
  for (unsigned i = 0; i < event->entry_count; ++i) {
    out->submit.entries[i].term = shim->raft.current_term;
  }
  return step(shim, out, update);
}

int shim_step(struct shim* shim, const struct shim_event* event, struct shim_update* update) {
  struct raft_event out;
  struct raft_message message;
  int error = 0;
  memset(&out, 0, sizeof out);
  memset(&message, 0, sizeof message);
  out.type = (enum raft_event_type)event->type;
  out.time = event->now_ms;
  switch (event->type) {
    case shim_start: return step_start(shim, &out, event, update);
    case shim_receive:
      out.receive.message = &message;
      return step_receive(shim, &out, event->message, update);
    case shim_submit: return step_submit(shim, &out, event, update);
    case shim_persisted_entries: out.persisted_entries.index = event->index; break;
    case shim_persisted_snapshot:
      out.persisted_snapshot.last = true;
      error = decode_snapshot(event->snapshot, &out.persisted_snapshot.metadata);
      break;
    case shim_configuration:
      out.configuration.index = event->index;
      error = decode_configuration(event->configuration, &out.configuration.conf);
      break;
    case shim_snapshot_taken:
      out.snapshot.trailing = event->trailing;
      error = decode_snapshot(event->snapshot, &out.snapshot.metadata);
      break;
    case shim_timeout: break;
    case shim_catch_up: out.catch_up.server_id = event->member; break;
    case shim_transfer: out.transfer.server_id = event->member; break;
  }
  return error != 0 ? error : step(shim, &out, update);
}

// Queries -----------------------------------------------------------------------------------------

const char* shim_error_text(int error) {
  return raft_strerror(error);
}

uint64_t shim_term(const struct shim* shim) {
  return shim->raft.current_term;
}

uint64_t shim_voted_for(const struct shim* shim) {
  return shim->raft.voted_for;
}

uint64_t shim_commit(const struct shim* shim) {
  return shim->raft.commit_index;
}

uint64_t shim_last_stored(const struct shim* shim) {
  return shim->raft.last_stored;
}

uint64_t shim_last_index(const struct shim* shim) {
  return raft_last_index((struct raft*)&shim->raft);
}

uint64_t shim_leader_id(struct shim* shim) {
  raft_id id = 0;
  const char* address = NULL;
  raft_leader(&shim->raft, &id, &address);
  return id;
}

uint64_t shim_deadline_ms(const struct shim* shim) {
  return raft_timeout(&shim->raft);
}

enum shim_state shim_state_of(const struct shim* shim) {
  return (enum shim_state)shim->raft.state;
}

bool shim_is_installing(const struct shim* shim) {
  return shim->raft.snapshot.installing;
}

bool shim_is_changing(const struct shim* shim) {
  return shim->raft.configuration_uncommitted_index != 0 ||
         (shim->raft.state == RAFT_LEADER && shim->raft.leader_state.promotee_id != 0);
}

bool shim_match(const struct shim* shim, uint64_t peer, uint64_t* index) {
  raft_index match = 0;
  if (shim->raft.state != RAFT_LEADER || raft_match_index(&shim->raft, peer, &match) != 0) {
    return false;
  }
  *index = match;
  return true;
}

uint64_t shim_transferee(const struct shim* shim) {
  return shim->raft.state == RAFT_LEADER ? raft_transferee(&shim->raft) : 0;
}

int shim_catch_up_status(const struct shim* shim, uint64_t peer) {
  int status = 0;
  return raft_catch_up(&shim->raft, peer, &status) != 0 ? -1 : status;
}

struct shim_configuration_mark shim_mark_configuration(const struct shim* shim) {
  // The library allocates the array of a new configuration before it frees the old one, so the
  // pointers differ.
  const struct shim_configuration_mark mark = {
      .place = shim->raft.configuration.servers,
      .committed = shim->raft.configuration_committed_index,
      .uncommitted = shim->raft.configuration_uncommitted_index,
  };
  return mark;
}

// An address equal to the id stands for an empty one.
static void copy_member(const struct raft_server* server, struct shim_member* out) {
  char id[address_size];
  write_address(server->id, id);
  memset(out, 0, sizeof *out);
  out->id = server->id;
  out->role = server->role;
  if (strcmp(server->address, id) != 0) {
    strncpy(out->address, server->address, sizeof out->address - 1);
  }
}

static size_t copy_members(const struct raft_configuration* configuration, struct shim_member* out,
                           size_t capacity) {
  for (size_t i = 0; i < configuration->n && i < capacity; ++i) {
    copy_member(&configuration->servers[i], &out[i]);
  }
  return configuration->n;
}

size_t shim_configuration_members(const struct shim* shim, struct shim_member* out,
                                  size_t capacity) {
  return copy_members(&shim->raft.configuration, out, capacity);
}

size_t shim_encode_members(const struct shim_member* members, size_t count, void* out,
                           size_t capacity) {
  struct raft_configuration configuration;
  struct raft_buffer encoded = {NULL, 0};
  char address[address_size];
  int error = 0;
  raft_configuration_init(&configuration);
  for (size_t i = 0; i < count && error == 0; ++i) {
    write_address(members[i].id, address);
    error = raft_configuration_add(&configuration, members[i].id,
                                   members[i].address[0] == '\0' ? address : members[i].address,
                                   members[i].role);
  }
  error = error != 0 ? error : raft_configuration_encode(&configuration, &encoded);
  raft_configuration_close(&configuration);
  if (error != 0) {
    return 0;
  }
  if (encoded.len <= capacity) {
    memcpy(out, encoded.base, encoded.len);
  }
  raft_free(encoded.base);
  return encoded.len;
}

size_t shim_decode_members(struct shim_bytes bytes, struct shim_member* out, size_t capacity) {
  struct raft_configuration configuration;
  if (bytes.size == 0 || decode_configuration(bytes, &configuration) != 0) {
    return 0;
  }
  const size_t count = copy_members(&configuration, out, capacity);
  raft_configuration_close(&configuration);
  return count;
}
