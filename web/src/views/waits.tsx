// Wait-for graph, as a drawing or a list, and latest deadlocks.

import { useMemo, useRef, useState } from "preact/hooks";

import { api } from "../api/client";
import type { CycleStep, Deadlock, Graph, Hold, Lock, Wait } from "../api/types";
import { group_deadlocks, type DeadlockGroup } from "../model/deadlocks";
import { count, duration, owner_of, plural, visible } from "../model/format";
import { draw, type Drawing, type Edge, type Node } from "../model/graph";
import { use_poll } from "../model/poll";
import { choice } from "../model/query";
import { ModeBadge, Name, Owner, Running, User } from "../parts/bits";
import { Canvas } from "../parts/canvas";
import { CycleRing } from "../parts/cycle_ring";
import { Icon } from "../parts/icon";
import { use_narrow } from "../parts/narrow";
import { Empty, Loading, Trouble } from "../parts/states";
import { When } from "../parts/when";
import { lease_link, lock_link, query, set_query } from "../router";

const fresh_ms = 60_000;
const waiters_listed_max = 20;
const holders_listed_max = 5;

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
      <DeadlockList deadlocks={deadlocks.value ?? []} />
    </>
  );
}

/// Key of the layout: the graph is laid out again only when this value changes.
function shape_of(graph: Graph): string {
  return graph.locks.map((lock) => [lock.kind, lock.name, lock.waiter_count,
    lock.holders.map((hold) => hold.token), (lock.queue ?? []).map((wait) => wait.ticket)].join())
    .join(";");
}

/// A drawing needs space: on a phone the list comes first.
function GraphCard(props: { graph: Graph; at: number; marked: Set<string> }) {
  const { graph } = props;
  const is_narrow = use_narrow();
  const view = choice(query.value, "view", ["drawing", "list"], is_narrow ? "list" : "drawing");
  const tabs = (
    <div class="chips" role="group" aria-label="Show as">
      {(["drawing", "list"] as const).map((one) => (
        <button key={one} class="chip" aria-pressed={view === one}
                onClick={() => set_query({ view: one })}>
          {one === "drawing" ? "Drawing" : "List"}
        </button>
      ))}
    </div>
  );
  return (
    <section class="card graph-card" aria-label="Wait-for graph">
      {view === "drawing" ? <Drawn {...props} tabs={tabs} />
        : <>
            <div class="graph-head">
              <Title graph={graph} left_out={0} />{tabs}
            </div>
            <WaitList graph={graph} at={props.at} />
          </>}
    </section>
  );
}

function Title(props: { graph: Graph; left_out: number }) {
  const { graph } = props;
  return (
    <div class="graph-title">
      <h2>Wait-for graph</h2>
      <span class="quiet">
        {plural(graph.waits, "wait")} for {plural(graph.locks.length, "lock")}
        {(!graph.is_complete || props.left_out > 0) && "; only the longest waits are shown"}
      </span>
    </div>
  );
}

