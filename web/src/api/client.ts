// HTTP client of tenured's API. Every failed request throws a Problem with a remedy for the user.

import type { Cluster, Deadlock, Graph, History, Lease, LeasePage, Lock, LockPage, Rights,
  Status } from "./types";

export class Problem extends Error {
  constructor(readonly status: number, readonly title: string, readonly detail: string) {
    super(detail || title);
  }
  /// The request failed before any HTTP response arrived.
  get is_unreachable(): boolean {
    return this.status === 0;
  }
}

export function problem_of(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, "Error", String(error));
}

const timeout_ms = 10_000;
/// A new member receives a snapshot before it votes.
const member_timeout_ms = 70_000;

/// Called on 401: not logged in, or the login has expired.
let when_unauthenticated = () => {};
export function on_unauthenticated(call: () => void): void {
  when_unauthenticated = call;
}

async function request<T>(path: string, init: RequestInit = {},
                          timeout = timeout_ms): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, {
      ...init, cache: "no-store", credentials: "same-origin",
      signal: AbortSignal.timeout(timeout),
    });
  } catch {
    throw new Problem(0, "No response", "tenured does not respond at this address.");
  }
  if (!response.ok) {
    if (response.status === 401) {
      when_unauthenticated();
    }
    const body = (await response.json().catch(() => ({}))) as { title?: string; detail?: string };
    throw new Problem(response.status, body.title ?? response.statusText, body.detail ?? "");
  }
  try {
    return (await response.json()) as T;
  } catch {
    throw new Problem(0, "No response", "The response was truncated.");
  }
}

// Stale reads: the dashboard of a follower shows the state of that follower, which may lag.
const stale = "stale=true";

export interface PlaceName {
  name: string;
  kind: "lock" | "semaphore" | "space";
  is_base64?: boolean;
}

/// Encodes a name for a URL path; a name that is not text is percent-encoded byte by byte.
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

// CSRF protection: a page of another origin cannot send this header without a CORS preflight.
function post<T>(path: string, intent: string, body: object = {}, timeout = timeout_ms):
    Promise<T> {
  return request<T>(path, { method: "POST", body: JSON.stringify(body),
    headers: { "Tenure-Intent": intent, "Content-Type": "application/json" } }, timeout);
}

export const api = {
  status: () => request<Status>("/v1/status"),
  cluster: () => request<Cluster>("/v1/cluster"),
  rights: () => request<Rights>("/v1/rights"),
  graph: () => request<Graph>(`/v1/graph?${stale}`),
  deadlocks: async () => (await request<{ deadlocks: Deadlock[] }>("/v1/deadlocks")).deadlocks,
  history: (after: number) => request<History>(`/v1/history?after=${after}`),
  locks: (after?: string) =>
    request<LockPage>(`/v1/locks?limit=1000&${stale}${after ? `&after=${after}` : ""}`),
  lock: (place: PlaceName) => request<Lock>(path_of(place, "", stale)),
  leases: (after?: string) =>
    request<LeasePage>(`/v1/leases?limit=1000&${stale}${after ? `&after=${after}` : ""}`),
  lease: (id: string) => request<Lease>(`/v1/leases/${encodeURIComponent(id)}?${stale}`),
  force_release: (place: PlaceName, token: string, reason: string) =>
    post<{ holds: number; revision: string }>(
      path_of(place, ":force-release", `token=${encodeURIComponent(token)}`), "force-release",
      { reason }),
  revoke_lease: (id: string) =>
    post<{ revision: string }>(`/v1/leases/${encodeURIComponent(id)}:revoke`, "revoke"),
  add_member: (member: { member: string; peer_address: string; client_address: string }) =>
    post<object>("/v1/cluster/members", "add-member", member, member_timeout_ms),
  remove_member: (id: string) =>
    post<object>(`/v1/cluster/members/${encodeURIComponent(id)}:remove`, "remove-member", {},
      member_timeout_ms),
  transfer_leadership: (to: string) =>
    post<object>("/v1/cluster:transfer-leadership", "transfer-leadership", { to }),
  reload: () => post<{ users: number }>("/v1/cluster:reload", "reload"),
  // The response sets an HttpOnly cookie.
  login: (token: string) =>
    request<Rights>("/v1/login", { method: "POST",
      headers: { "Tenure-Intent": "login", Authorization: `Bearer ${token}` } }),
  logout: () =>
    request<object>("/v1/logout", { method: "POST", headers: { "Tenure-Intent": "logout" } }),
};
