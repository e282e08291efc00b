// Columns of numbers over time.

import type { History, Series } from "../api/types";

/// Puts what is new behind what is there, and forgets what is too old.
export function append(before: Series, more: History): Series {
  const joined: Series = {};
  for (const [name, values] of Object.entries(more.series)) {
    joined[name] = [...(before[name] ?? []), ...values].slice(-more.samples_max);
  }
  return joined;
}
