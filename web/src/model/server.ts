// What every view wants to know about the server.

import { signal } from "@preact/signals";

import { api, on_unknown, Problem, problem_of } from "../api/client";
import type { History, Rights, Series, Status } from "../api/types";
import { now } from "./clock";
import { is_locked_out, may } from "./rights";
import { append } from "./series";

export const status = signal<Status | undefined>(undefined);
export const rights = signal<Rights | undefined>(undefined);
export const problem = signal<Problem | undefined>(undefined);

let status_at = 0;

/// Time of the cluster at this moment, running on between two answers.
export function cluster_now(): number {
  return (status.value?.cluster_time_ms ?? 0) + Math.max(0, now.value - status_at);
}

/// The last minutes; columns are of equal length.
export const history = signal<{ interval_ms: number; series: Series; length: number }>(
  { interval_ms: 2000, series: {}, length: 0 });
let last_sample = 0;

/// Rates are of all locks together, and for those who may read all of them.
async function ask_history(after: number): Promise<History> {
  const mine = rights.value;
  if (mine && !may(mine, "read", "")) {
    return { interval_ms: history.value.interval_ms, samples_max: 0, last: 0, series: {} };
  }
  return api.history(after);
}

async function look(): Promise<void> {
  try {
    rights.value ??= await api.rights();
    if (is_locked_out(rights.value)) {
      problem.value = undefined;
      return;
    }
    const [new_status, new_history] = await Promise.all([api.status(), ask_history(last_sample)]);
    // A server that was started anew counts from the beginning.
    const is_new = new_history.last < last_sample ||
      new_status.uptime_ms < (status.value?.uptime_ms ?? 0);
    const more = is_new && last_sample > 0 ? await ask_history(0) : new_history;
    const series = append(is_new ? {} : history.value.series, more);
    last_sample = more.last;
    history.value = {
      interval_ms: more.interval_ms, series,
      length: Object.values(series)[0]?.length ?? 0,
    };
    if (is_new) {
      rights.value = await api.rights();
    }
    status_at = performance.now();
    status.value = new_status;
    problem.value = undefined;
  } catch (error) {
    problem.value = problem_of(error);
  }
}

export function watch_server(): void {
  // A login ends, or was never there: what is shown leads to one.
  on_unknown(() => {
    const mine = rights.value;
    if (mine && !is_locked_out(mine)) {
      rights.value = { ...mine, has_users: true, user: "", may_force: false, rights: [] };
    }
  });
  const run = async () => {
    if (!document.hidden) {
      await look();
    }
    setTimeout(run, 2_000);
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) {
      void look();
    }
  });
  void run();
}
