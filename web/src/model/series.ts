// Time series of the charts.

import type { History, Series } from "../api/types";

/// Appends new samples and drops those beyond `samples_max`.
export function append(before: Series, more: History): Series {
  const joined: Series = {};
  for (const [name, values] of Object.entries(more.series)) {
    joined[name] = [...(before[name] ?? []), ...values].slice(-more.samples_max);
  }
  return joined;
}
