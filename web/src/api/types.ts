// JSON of the HTTP API, see docs/reference/http.md. Ids, tokens, revisions and log positions are
// strings: 64-bit integers do not fit into a JavaScript number.

export interface Range {
  start: string;
  start_encoding?: "base64";
  end?: string;
  end_encoding?: "base64";
}

interface Claim {
  mode?: string;
  permits?: number;
  range?: Range;
}

export interface Hold extends Claim {
  owner: string; ///< Label chosen by the client.
  user: string; ///< Authenticated user; empty if the server has no users.
  lease: string;
  request: string;
  token: string;
  create_revision: string;
  held_for_ms: number;
  count: number;
  metadata: string;
  metadata_encoding?: "base64";
}

export interface Wait extends Claim {
  position?: number;
  owner: string;
  user: string;
  lease: string;
  request: string;
  ticket: string;
  waited_ms: number;
  is_upgrade: boolean;
  metadata: string;
  metadata_encoding?: "base64";
}

export type Kind = "lock" | "semaphore" | "space";

export interface Lock {
  name: string;
  name_encoding?: "base64";
  kind: Kind;
  capacity?: number;
  create_revision: string;
  mod_revision: string;
  version: number;
  holder_count: number;
  waiter_count: number;
  holders: Hold[];
  queue?: Wait[];
}

export interface LockPage {
  revision: string;
  locks: Lock[];
  next?: string;
}

export interface Lease {
  lease: string;
  client: string;
  user: string;
  address: string;
  ttl_ms: number;
  left_ms: number;
  lived_ms: number;
  seen_ago_ms: number;
  create_revision: string;
  hold_count: number;
  wait_count: number;
  locks?: Lock[];
}

export interface LeasePage {
  revision: string;
  leases: Lease[];
  next?: string;
}

export interface Graph {
  revision: string;
  waits: number;
  is_complete: boolean;
  locks: Lock[];
}

export interface CycleStep {
  lease: string;
  request: string;
  owner: string;
  name: string; ///< Lock that it waited for.
  name_encoding?: "base64";
  kind: "lock" | "space";
  /// Lock that it held and the step before it waited for. Missing: it was ahead in the queue.
  held?: { name: string; name_encoding?: "base64"; kind: "lock" | "space" };
}

export interface Deadlock {
  revision: string;
  cluster_time_ms: number;
  ago_ms: number;
  cycle: CycleStep[];
}

export interface LogPosition {
  leader: string;
  leader_address: string;
  term: string;
  commit_index: string;
  applied_index: string;
  first_index: string;
  last_index: string;
  snapshot_index: string;
  log_bytes: number;
  snapshot_bytes: number;
  has_space: boolean;
}

export interface Status {
  cluster: string;
  member: string;
  name: string;
  labels: string;
  version: string;
  uptime_ms: number;
  role: "leader" | "follower";
  revision: string;
  compact_revision: string;
  cluster_time_ms: number;
  log: LogPosition;
  counts: { locks: number; holds: number; waits: number; leases: number; events: number };
  limits: Record<string, string>;
}

export interface Member {
  member: string;
  is_voter: boolean;
  is_leader: boolean;
  peer_address: string;
  client_address: string;
  newest_version?: string; ///< Newest cluster version its program supports, if it is connected.
  match_index?: string;
  silent_ms?: number;
}

export interface Cluster {
  cluster: string;
  member: string;
  role: "leader" | "follower";
  leader: string;
  leader_address: string;
  term: string;
  commit_index: string;
  cluster_version: string; ///< Version of the replicated formats in use.
  members: Member[];
}

export type Level = "none" | "read" | "lock" | "admin";

export interface Rights {
  may_force: boolean;
  force_reason: string;
  may_lock: boolean;
  lock_reason: string;
  may_administer: boolean; ///< May change members and leadership, and reload files.
  administer_reason: string;
  has_users: boolean; ///< The server requires a login.
  user: string; ///< Name of the logged-in user; empty before the login.
  /// Server without users: its secret would permit force-release and administration.
  needs_secret: boolean;
  lock_needs_secret: boolean; ///< The same for acquire, release and leases.
  rights: { prefix: string; prefix_encoding?: string; level: Level }[];
}

export type Series = Record<string, (number | null)[]>;

export interface History {
  interval_ms: number;
  samples_max: number;
  last: number;
  series: Series;
}

export const event_types = ["queued", "granted", "released", "expired", "revoked", "forced",
  "abandoned", "deadlock", "downgraded"] as const;
export type EventType = (typeof event_types)[number];

export interface LockEvent extends Claim {
  type: EventType;
  revision: string;
  cluster_time_ms: number;
  name: string;
  name_encoding?: "base64";
  kind: "lock" | "space";
  lease: string;
  request: string;
  token?: string;
  owner: string;
  user: string;
  metadata: string;
  operator?: string; ///< Forced release: user or address that requested it.
  reason?: string; ///< Forced release: reason given by the operator.
}
