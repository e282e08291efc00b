// Hash router: the URL fragment selects the view, so that a view can be bookmarked and shared.

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

export function parse_route(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", ...rest] = path.split("/");
  const parameters = new URLSearchParams(query);
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

export const route = signal<Route>(parse_route(location.hash));

addEventListener("hashchange", () => {
  route.value = parse_route(location.hash);
  scrollTo(0, 0);
});
