// Hash router: the URL fragment selects the view and contains its search and filters, so that a
// view can be bookmarked and shared.

import { signal } from "@preact/signals";

import type { PlaceName } from "./api/client";

export type Route =
  | { view: "overview" }
  | { view: "locks" }
  | { view: "lock"; place: PlaceName }
  | { view: "leases" }
  | { view: "lease"; id: string }
  | { view: "waits" }
  | { view: "cluster" }
  | { view: "unknown" };

/// Path and parameters of a hash such as `#/locks?q=db`.
function split(hash: string): { path: string; parameters: URLSearchParams } {
  const [path = "", ...rest] = hash.replace(/^#\/?/, "").split("?");
  return { path, parameters: new URLSearchParams(rest.join("?")) };
}

export function parse_route(hash: string): Route {
  const { path, parameters } = split(hash);
  const [view = "", ...rest] = path.split("/");
  switch (view) {
    case "": return { view: "overview" };
    case "locks": return { view: "locks" };
    case "lock": {
      const name = parameters.get("name");
      const kind = parameters.get("kind") === "space" ? "space" : "lock";
      return name === null
        ? { view: "unknown" }
        : { view: "lock", place: { name, kind, is_base64: parameters.has("base64") } };
    }
    case "leases": return { view: "leases" };
    case "lease": return rest[0] ? { view: "lease", id: rest[0] } : { view: "unknown" };
    case "waits": return { view: "waits" };
    case "cluster": return { view: "cluster" };
    default: return { view: "unknown" };
  }
}

export function lock_link(of: PlaceName | { name: string; name_encoding?: string; kind: string }) {
  const parameters = new URLSearchParams({ name: of.name });
  if (of.kind === "space") {
    parameters.set("kind", "space");
  }
  if ("is_base64" in of ? of.is_base64 : "name_encoding" in of && of.name_encoding) {
    parameters.set("base64", "1");
  }
  return `#/lock?${parameters}`;
}

export const lease_link = (id: string) => `#/lease/${encodeURIComponent(id)}`;

export type Changes = Record<string, string | undefined>;

/// A hash with changed parameters; undefined and empty values remove a parameter.
export function with_query(hash: string, changes: Changes): string {
  const { path, parameters } = split(hash);
  for (const [name, value] of Object.entries(changes)) {
    if (value) {
      parameters.set(name, value);
    } else {
      parameters.delete(name);
    }
  }
  const text = parameters.toString();
  return `#/${path}${text && `?${text}`}`;
}

export const route = signal<Route>(parse_route(location.hash));
/// Parameters of the current view.
export const query = signal(split(location.hash).parameters);

/// Last hash of each list, to which the pages of single locks and leases lead back.
const lists = { locks: "#/locks", leases: "#/leases" };
export function back_to(list: keyof typeof lists): string {
  return lists[list];
}

function remember(hash: string): void {
  const { view } = parse_route(hash);
  if (view === "locks" || view === "leases") {
    lists[view] = hash;
  }
}
remember(location.hash);

/// Changes parameters of the current view without an entry in the history of the browser.
export function set_query(changes: Changes): void {
  const hash = with_query(location.hash, changes);
  try {
    history.replaceState(null, "", hash);
  } catch {
    // Browsers limit the number of changes per time; the next one writes the URL again.
  }
  query.value = split(hash).parameters;
  remember(hash);
}

let shown_path = split(location.hash).path;
addEventListener("hashchange", () => {
  const { path, parameters } = split(location.hash);
  route.value = parse_route(location.hash);
  query.value = parameters;
  remember(location.hash);
  if (path !== shown_path || path === "lock") {
    scrollTo(0, 0);
  }
  shown_path = path;
});
