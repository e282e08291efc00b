#ifndef TENURE_SERVER_RAFT_SHIM_STATE_H
#define TENURE_SERVER_RAFT_SHIM_STATE_H

// What the two halves of the seam share.

#include <inttypes.h>
#include <raft.h>
#include <stdio.h>
#include <string.h>

#include "server/raft/shim.h"

struct shim {
  struct raft raft;
  // Reused from step to step.
  struct raft_entry* given_entries;
  size_t given_capacity;
  struct shim_entry* entries;
  size_t entries_capacity;
  struct shim_message* messages;
  size_t messages_capacity;
  // What the last update points to and nobody else frees.
  void* configuration;
  void* barrier;
};

enum { address_size = 24 };

static inline void write_address(uint64_t id, char address[address_size]) {
  snprintf(address, address_size, "%" PRIu64, id);
}

static inline struct raft_buffer buffer_of(struct shim_bytes bytes) {
  struct raft_buffer buffer;
  memcpy(&buffer.base, &bytes.start, sizeof buffer.base);  // The library only reads; drop const.
  buffer.len = bytes.size;
  return buffer;
}

static inline int decode_configuration(struct shim_bytes bytes,
                                       struct raft_configuration* configuration) {
  const struct raft_buffer buffer = buffer_of(bytes);
  raft_configuration_init(configuration);
  return raft_configuration_decode(&buffer, configuration);
}

#endif
