// Selects a time range; the choice is in the URL.

import { range_of, type TimeRange } from "../model/ranges";
import { query, set_query } from "../router";

/// The longest range is the default and is not in the URL.
export function RangeChips(props: { ranges: readonly TimeRange[] }) {
  const { ranges } = props;
  const chosen = range_of(ranges, query.value.get("range"));
  return (
    <div class="chips" role="group" aria-label="Time range">
      {ranges.map((range) => (
        <button key={range.key} class="chip" aria-pressed={range === chosen}
                onClick={() => set_query({
                  range: range === ranges[ranges.length - 1] ? undefined : range.key })}>
          {range.label}
        </button>
      ))}
    </div>
  );
}
