// Client-side table of all locks: read page by page once, then updated from the event stream.
// Search and sort run in the browser, so a list of 100,000 locks costs the server no requests.

import { signal } from "@preact/signals";

import { api, Problem, problem_of } from "../api/client";
import { after, Feed } from "../api/feed";
import type { Kind, Lock, LockEvent } from "../api/types";

export interface Row {
  key: string;
  name: string;
  is_base64: boolean;
  kind: Kind;
  holders: number;
  waiters: number;
  owner: string;
  user: string;
  lease: string;
  metadata: string;
  mode: string;
  token: string;
  since: number; ///< Time of the grant, on the clock of the page.
  heat: number; ///< Exponentially decayed number of grants; halves every `half_life_ms`.
  heat_at: number;
}

export const locks_max = 200_000;
const half_life_ms = 10_000;
const warm_max = 2_000;
const reload_small_max = 2_000;
const reload_ms = 1_000;
const reload_large_ms = 60_000;

export function key_of(of: { name: string; name_encoding?: string; kind: string }): string {
  return `${of.kind === "space" ? "s" : "n"}${of.name_encoding ? "b" : "t"}${of.name}`;
}

export function row_of(lock: Lock, now: number, before?: Row): Row {
  const first = lock.holders[0];
  return {
    key: key_of(lock),
    name: lock.name,
    is_base64: lock.name_encoding === "base64",
    kind: lock.kind,
    holders: lock.holder_count,
    waiters: lock.waiter_count,
    owner: first?.owner ?? "",
    user: first?.user ?? "",
    metadata: first?.metadata ?? "",
    lease: first?.lease ?? "",
    mode: first?.mode ?? (lock.kind === "semaphore" ? "permits" : ""),
    token: first?.token ?? "",
    since: now - (first?.held_for_ms ?? 0),
    heat: before?.heat ?? 0,
    heat_at: before?.heat_at ?? now,
  };
}

/// Recent grants per second, scaled up while the page has watched for less than a few half-lives.
export function heat_of(row: Row, now: number, watched_since = -Infinity): number {
  const left = row.heat * 2 ** ((row.heat_at - now) / half_life_ms);
  const seen = 1 - 2 ** (-Math.max(1_000, now - watched_since) / half_life_ms);
  return left * Math.LN2 * 1000 / half_life_ms / seen;
}

/// Applies an event to a row. Counts may be off after retries and upgrades until the next reload.
/// Returns false if the lock is free.
export function apply(row: Row, event: LockEvent, now: number): boolean {
  const ends_hold = event.token !== undefined;
  switch (event.type) {
    case "queued":
      row.waiters += 1;
      break;
    case "granted":
      // FIFO: a grant while requests wait always goes to one of them.
      row.waiters = Math.max(0, row.waiters - 1);
      row.holders = event.mode === "X" && event.kind === "lock" ? 1 : row.holders + 1;
      row.owner = event.owner;
      row.user = event.user;
      row.metadata = event.metadata;
      row.lease = event.lease;
      row.mode = event.mode ?? "permits";
      row.token = event.token ?? "";
      row.since = now;
      row.heat = row.heat * 2 ** ((row.heat_at - now) / half_life_ms) + 1;
      row.heat_at = now;
      break;
    case "released":
    case "forced":
      row.holders = Math.max(0, row.holders - 1);
      break;
    case "expired":
    case "revoked":
      if (ends_hold) {
        row.holders = Math.max(0, row.holders - 1);
      } else {
        row.waiters = Math.max(0, row.waiters - 1);
      }
      break;
    case "abandoned":
    case "deadlock":
      row.waiters = Math.max(0, row.waiters - 1);
      break;
    case "downgraded":
      row.mode = event.mode ?? row.mode;
      break;
  }
  return row.holders > 0 || row.waiters > 0;
}

export type LoadState = "loading" | "ready" | "failed";

/// The one table of this page.
export class LockTable {
  readonly rows = new Map<string, Row>();
  /// Free locks that were granted recently. The Hot filter shows them, since a hot lock is often
  /// free for a moment.
  readonly warm = new Map<string, Row>();
  /// Grows with every change.
  readonly version = signal(0);
  readonly state = signal<LoadState>("loading");
  readonly problem = signal<Problem | undefined>(undefined);
  readonly is_cut = signal(false); ///< The server has more than `locks_max` locks.
  /// Events arrive faster than the browser processes them; the table is polled instead.
  readonly is_polled = signal(false);
  readonly loaded = signal(0);

  watched_since = 0; ///< Start of the event subscription, on the clock of the page.

