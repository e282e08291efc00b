// Asking tenured. Every failure is a Problem, which says to people what to do.

import type { Cluster, Deadlock, Graph, History, Lease, LeasePage, Lock, LockPage, Rights,
  Status } from "./types";

export class Problem extends Error {
  constructor(readonly status: number, readonly title: string, readonly detail: string) {
    super(detail || title);
  }
  /// Nobody answered at all.
  get is_unreachable(): boolean {
    return this.status === 0;
  }
}

export function problem_of(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, "Error", String(error));
}

const timeout_ms = 10_000;

/// Called when the server does not know us, or not any more.
let when_unknown = () => {};
export function on_unknown(call: () => void): void {
  when_unknown = call;
}

async function ask<T>(path: string, init: RequestInit = {}): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(path, {
      ...init, cache: "no-store", credentials: "same-origin",
      signal: AbortSignal.timeout(timeout_ms),
    });
  } catch {
    throw new Problem(0, "No answer", "tenured does not answer at this address.");
  }
  if (!answer.ok) {
    if (answer.status === 401) {
      when_unknown();
    }
    const body = (await answer.json().catch(() => ({}))) as { title?: string; detail?: string };
    throw new Problem(answer.status, body.title ?? answer.statusText, body.detail ?? "");
  }
  try {
    return (await answer.json()) as T;
  } catch {
    throw new Problem(0, "No answer", "The answer broke off.");
  }
}

// Whatever this member has: a follower has a dashboard, too, which may lag a little.
const stale = "stale=true";

export interface PlaceName {
  name: string;
  kind: "lock" | "semaphore" | "space";
  is_base64?: boolean;
}

/// A name as it goes into a path: byte by byte, if it is no text.
export function encode_name(place: PlaceName): string {
  if (!place.is_base64) {
    return encodeURIComponent(place.name);
  }
  return [...atob(place.name)]
    .map((char) => "%" + char.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}

function path_of(place: PlaceName, action: string, parameters: string): string {
  const kind = place.kind === "space" ? "&kind=space" : "";
  return `/v1/locks/${encode_name(place)}${action}?${parameters}${kind}`;
}

export const api = {
  status: () => ask<Status>("/v1/status"),
  cluster: () => ask<Cluster>("/v1/cluster"),
  rights: () => ask<Rights>("/v1/rights"),
  graph: () => ask<Graph>(`/v1/graph?${stale}`),
  deadlocks: async () => (await ask<{ deadlocks: Deadlock[] }>("/v1/deadlocks")).deadlocks,
  history: (after: number) => ask<History>(`/v1/history?after=${after}`),
  locks: (after?: string) =>
    ask<LockPage>(`/v1/locks?limit=1000&${stale}${after ? `&after=${after}` : ""}`),
  lock: (place: PlaceName) => ask<Lock>(path_of(place, "", stale)),
  leases: (after?: string) =>
    ask<LeasePage>(`/v1/leases?limit=1000&${stale}${after ? `&after=${after}` : ""}`),
  lease: (id: string) => ask<Lease>(`/v1/leases/${encodeURIComponent(id)}?${stale}`),
  // The field is what a page of another origin cannot send.
  force_release: (place: PlaceName, token: string, reason: string) =>
    ask<{ holds: number; revision: string }>(
      path_of(place, ":force-release", `token=${encodeURIComponent(token)}`),
      { method: "POST", body: JSON.stringify({ reason }),
        headers: { "Tenure-Intent": "force-release", "Content-Type": "application/json" } }),
  // The answer has a cookie that no script can see.
  login: (token: string) =>
    ask<Rights>("/v1/login", { method: "POST",
      headers: { "Tenure-Intent": "login", Authorization: `Bearer ${token}` } }),
  logout: () =>
    ask<object>("/v1/logout", { method: "POST", headers: { "Tenure-Intent": "logout" } }),
};
