// Time ranges that the user selects for charts and histories.

export interface TimeRange {
  key: string; ///< Value in the URL.
  label: string;
  ms: number; ///< Infinity: everything.
}

const minute = 60_000;

/// The server keeps ten minutes of metrics.
export const metric_ranges: TimeRange[] = [
  { key: "2m", label: "2 min", ms: 2 * minute },
  { key: "5m", label: "5 min", ms: 5 * minute },
  { key: "10m", label: "10 min", ms: 10 * minute },
];
export const event_ranges: TimeRange[] = [
  { key: "1m", label: "1 min", ms: minute },
  { key: "5m", label: "5 min", ms: 5 * minute },
  { key: "15m", label: "15 min", ms: 15 * minute },
  { key: "1h", label: "1 h", ms: 60 * minute },
  { key: "all", label: "All", ms: Infinity },
];

/// Range with this key; without one, the last, which is the longest.
export function range_of(ranges: readonly TimeRange[], key: string | null): TimeRange {
  return ranges.find((range) => range.key === key) ?? ranges[ranges.length - 1]!;
}

const steps_s = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200,
  86_400];

/// Round wall-clock times between two times for an axis, at most `count`, oldest first.
export function round_times(from: number, to: number, count: number): number[] {
  const step = (steps_s.find((seconds) => (to - from) / seconds / 1000 <= count) ?? 86_400) * 1000;
  // Steps of an hour and more are round in local time.
  const offset = new Date(to).getTimezoneOffset() * minute;
  const times: number[] = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) {
    times.push(at);
  }
  return times.slice(-count);
}