  private feed: Feed | undefined;
  private users = 0;
  private is_loading = false;
  private is_dirty = false;
  private dirty = new Set<string>();
  private gaps: number[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private last_load = 0;

  /// Loads and follows the locks while at least one view uses the table. Returns the cleanup.
  use(): () => void {
    this.users += 1;
    if (this.users === 1) {
      void this.load();
    }
    return () => {
      this.users -= 1;
      if (this.users === 0) {
        this.stop();
      }
    };
  }

  /// Reloads the visible rows that have changed.
  async refresh(keys: string[]): Promise<void> {
    if (this.rows.size <= reload_small_max) {
      return; // A small table is reloaded as a whole.
    }
    const wanted = keys.filter((key) => this.dirty.has(key)).slice(0, 40);
    await Promise.all(wanted.map(async (key) => {
      this.dirty.delete(key);
      const row = this.rows.get(key);
      if (!row) {
        return;
      }
      try {
        const lock = await api.lock({ name: row.name, kind: row.kind, is_base64: row.is_base64 });
        this.rows.set(key, row_of(lock, performance.now(), row));
      } catch (error) {
        if (error instanceof Problem && error.status === 404) {
          this.set_free(key, row);
        }
      }
    }));
    if (wanted.length > 0) {
      this.version.value += 1;
    }
  }

  async load(): Promise<void> {
    if (this.is_loading) {
      return;
    }
    this.is_loading = true;
    this.is_dirty = false;
    clearTimeout(this.timer);
    try {
      await this.read_all();
      this.problem.value = undefined;
      this.state.value = "ready";
    } catch (error) {
      this.problem.value = problem_of(error);
      this.state.value = "failed";
      this.schedule(3_000);
    } finally {
      this.is_loading = false;
      this.last_load = performance.now();
    }
    if (this.users === 0) {
      this.stop();
    } else if (this.is_polled.value) {
      this.schedule(this.rows.size <= reload_small_max ? 2_000 : 10_000);
    } else if (this.is_dirty) {
      this.schedule(this.reload_pause());
    }
  }

  private async read_all(): Promise<void> {
    const seen = new Map<string, Row>();
    let first_revision: string | undefined;
    let next: string | undefined;
    do {
      const page = await api.locks(next);
      const now = performance.now();
      first_revision ??= page.revision;
      for (const lock of page.locks) {
        const key = key_of(lock);
        seen.set(key, row_of(lock, now, this.rows.get(key) ?? this.warm.get(key)));
      }
      next = page.next;
      if (this.state.value !== "ready") {
        this.loaded.value = seen.size;
      }
    } while (next && seen.size < locks_max);
    this.is_cut.value = next !== undefined;
    for (const [key, row] of this.rows) {
      if (!seen.has(key)) {
        this.set_free(key, row);
      }
    }
    this.rows.clear();
    for (const [key, row] of seen) {
      this.rows.set(key, row);
      this.warm.delete(key);
    }
    this.dirty.clear();
    this.version.value += 1;
    if (!this.feed && !this.is_polled.value && first_revision) {
      this.follow(after(first_revision));
    }
  }

  private follow(start: string): void {
    this.watched_since = performance.now();
    for (const row of this.rows.values()) {
      row.heat = 0;
    }
    this.feed = new Feed({
      start,
      on_events: (events) => this.take(events),
      on_gap: () => this.on_gap(),
      on_state: (is_connected) => {
        if (!is_connected) {
          // A reload shows whether this was a short interruption or the server is down.
          this.schedule(1_000);
        }
      },
    });
  }

  private on_gap(): void {
    this.feed?.close();
    this.feed = undefined;
    const now = performance.now();
    this.gaps = [...this.gaps.filter((at) => now - at < 30_000), now];
    this.is_polled.value = this.gaps.length >= 3;
    this.schedule(500);
  }

  private take(events: LockEvent[]): void {
    const now = performance.now();
    for (const event of events) {
      const key = key_of(event);
      let row = this.rows.get(key);
      if (!row) {
        row = this.warm.get(key);
        this.warm.delete(key);
      }
      if (!row) {
        if (this.rows.size >= locks_max || (event.type !== "granted" && event.type !== "queued")) {
          continue;
        }
        row = { key, name: event.name, is_base64: event.name_encoding === "base64",
          kind: event.kind === "space" ? "space" : event.permits ? "semaphore" : "lock",
          holders: 0, waiters: 0, owner: "", user: "", lease: "", metadata: "", mode: "",
          token: "", since: now, heat: 0, heat_at: now };
      }
      if (apply(row, event, now)) {
        this.rows.set(key, row);
      } else {
        this.set_free(key, row);
      }
      this.dirty.add(key);
    }
    this.version.value += 1;
    this.is_dirty = true;
    this.schedule(this.reload_pause());
  }

  private set_free(key: string, row: Row): void {
    this.rows.delete(key);
    this.warm.delete(key);
    if (row.heat > 0) {
      this.warm.set(key, { ...row, holders: 0, waiters: 0 });
    }
    for (const [oldest, old] of this.warm) {
      if (this.warm.size <= warm_max && old.heat_at > performance.now() - 6 * half_life_ms) {
        break;
      }
      this.warm.delete(oldest);
    }
  }

  private reload_pause(): number {
    const pause = this.rows.size <= reload_small_max ? reload_ms : reload_large_ms;
    return Math.max(100, this.last_load + pause - performance.now());
  }

  private schedule(pause_ms: number): void {
    if (this.users === 0 || this.is_loading) {
      return;
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (document.hidden) {
        this.schedule(reload_ms);
      } else {
        void this.load();
      }
    }, pause_ms);
  }

  private stop(): void {
    clearTimeout(this.timer);
    this.feed?.close();
    this.feed = undefined;
    this.state.value = "loading";
    this.loaded.value = 0;
  }
}

export const lock_table = new LockTable();
