// Wall-clock times, in the time zone of the browser.

import { useRef } from "preact/hooks";

import { date, time, wall_clock } from "../model/format";
import { wall_of } from "../model/server";

const jitter_ms = 1_500;

function Time(props: { at: Date }) {
  const { at } = props;
  return (
    <time dateTime={at.toISOString()} title={`${date(at)} ${time(at)}`}>{wall_clock(at)}</time>
  );
}

/// Wall-clock time of a cluster time.
export function When(props: { at: number }) {
  return <Time at={wall_of(props.at)} />;
}

/// Start of something that had lasted `ms` at the time `at` of the page's clock. Two responses
/// differ by their network delay: the shown time changes only if the difference is larger.
export function Since(props: { ms: number; at: number }) {
  const shown = useRef(0);
  const start = performance.timeOrigin + props.at - props.ms;
  if (Math.abs(start - shown.current) > jitter_ms) {
    shown.current = start;
  }
  return <Time at={new Date(shown.current)} />;
}