function Drawn(props: { graph: Graph; marked: Set<string>; tabs: preact.JSX.Element }) {
  const { graph } = props;
  const drawing = useMemo(() => draw(graph), [shape_of(graph)]);
  const head = (
    <>
      <Title graph={graph} left_out={drawing.left_out} />
      <ul class="legend">
        <li><span class="line is-waits" />waits for</li>
        <li><span class="line is-held" />held by</li>
        {props.marked.size > 0 && <li><span class="swatch is-bad" />recent deadlock</li>}
      </ul>
      {props.tabs}
    </>
  );
  return (
    <Canvas width={drawing.width} height={drawing.height} head={head}>
      <Picture drawing={drawing} marked={props.marked} />
    </Canvas>
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
      {node.hue !== undefined && <circle class="node-dot" cx={-node.width / 2 + 17} cy={0} r={4.5}
                                         style={{ "--hue": String(node.hue) }} />}
      <text x={node.hue === undefined ? 0 : 7} y={node.kind === "more" ? 4 : -3}
            class="node-title">{cut(node.title)}</text>
      {node.kind !== "more" &&
        <text x={node.hue === undefined ? 0 : 7} y={14} class="node-note">{node.note}</text>}
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

/// The graph as a table: for each lock its holders, then its queue.
function WaitList(props: { graph: Graph; at: number }) {
  return (
    <table class="plain-table wait-list">
      <thead>
        <tr><th>Order</th><th>Owner</th><th>Mode</th><th class="number">Time</th></tr>
      </thead>
      {props.graph.locks.map((lock) => (
        <LockWaits key={`${lock.kind} ${lock.name}`} lock={lock} at={props.at} />
      ))}
    </table>
  );
}

function LockWaits(props: { lock: Lock; at: number }) {
  const { lock, at } = props;
  const queue = (lock.queue ?? []).slice(0, waiters_listed_max);
  const holders = lock.holders.slice(0, holders_listed_max);
  const more_holders = lock.holder_count - holders.length;
  const more_waiters = lock.waiter_count - queue.length;
  return (
    <tbody>
      <tr class="wait-lock"><th colSpan={4} scope="rowgroup">
        <a href={lock_link(lock)}><Name of={lock} /></a>
        <span class="quiet">{count(lock.holder_count)} held, {count(lock.waiter_count)} waiting
        </span>
      </th></tr>
      {holders.map((hold) => (
        <WaitRow key={hold.token} order="holds it" of={hold} ms={hold.held_for_ms} at={at} />
      ))}
      {more_holders > 0 && <More text={`${plural(more_holders, "more holder")}`} />}
      {queue.map((wait) => (
        <WaitRow key={wait.ticket} order={`${wait.position ?? ""}.`} of={wait} ms={wait.waited_ms}
                 at={at} is_waiting />
      ))}
      {more_waiters > 0 && <More text={`${plural(more_waiters, "more waiter")}`} />}
    </tbody>
  );
}

function WaitRow(props: { order: string; of: Hold | Wait; ms: number; at: number;
                          is_waiting?: boolean }) {
  const { of } = props;
  return (
    <tr class={props.is_waiting ? "is-waiter" : "is-holder"}>
      <td class="number wait-order">{props.order}</td>
      <td><Owner of={of} link /><User of={of} /></td>
      <td><ModeBadge of={of} /></td>
      <td class="number"><Running ms={props.ms} at={props.at} /></td>
    </tr>
  );
}

function More(props: { text: string }) {
  return <tr><td /><td colSpan={3} class="quiet">{props.text}</td></tr>;
}

function DeadlockList(props: { deadlocks: Deadlock[] }) {
  const groups = useMemo(() => group_deadlocks(props.deadlocks), [props.deadlocks]);
  return (
    <section aria-label="Deadlocks">
      <h2 class="section-title"><Icon name="alert" />Latest deadlocks</h2>
      {groups.length === 0
        ? <p class="quiet">None since this member started. When waits form a cycle, one request
            becomes the victim at once, and the cycle is listed here.</p>
        : <div class="rings">
            {groups.slice(0, 24).map((group) => <DeadlockCard key={group.key} group={group} />)}
          </div>}
    </section>
  );
}

function DeadlockCard(props: { group: DeadlockGroup }) {
  const { latest, first, count: times } = props.group;
  return (
    <article class="card ring-card">
      <CycleRing cycle={latest.cycle} />
      <div>
        <h3><When at={latest.cluster_time_ms} />
          <span class="quiet">{duration(latest.ago_ms)} ago, revision {latest.revision}</span></h3>
        {times > 1 && <p class="times"><span class="tag is-bad">{count(times)} times</span>
          <span class="quiet">since <When at={first.cluster_time_ms} /></span></p>}
        <ol class="cycle">
          {latest.cycle.slice(0, 6).map((step, i) => (
            <Participant key={`${step.lease} ${step.request}`} step={step} is_victim={i === 0} />
          ))}
          {latest.cycle.length > 6 && <li>{latest.cycle.length - 6} more</li>}
        </ol>
      </div>
    </article>
  );
}

/// What a participant held, and what it waited for.
function Participant(props: { step: CycleStep; is_victim: boolean }) {
  const { step } = props;
  return (
    <li class={props.is_victim ? "is-victim" : ""}>
      <strong>{owner_of(step)}</strong>
      {props.is_victim && <span class="tag is-bad">victim</span>}
      {step.held && <>{" held "}
        <a class="mono" href={lock_link(step.held)}>{visible(step.held.name)}</a>{" and"}</>}
      {" waited for "}
      <a class="mono" href={lock_link(step)}>{visible(step.name)}</a>
    </li>
  );
}
