// Layout of the wait-for graph: leases and locks are nodes; "waits for" edges go from a lease to a
// lock, "held by" edges from a lock to a lease.

import dagre from "@dagrejs/dagre";

import type { Graph, Lock } from "../api/types";
import { claim, owner_hue, owner_of, visible } from "./format";
import { key_of } from "./locks";

export interface Node {
  id: string;
  kind: "lock" | "lease" | "more";
  title: string;
  note: string;
  lock?: Lock;
  lease?: string;
  hue?: number; ///< Colour of the owner of a lease.
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Edge {
  id: string;
  kind: "waits" | "held";
  from: string;
  to: string;
  label: string;
  waited_ms: number;
  path: string;
  x: number;
  y: number;
}

export interface Drawing {
  nodes: Node[];
  edges: Edge[];
  width: number;
  height: number;
  /// Number of locks that are not drawn, because the graph exceeds `nodes_max`.
  left_out: number;
}

/// Nodes of the waiters of one lock, the front first.
interface Queue {
  lock: string;
  waiters: string[];
}

const queue_drawn_max = 10;
const holders_drawn_max = 8;
const nodes_max = 160;

export function draw(graph: Graph): Drawing {
  const nodes = new Map<string, Node>();
  const edges: Edge[] = [];
  const queues: Queue[] = [];
  let left_out = 0;
  const add = (node: Omit<Node, "x" | "y" | "width" | "height">) => {
    if (!nodes.has(node.id)) {
      const letters = Math.min(26, Math.max(node.title.length, node.note.length * 0.85));
      nodes.set(node.id, { ...node, x: 0, y: 0, width: Math.max(104, 56 + letters * 7.6),
        height: node.kind === "more" ? 34 : 50 });
    }
    return node.id;
  };
  const link = (kind: Edge["kind"], from: string, to: string, label: string, waited_ms = 0) => {
    edges.push({ id: `${from}>${to}`, kind, from, to, label, waited_ms, path: "", x: 0, y: 0 });
  };
  for (const lock of graph.locks) {
    if (nodes.size >= nodes_max) {
      left_out += 1;
      continue;
    }
    const place = add({ id: `lock ${key_of(lock)}`, kind: "lock", title: visible(lock.name), lock,
      note: `${lock.holder_count} held · ${lock.waiter_count} waiting` });
    for (const hold of lock.holders.slice(0, holders_drawn_max)) {
      link("held", place, add({ id: `lease ${hold.lease}`, kind: "lease", lease: hold.lease,
        hue: owner_hue(hold), title: owner_of(hold), note: `token ${hold.token}` }), claim(hold));
    }
    const queue = lock.queue ?? [];
    const drawn: string[] = [];
    for (const wait of queue.slice(0, queue_drawn_max)) {
      drawn.push(add({ id: `lease ${wait.lease}`, kind: "lease", lease: wait.lease,
        hue: owner_hue(wait), title: owner_of(wait), note: "waiting" }));
      link("waits", drawn[drawn.length - 1]!, place, `${wait.position ?? ""}. ${claim(wait)}`,
        wait.waited_ms);
    }
    const more = lock.waiter_count - Math.min(queue.length, queue_drawn_max);
    if (more > 0) {
      drawn.push(add({ id: `more ${place}`, kind: "more", title: `${more} more`, note: "", lock }));
      link("waits", drawn[drawn.length - 1]!, place, "");
    }
    queues.push({ lock: place, waiters: drawn });
  }
  return { ...lay_out(nodes, edges, queues), left_out };
}

/// What dagre knows about a node while it orders the nodes of each column.
interface Placed {
  rank?: number;
  order: number;
  edgeObj?: { v: string; w: string }; ///< Edge that a helper node is a part of.
}

/// Draws the front of a queue at the top: sorts its waiters, and the helper nodes of their edges,
/// among the places that they have in each column. Two leases may wait in opposite order in two
/// queues: the first queue wins.
function sort_queues(graph: InstanceType<typeof dagre.graphlib.Graph>, queues: Queue[]): void {
  for (const { lock, waiters } of [...queues].reverse()) {
    const columns = new Map<string, { placed: Placed; position: number }[]>();
    for (const id of graph.nodes()) {
      const placed = graph.node(id) as Placed;
      const edge = placed.edgeObj;
      const position = waiters.indexOf(edge?.w === lock ? edge.v : id);
      if (position >= 0) {
        const column = `${placed.rank} ${edge ? "edge" : "node"}`;
        columns.set(column, [...(columns.get(column) ?? []), { placed, position }]);
      }
    }
    for (const column of columns.values()) {
      const places = column.map(({ placed }) => placed.order).sort((left, right) => left - right);
      column.sort((left, right) => left.position - right.position);
      column.forEach(({ placed }, i) => (placed.order = places[i]!));
    }
  }
}

function lay_out(nodes: Map<string, Node>, edges: Edge[], queues: Queue[]):
    Omit<Drawing, "left_out"> {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 88, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes.values()) {
    graph.setNode(node.id, { width: node.width, height: node.height });
  }
  for (const edge of edges) {
    graph.setEdge(edge.from, edge.to, { width: 40, height: 14, labelpos: "c" }, edge.id);
  }
  dagre.layout(graph, { customOrder: (columns, order) => {
    order(columns, {});
    sort_queues(columns, queues);
  } });
  for (const node of nodes.values()) {
    const { x, y } = graph.node(node.id) as { x: number; y: number };
    node.x = x;
    node.y = y;
  }
  for (const edge of edges) {
    const laid = graph.edge(edge.from, edge.to, edge.id) as
      { points: { x: number; y: number }[]; x: number; y: number };
    edge.path = curve(laid.points);
    edge.x = laid.x;
    edge.y = laid.y;
  }
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { nodes: [...nodes.values()], edges, width, height };
}

/// Smooth path of an edge: quadratic curves between the midpoints of its segments.
function curve(points: { x: number; y: number }[]): string {
  const at = (p: { x: number; y: number }) => `${p.x.toFixed(1)} ${p.y.toFixed(1)}`;
  const first = points[0]!;
  const last = points[points.length - 1]!;
  let path = `M${at(first)}`;
  for (let i = 1; i < points.length - 1; ++i) {
    const here = points[i]!;
    const next = points[i + 1]!;
    const middle = { x: (here.x + next.x) / 2, y: (here.y + next.y) / 2 };
    path += `Q${at(here)} ${at(i === points.length - 2 ? last : middle)}`;
  }
  return points.length < 3 ? `${path}L${at(last)}` : path;
}
