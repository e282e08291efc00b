// Timeline chart of the holds and waits of one lock.

import type { LockEvent } from "../api/types";
import { duration, hue, owner_of } from "../model/format";
import { timeline_of, type Span } from "../model/timeline";

const lane_height = 22;
const lanes_max = 12;
const width = 1000;

export function TimelineChart(props: { events: LockEvent[]; now: number }) {
  const { spans, lanes, first, last } = timeline_of(props.events);
  const end = Math.max(props.now, last);
  // 4 % of space on the left for spans that began before the first event.
  const length = Math.max(1_000, (end - first) * 1.04);
  const start = end - length;
  const x = (time: number) => Math.max(0, Math.min(width, (time - start) * width / length));
  const shown = Math.min(lanes, lanes_max);
  const height = shown * lane_height + 24;
  const marks = ticks(length);
  return (
    <div class="timeline">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img"
           style={{ height: `${height}px` }}
           aria-label={`${spans.length} holds and waits in ${duration(length)}`}>
        {marks.map((ago) => (
          <line key={ago} class="timeline-grid" x1={x(end - ago)} x2={x(end - ago)} y1={0}
                y2={height - 20} />
        ))}
        {spans.filter((span) => span.lane < shown).map((span) => <Bar key={span.key} span={span}
          from={x(span.from)} to={x(Math.min(span.to, end))} />)}
      </svg>
      <div class="timeline-axis" aria-hidden="true">
        {marks.map((ago) => (
          <span key={ago} style={{ left: `${x(end - ago) * 100 / width}%` }}>
            {ago === 0 ? "now" : `−${duration(ago)}`}
          </span>
        ))}
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
          style={{ "--hue": String(hue(span.lease)) }} x={from} width={Math.max(2, to - from)}
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

/// About four round ages for the axis.
function ticks(length: number): number[] {
  const steps = [100, 250, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5,
    72e5, 216e5, 432e5, 864e5];
  const step = steps.find((candidate) => length / candidate <= 5) ?? length / 4;
  return Array.from({ length: Math.floor(length / step) + 1 }, (_, i) => i * step);
}
