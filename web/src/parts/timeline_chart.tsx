// Timeline chart of the holds and waits of one lock.

import type { LockEvent } from "../api/types";
import { duration, owner_hue, owner_of, time } from "../model/format";
import { round_times } from "../model/ranges";
import { wall_of } from "../model/server";
import { timeline_of, type Span } from "../model/timeline";

const lane_height = 22;
const lanes_max = 12;
const width = 1000;

/// `range_ms`: Infinity shows everything since the first event.
export function TimelineChart(props: { events: LockEvent[]; now: number; range_ms: number }) {
  const { spans, lanes, first, last } = timeline_of(props.events);
  const end = Math.max(props.now, last);
  // 4 % of space on the left for spans that began before the first event.
  const length = Math.min(props.range_ms, Math.max(1_000, (end - first) * 1.04));
  const start = end - length;
  const x = (time: number) => Math.max(0, Math.min(width, (time - start) * width / length));
  const shown = Math.min(lanes, lanes_max);
  const height = shown * lane_height + 24;
  const marks = axis_of(start, end);
  const in_range = spans.filter((span) => span.lane < shown && span.to > start);
  return (
    <div class="timeline">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img"
           style={{ height: `${height}px` }}
           aria-label={`${in_range.length} holds and waits in ${duration(length)}`}>
        {marks.map(({ at }) => (
          <line key={at} class="timeline-grid" x1={x(at)} x2={x(at)} y1={0} y2={height - 20} />
        ))}
        {in_range.map((span) => <Bar key={span.key} span={span}
          from={x(span.from)} to={x(Math.min(span.to, end))} />)}
      </svg>
      <div class="timeline-axis" aria-hidden="true">
        {marks.map(({ at, label }) => (
          <span key={at} style={{ left: `${x(at) * 100 / width}%` }}>{label}</span>
        ))}
        <span class="is-now">now</span>
      </div>
      <p class="quiet timeline-key">
        <span class="swatch is-solid" /> held <span class="swatch is-hatched" /> waited
        {lanes > lanes_max && <> · {lanes - lanes_max} more lanes are not drawn</>}
      </p>
    </div>
  );
}

function Bar(props: { span: Span; from: number; to: number }) {
  const { span, from, to } = props;
  const is_hold = span.kind === "held";
  const lasted = Number.isFinite(span.from) && Number.isFinite(span.to)
    ? ` for ${duration(span.to - span.from)}` : "";
  return (
    <rect class={`bar is-${span.kind} ${is_bad(span.end) ? "is-bad" : ""}`}
          style={{ "--hue": String(owner_hue(span)) }} x={from} width={Math.max(2, to - from)}
          y={span.lane * lane_height + (is_hold ? 3 : 8)} height={is_hold ? 16 : 6} rx={3}>
      <title>
        {`${owner_of(span)} ${span.kind}${lasted}${span.token && `, token ${span.token}`}` +
          `${span.end && `, ${span.end}`}`}
      </title>
    </rect>
  );
}

function is_bad(end: string): boolean {
  return ["expired", "revoked", "forced", "deadlock"].some((bad) => end.startsWith(bad));
}

/// Round wall-clock times between two cluster times. The space at the right edge is for "now".
function axis_of(start: number, end: number): { at: number; label: string }[] {
  const offset = wall_of(0).getTime();
  const edge = end - (end - start) * 0.08;
  return round_times(start + offset, edge + offset, 6).map((wall) => {
    const text = time(new Date(wall));
    return { at: wall - offset, label: end - start > 600_000 ? text.slice(0, 5) : text };
  });
}
