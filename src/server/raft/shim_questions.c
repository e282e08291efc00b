#include <raft.h>
#include <string.h>

#include "server/raft/shim.h"
#include "server/raft/shim_state.h"

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
  // The library makes a new array for every new configuration before it frees the old one.
  const struct shim_configuration_mark mark = {
      .place = shim->raft.configuration.servers,
      .committed = shim->raft.configuration_committed_index,
      .uncommitted = shim->raft.configuration_uncommitted_index,
  };
  return mark;
}

// An address that only repeats the id is none.
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
