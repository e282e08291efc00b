// Wait-for graph and latest deadlocks.

import { useMemo, useRef, useState } from "preact/hooks";

import { api } from "../api/client";
import type { Deadlock, Graph } from "../api/types";
import { count, duration, owner_of, plural } from "../model/format";
import { draw, type Drawing, type Edge, type Node } from "../model/graph";
import { use_poll } from "../model/poll";
import { Running } from "../parts/bits";
import { CycleRing } from "../parts/cycle_ring";
import { Icon } from "../parts/icon";
import { Canvas } from "../parts/canvas";
import { Empty, Loading, Trouble } from "../parts/states";
import { lease_link, lock_link } from "../router";

const fresh_ms = 60_000;

export function Waits() {
  const graph = use_poll(api.graph, 1_500);
  const deadlocks = use_poll(api.deadlocks, 1_500);
  if (!graph.value) {
    return graph.problem ? <Trouble problem={graph.problem} again={graph.again} />
      : <Loading what="Reading the wait-for graph…" />;
  }
  const fresh = (deadlocks.value ?? []).filter((deadlock) => deadlock.ago_ms < fresh_ms);
  const in_deadlock = new Set(fresh.flatMap((deadlock) =>
    deadlock.cycle.map((step) => step.lease)));
  return (
    <>
      <h1 class="hidden">Waits</h1>
      {graph.value.locks.length === 0
        ? <Empty icon="check" title="No waiters">
            <p>When a client waits for a lock, the graph connects it with the holder.</p>
          </Empty>
        : <GraphCard graph={graph.value} at={graph.at} marked={in_deadlock} />}
      <DeadlockList deadlocks={deadlocks.value ?? []} at={deadlocks.at} />
    </>
  );
}

/// Key of the layout: the graph is laid out again only when this value changes.
function shape_of(graph: Graph): string {
  return graph.locks.map((lock) => [lock.kind, lock.name, lock.waiter_count,
    lock.holders.map((hold) => hold.token), (lock.queue ?? []).map((wait) => wait.ticket)].join())
    .join(";");
}

function GraphCard(props: { graph: Graph; at: number; marked: Set<string> }) {
  const { graph } = props;
  const drawing = useMemo(() => draw(graph), [shape_of(graph)]);
  return (
    <section class="card graph-card" aria-label="Wait-for graph">
      <div class="graph-head">
        <h2>Wait-for graph</h2>
        <span class="quiet">
          {plural(graph.waits, "wait")} for {plural(graph.locks.length, "lock")}
          {(!graph.is_complete || drawing.left_out > 0) && "; only the longest waits are drawn"}
        </span>
        <ul class="legend">
          <li><span class="line is-waits" />waits for</li>
          <li><span class="line is-held" />held by</li>
          {props.marked.size > 0 && <li><span class="swatch is-bad" />recent deadlock</li>}
        </ul>
      </div>
      <Canvas width={drawing.width} height={drawing.height}>
        <Picture drawing={drawing} marked={props.marked} />
      </Canvas>
      <TextAlternative graph={graph} at={props.at} />
    </section>
  );
}

function Picture(props: { drawing: Drawing; marked: Set<string> }) {
  const [hovered, set_hovered] = useState<string>();
  const near = useRef(new Set<string>());
  near.current = new Set(props.drawing.edges
    .filter((edge) => edge.from === hovered || edge.to === hovered)
    .flatMap((edge) => [edge.from, edge.to]));
  const is_dim = (id: string) => hovered !== undefined && !near.current.has(id) && id !== hovered;
  return (
    <g>
      <defs>
        {["waits", "held"].map((kind) => (
          <marker key={kind} id={`arrow-${kind}`} viewBox="0 0 8 8" refX="7" refY="4"
                  markerWidth="7" markerHeight="7" orient="auto">
            <path class={`arrow-head is-${kind}`} d="M0 .5 7.500 4 0 7.500z" />
          </marker>
        ))}
      </defs>
      {props.drawing.edges.map((edge) => (
        <EdgeLine key={edge.id} edge={edge}
                  is_dim={hovered !== undefined && edge.from !== hovered && edge.to !== hovered} />
      ))}
      {props.drawing.nodes.map((node) => (
        <NodeBox key={node.id} node={node} is_dim={is_dim(node.id)}
                 is_marked={node.lease !== undefined && props.marked.has(node.lease)}
                 on_hover={set_hovered} />
      ))}
    </g>
  );
}

