// Overview: counters, charts, longest waits and latest deadlocks.

import { api } from "../api/client";
import type { Deadlock, Graph } from "../api/types";
import { group_deadlocks } from "../model/deadlocks";
import { count, duration, latency, owner_of, plural, rate, visible } from "../model/format";
import { use_poll } from "../model/poll";
import { metric_ranges, range_of } from "../model/ranges";
import { history, status } from "../model/server";
import { Name, Owner, Running, User } from "../parts/bits";
import { Chart, latest } from "../parts/chart";
import { RangeChips } from "../parts/range_chips";
import { Loading } from "../parts/states";
import { When } from "../parts/when";
import { lock_link, query } from "../router";

export function Overview() {
  const graph = use_poll(api.graph, 2_000);
  const deadlocks = use_poll(api.deadlocks, 4_000);
  const here = status.value;
  if (!here) {
    return <Loading what="Reading the server status…" />;
  }
  const { counts } = here;
  const { ms: range_ms } = range_of(metric_ranges, query.value.get("range"));
  return (
    <>
      <h1 class="hidden">Overview</h1>
      <section class="tiles" aria-label="Counters">
        <Tile href="#/locks" label="Locks held" value={count(counts.holds)} series="holds"
              colour="--held" note={`on ${plural(counts.locks, "name")}`} />
        <Tile href="#/waits" label="Waiting" value={count(counts.waits)} series="waits"
              colour="--wait" note={longest(graph.value)} />
        <Tile href="#/leases" label="Leases" value={count(counts.leases)} series="leases"
              colour="--lease" note={`${rate(latest("renewed"))} renewals/s`} />
        <Tile href="#/waits" label="Deadlocks" value={count(deadlocks.value?.length ?? 0)}
              series="deadlocks" colour="--bad" note={last_one(deadlocks.value)} />
      </section>
      <div class="card-head">
        <h2>Rates and latencies</h2><RangeChips ranges={metric_ranges} />
      </div>
      <section class="charts" aria-label="Rates and latencies">
        <Chart range_ms={range_ms} title="Grants and releases per second" format={rate} lines={[
          { series: "granted", label: "granted", colour: "--held", fill: true },
          { series: "released", label: "released", colour: "--lease" },
          { series: "expired", label: "expired", colour: "--bad" },
        ]} />
        <Chart range_ms={range_ms} title="Time to acquire: p50, p99" format={latency} is_log
               lines={[
          { series: "acquire_p50_seconds", label: "p50", colour: "--held" },
          { series: "acquire_p99_seconds", label: "p99", colour: "--wait" },
        ]} />
        <Chart range_ms={range_ms} title="Holds and waits" format={rate} lines={[
          { series: "holds", label: "held", colour: "--held", fill: true },
          { series: "waits", label: "waiting", colour: "--wait", fill: true },
        ]} />
        <Chart range_ms={range_ms} title="Time to commit: p50, p99" format={latency} is_log lines={[
          { series: "commit_p50_seconds", label: "p50", colour: "--lease" },
          { series: "commit_p99_seconds", label: "p99", colour: "--wait" },
          { series: "fsync_p99_seconds", label: "fsync p99", colour: "--ink-3" },
        ]} />
      </section>
      <section class="pair">
        <LongestWaits graph={graph.value} at={graph.at} />
        <Deadlocks deadlocks={deadlocks.value ?? []} />
      </section>
    </>
  );
}

function Tile(props: { href: string; label: string; value: string; note: string; series: string;
                       colour: string }) {
  return (
    <a class="card tile" href={props.href}>
      <span class="tile-label">{props.label}</span>
      <strong class="tile-value">{props.value}</strong>
      <span class="tile-note">{props.note}</span>
      <Spark series={props.series} colour={props.colour} />
    </a>
  );
}

function Spark(props: { series: string; colour: string }) {
  const values = (history.value.series[props.series] ?? []).slice(-90);
  if (values.length < 2) {
    return null;
  }
  const high = Math.max(1e-9, ...values.map((value) => value ?? 0));
  const points = values.map((value, i) =>
    `${(i * 120 / (values.length - 1)).toFixed(1)} ${(34 - 30 * (value ?? 0) / high).toFixed(1)}`);
  return (
    <svg class="spark" viewBox="0 0 120 36" preserveAspectRatio="none" aria-hidden="true"
         style={{ color: `var(${props.colour})` }}>
      <path class="spark-area" d={`M0 36L${points.join("L")}L120 36z`} />
      <path class="spark-line" d={`M${points.join("L")}`} />
    </svg>
  );
}

function longest(graph: Graph | undefined): string {
  const waits = (graph?.locks ?? []).flatMap((lock) => lock.queue ?? []);
  const most = Math.max(0, ...waits.map((wait) => wait.waited_ms));
  return waits.length > 0 ? `longest ${duration(most)}` : "no waiters";
}

function last_one(deadlocks: Deadlock[] | undefined): string {
  const last = deadlocks?.[0];
  return last ? `last ${duration(last.ago_ms)} ago` : "none";
}

function LongestWaits(props: { graph: Graph | undefined; at: number }) {
  const waits = (props.graph?.locks ?? [])
    .flatMap((lock) => (lock.queue ?? []).map((wait) => ({ lock, wait })))
    .sort((left, right) => right.wait.waited_ms - left.wait.waited_ms).slice(0, 6);
  return (
    <div class="card">
      <h2>Longest waits</h2>
      {waits.length === 0 && <p class="quiet">No requests are waiting.</p>}
      <ul class="plain-list">
        {waits.map(({ lock, wait }) => (
          <li key={`${wait.ticket} ${lock.name}`}>
            <span class="owner-user"><Owner of={wait} link /><User of={wait} /></span>
            <a href={lock_link(lock)}><Name of={lock} /></a>
            <span class="number"><Running ms={wait.waited_ms} at={props.at} /></span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Deadlocks(props: { deadlocks: Deadlock[] }) {
  const groups = group_deadlocks(props.deadlocks);
  return (
    <div class="card">
      <h2>Latest deadlocks</h2>
      {props.deadlocks.length === 0 &&
        <p class="quiet">None since this member started. The server resolves a cycle of waits at
          once: one request, the victim, fails with a deadlock error.</p>}
      <ul class="plain-list">
        {groups.slice(0, 6).map(({ key, latest: deadlock, count: times }) => (
          <li key={key}>
            <span class="owner"><span class="dot is-bad" />
              <span>victim: {deadlock.cycle[0] ? owner_of(deadlock.cycle[0]) : "unknown"}</span>
            </span>
            <span class="quiet">
              {deadlock.cycle.map((step) => visible(step.name)).join(" → ")}</span>
            <span class="number">{times > 1 && <span class="tag is-bad">{count(times)} times</span>}
              {" "}<When at={deadlock.cluster_time_ms} /></span>
          </li>
        ))}
      </ul>
    </div>
  );
}
