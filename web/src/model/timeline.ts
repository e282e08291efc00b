// Timeline of the holds and waits of one lock, computed from its events.

import type { LockEvent } from "../api/types";
import { forced_by } from "./format";

export interface Span {
  key: string;
  kind: "held" | "waited";
  owner: string;
  lease: string;
  token: string;
  mode: string;
  from: number; ///< Cluster time of the start; -Infinity if it is before the first event.
  to: number; ///< Cluster time of the end; Infinity while it lasts.
  end: string; ///< Type of the event that ended it.
  lane: number;
}

export interface Timeline {
  spans: Span[];
  lanes: number;
  first: number;
  last: number;
}

const spans_max = 400;

/// REQUIRES: the events of one lock, in order.
export function timeline_of(events: readonly LockEvent[]): Timeline {
  const spans: Span[] = [];
  const holds = new Map<string, Span>();
  const waits = new Map<string, Span>();
  const begin = (event: LockEvent, kind: Span["kind"], from: number): Span => {
    const span: Span = { key: `${kind} ${event.lease} ${event.request} ${event.revision}`, kind,
      owner: event.owner, lease: event.lease, token: event.token ?? "", mode: event.mode ?? "",
      from, to: Infinity, end: "", lane: 0 };
    spans.push(span);
    return span;
  };
  for (const event of events) {
    const at = event.cluster_time_ms;
    const request = `${event.lease} ${event.request}`;
    const end_wait = () => {
      const wait = waits.get(request);
      if (wait) {
        wait.to = at;
        wait.end = event.type;
        waits.delete(request);
      }
    };
    if (event.type === "queued") {
      waits.set(request, begin(event, "waited", at));
    } else if (event.type === "granted") {
      end_wait();
      holds.set(event.token ?? request, begin(event, "held", at));
    } else if (event.type === "downgraded") {
      const hold = holds.get(event.token ?? "");
      if (hold) {
        hold.mode = event.mode ?? hold.mode;
      }
    } else if (event.token) {
      const hold = holds.get(event.token) ?? begin(event, "held", -Infinity);
      hold.to = at;
      hold.end = event.type + forced_by(event);
      holds.delete(event.token);
    } else {
      end_wait();
    }
  }
  const kept = spans.slice(-spans_max);
  return { spans: kept, lanes: assign_lanes(kept),
    first: events[0]?.cluster_time_ms ?? 0, last: events.at(-1)?.cluster_time_ms ?? 0 };
}

/// Greedy interval colouring: each span takes the first free lane, which minimises the lanes.
function assign_lanes(spans: Span[]): number {
  const ends: number[] = [];
  for (const span of [...spans].sort((left, right) => left.from - right.from)) {
    let lane = ends.findIndex((end) => end <= span.from);
    if (lane < 0) {
      lane = ends.length;
      ends.push(0);
    }
    ends[lane] = span.to;
    span.lane = lane;
  }
  return ends.length;
}