function EdgeLine(props: { edge: Edge; is_dim: boolean }) {
  const { edge } = props;
  return (
    <g class={`edge is-${edge.kind} ${props.is_dim ? "is-dim" : ""}`}>
      <path d={edge.path} marker-end={`url(#arrow-${edge.kind})`} />
      {edge.label && (
        <g transform={`translate(${edge.x.toFixed(1)} ${edge.y.toFixed(1)})`}>
          <rect x={-edge.label.length * 3.4 - 5} y={-9} rx={8} height={18}
                width={edge.label.length * 6.8 + 10} />
          <text>{edge.label}</text>
        </g>
      )}
    </g>
  );
}

function NodeBox(props: { node: Node; is_dim: boolean; is_marked: boolean;
                          on_hover: (id: string | undefined) => void }) {
  const { node } = props;
  const link = node.lock ? lock_link(node.lock) : lease_link(node.lease ?? "");
  const inside = (
    <>
      <rect x={-node.width / 2} y={-node.height / 2} width={node.width} height={node.height}
            rx={node.kind === "lease" ? node.height / 2 : 9} />
      <text y={node.kind === "more" ? 4 : -3} class="node-title">{cut(node.title)}</text>
      {node.kind !== "more" && <text y={14} class="node-note">{node.note}</text>}
      <title>{node.title}</title>
    </>
  );
  return (
    <g class={`node is-${node.kind} ${props.is_marked ? "is-marked" : ""} ` +
              (props.is_dim ? "is-dim" : "")}
       style={{ transform: `translate(${node.x.toFixed(1)}px, ${node.y.toFixed(1)}px)` }}
       onMouseEnter={() => props.on_hover(node.id)} onMouseLeave={() => props.on_hover(undefined)}>
      <a href={link}
         onFocus={() => props.on_hover(node.id)} onBlur={() => props.on_hover(undefined)}>
        {inside}
      </a>
    </g>
  );
}

/// Shortens at the front: the end of a name is the more specific part.
function cut(title: string): string {
  return title.length > 26 ? `…${title.slice(-25)}` : title;
}

/// Text alternative of the drawing, for screen readers.
function TextAlternative(props: { graph: Graph; at: number }) {
  return (
    <details class="in-words">
      <summary>Show as text</summary>
      <ul>
        {props.graph.locks.flatMap((lock) => (lock.queue ?? []).slice(0, 20).map((wait) => (
          <li key={`${lock.kind} ${lock.name} ${wait.ticket}`}>
            <a href={lease_link(wait.lease)}>{owner_of(wait)}</a>{" has waited "}
            <Running ms={wait.waited_ms} at={props.at} />{" for "}
            <a href={lock_link(lock)}>{lock.name}</a>
            {lock.holders.length > 0 && <>, held by {lock.holders.slice(0, 3).map(owner_of)
              .join(", ")}{lock.holder_count > 3 && ` and ${count(lock.holder_count - 3)} more`}</>}
          </li>
        )))}
      </ul>
    </details>
  );
}

function DeadlockList(props: { deadlocks: Deadlock[]; at: number }) {
  return (
    <section aria-label="Deadlocks">
      <h2 class="section-title"><Icon name="alert" />Latest deadlocks</h2>
      {props.deadlocks.length === 0
        ? <p class="quiet">None since this member started. When waits form a cycle, one request
            becomes the victim at once, and the cycle is listed here.</p>
        : <div class="rings">
            {props.deadlocks.slice(0, 24).map((deadlock) => (
              <article key={deadlock.revision} class="card ring-card">
                <CycleRing cycle={deadlock.cycle} />
                <div>
                  <h3>{duration(deadlock.ago_ms)} ago</h3>
                  <p class="quiet">revision {deadlock.revision}</p>
                  <ol class="cycle">
                    {deadlock.cycle.slice(0, 6).map((step, i) => (
                      <li key={`${step.lease} ${step.request}`} class={i === 0 ? "is-victim" : ""}>
                        <strong>{owner_of(step)}</strong> waited for{" "}
                        <a class="mono" href={lock_link(step)}>{step.name}</a>
                        {i === 0 && <span class="tag is-bad">victim</span>}
                      </li>
                    ))}
                    {deadlock.cycle.length > 6 && <li>{deadlock.cycle.length - 6} more</li>
}
                  </ol>
                </div>
              </article>
            ))}
          </div>}
    </section>
  );
}
