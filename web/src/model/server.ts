// State of the server that every view uses: status, permissions and history of the metrics.

import { signal } from "@preact/signals";

import { api, on_unauthenticated, Problem, problem_of } from "../api/client";
import type { History, Rights, Series, Status } from "../api/types";
import { now } from "./clock";
import { is_locked_out, may } from "./rights";
import { append } from "./series";

export const status = signal<Status | undefined>(undefined);
export const rights = signal<Rights | undefined>(undefined);
export const problem = signal<Problem | undefined>(undefined);

let status_at = 0;

/// Current cluster time, extrapolated between two status responses.
export function cluster_now(): number {
  return (status.value?.cluster_time_ms ?? 0) + Math.max(0, now.value - status_at);
}

/// Difference of the wall clock of the browser and cluster time. It changes only by more than the
/// jitter of responses, so that displayed times do not flicker.
const wall_offset = signal(0);
const wall_jitter_ms = 1_000;

export function wall_of(cluster_ms: number): Date {
  return new Date(cluster_ms + wall_offset.value);
}

function set_wall_offset(cluster_ms: number): void {
  const measured = Date.now() - cluster_ms;
  if (Math.abs(measured - wall_offset.value) > wall_jitter_ms) {
    wall_offset.value = measured;
  }
}

/// Metrics of the last minutes; all series have the same length. `at`: wall-clock time of the last
/// value.
export const history = signal<{ interval_ms: number; series: Series; length: number; at: number }>(
  { interval_ms: 2000, series: {}, length: 0, at: 0 });
let last_sample = 0;

/// The history covers all locks and requires the permission to read all of them.
async function fetch_history(after: number): Promise<History> {
  const mine = rights.value;
  if (mine && !may(mine, "read", "")) {
    return { interval_ms: history.value.interval_ms, samples_max: 0, last: 0, series: {} };
  }
  return api.history(after);
}

async function refresh(): Promise<void> {
  try {
    rights.value ??= await api.rights();
    if (is_locked_out(rights.value)) {
      problem.value = undefined;
      return;
    }
    const [new_status, new_history] = await Promise.all([api.status(), fetch_history(last_sample)]);
    // A restarted server numbers its samples from 0 again.
    const is_new = new_history.last < last_sample ||
      new_status.uptime_ms < (status.value?.uptime_ms ?? 0);
    const more = is_new && last_sample > 0 ? await fetch_history(0) : new_history;
    const series = append(is_new ? {} : history.value.series, more);
    last_sample = more.last;
    history.value = {
      interval_ms: more.interval_ms, series,
      length: Object.values(series)[0]?.length ?? 0, at: Date.now(),
    };
    if (is_new) {
      rights.value = await api.rights();
    }
    status_at = performance.now();
    set_wall_offset(new_status.cluster_time_ms);
    status.value = new_status;
    problem.value = undefined;
  } catch (error) {
    problem.value = problem_of(error);
  }
}

export function watch_server(): void {
  // The login is missing or has expired: show the login view.
  on_unauthenticated(() => {
    const mine = rights.value;
    if (mine && !is_locked_out(mine)) {
      rights.value = { ...mine, has_users: true, user: "", may_force: false, rights: [] };
    }
  });
  const run = async () => {
    if (!document.hidden) {
      await refresh();
    }
    setTimeout(run, 2_000);
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) {
      void refresh();
    }
  });
  void run();
}
