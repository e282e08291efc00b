// State of the views in the URL: `#/locks?q=db&filter=waiting`. So a view can be bookmarked, shared
// and reloaded.

import { computed } from "@preact/signals";

import { query } from "../router";
import { default_selection, type Filter, type Selection, type SortKey } from "./sorting";

/// One of the allowed values of a parameter, or the default.
export function choice<T extends string>(from: URLSearchParams, name: string,
                                         allowed: readonly T[], otherwise: T): T {
  const given = from.get(name);
  return allowed.find((one) => one === given) ?? otherwise;
}

export const filters: readonly Filter[] = ["all", "held", "waiting", "hot"];
const sort_keys: readonly SortKey[] = ["name", "holders", "waiters", "since", "heat"];
/// Minimum ages of a hold that can be selected, in milliseconds.
export const ages: Record<string, number> = { "10s": 10_000, "1m": 60_000, "10m": 600_000,
  "1h": 3_600_000, "1d": 86_400_000 };
export const modes = ["X", "S", "U", "IX", "IS", "SIX", "permits"] as const;

export function selection_of(from: URLSearchParams): Selection {
  const base = default_selection;
  return {
    search: from.get("q") ?? base.search,
    filter: choice(from, "filter", filters, base.filter),
    sort: choice(from, "sort", sort_keys, base.sort),
    is_descending: from.get("order") === "desc",
    owner: from.get("owner") ?? base.owner,
    mode: choice(from, "mode", ["", ...modes], base.mode),
    age_ms: ages[from.get("age") ?? ""] ?? 0,
    metadata: from.get("metadata") ?? base.metadata,
    folder: from.get("view") === "folders" ? from.get("in") ?? "" : undefined,
  };
}

/// Selection of the locks view. Unchanged while the URL is.
export const selection = computed(() => selection_of(query.value));
