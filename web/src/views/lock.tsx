// One lock: holders, wait queue, history.

import { useEffect, useRef, useState } from "preact/hooks";

import { api, type PlaceName } from "../api/client";
import { Feed } from "../api/feed";
import type { Hold, Lock, LockEvent, Wait } from "../api/types";
import { count, duration, forced_by, plural, range, visible,
  visible_lines } from "../model/format";
import { use_poll } from "../model/poll";
import { event_ranges, range_of } from "../model/ranges";
import { cluster_now } from "../model/server";
import { Copied, LeaseId, ModeBadge, Name, Owner, Running, User } from "../parts/bits";
import { ForceButton, ForceDialog } from "../parts/force_release";
import { Icon } from "../parts/icon";
import { RangeChips } from "../parts/range_chips";
import { Loading, Trouble } from "../parts/states";
import { TimelineChart } from "../parts/timeline_chart";
import { Since, When } from "../parts/when";
import { back_to, query } from "../router";

const events_kept_max = 1_000;
const events_listed_max = 30;
const grants_kept_max = 20_000;
/// Range of the number of grants, unless the user selects one.
const grants_range = "5m";

export function LockView(props: { place: PlaceName }) {
  const { place } = props;
  const key = `${place.kind} ${place.name}`;
  const polled = use_poll(() => api.lock(place), 1_000, key);
  const log = use_events(place, polled.again);
  const [releasing, set_releasing] = useState<Hold>();
  const lock = polled.value;
  const is_free = polled.problem?.status === 404;
  if (!lock && polled.problem && !is_free) {
    return <Trouble problem={polled.problem} again={polled.again} />;
  }
  if (!lock && !is_free) {
    return <Loading what="Reading the lock…" />;
  }
  return (
    <>
      <header class="page-head">
        <a class="back" href={back_to("locks")}><Icon name="back" />Locks</a>
        <h1><Name of={place} /></h1>
        <div class="page-facts">
          <State lock={lock} />
          {lock && <span class="tag">{lock.kind}</span>}
          {lock?.capacity && <span>{plural(lock.capacity, "permit")}</span>}
          <Grants log={log} />
          {lock && <span>since revision {lock.create_revision}</span>}
        </div>
      </header>
      {is_free && (
        <div class="card is-calm">
          <h2>The lock is free and has no waiters</h2>
          <p class="quiet">A free lock has no record. Its past events, as far as the server retains
            them, are below.</p>
        </div>
      )}
      {lock && <Holders lock={lock} name={place.name} at={polled.at} on_ask={set_releasing} />}
      {releasing && <ForceDialog place={place} hold={releasing} on_done={polled.again}
                                 on_close={() => set_releasing(undefined)} />}
      {lock && <Queue lock={lock} at={polled.at} />}
      <History events={log.events} />
    </>
  );
}

/// Number of grants in the selected range. "at least": the server has discarded older events.
/// Nothing if those may be all.
function Grants(props: { log: EventLog }) {
  const chosen = range_of(event_ranges, query.value.get("range"));
  const range = Number.isFinite(chosen.ms) ? chosen : range_of(event_ranges, grants_range);
  const begin = cluster_now() - range.ms;
  const { grants, complete_since } = props.log;
  const recent = grants.filter((at) => at >= begin).length;
  const is_complete = complete_since <= begin;
  return recent === 0 && !is_complete ? null : (
    <span data-testid="grants">
      {!is_complete && "at least "}
      {plural(recent, "grant")} in the last {range.label}
    </span>
  );
}

function State(props: { lock: Lock | undefined }) {
  const { lock } = props;
  if (!lock) {
    return <span class="state">free</span>;
  }
  return (
    <>
      <span class={`state ${lock.holder_count > 0 ? "is-held" : ""}`}>
        {lock.holder_count > 0 ? "held" : "free"}
      </span>
      {lock.waiter_count > 0 &&
        <span class="state is-waiting">{count(lock.waiter_count)} waiting</span>}
    </>
  );
}

function Holders(props: { lock: Lock; name: string; at: number;
                          on_ask: (hold: Hold) => void }) {
  const { lock, at } = props;
  if (lock.holder_count === 0) {
    return (
      <div class="card is-calm">
        <h2>The lock is free</h2>
        <p class="quiet">Its waiters also wait for another lock of the same request.</p>
      </div>
    );
  }
  return (
    <section aria-label="Holders" class="holders">
      {lock.holders.slice(0, 50).map((hold) => (
        <HolderCard key={`${hold.token} ${JSON.stringify(hold.range ?? "")}`} hold={hold} at={at}
                    name={props.name} on_ask={() => props.on_ask(hold)} />
      ))}
      {lock.holder_count > 50 && <p class="quiet">{count(lock.holder_count - 50)} more</p>}
    </section>
  );
}

function HolderCard(props: { hold: Hold; name: string; at: number; on_ask: () => void }) {
  const { hold, at } = props;
  return (
    <article class="card holder" aria-label="Holder">
      <div class="holder-head">
        <Owner of={hold} link />
        <User of={hold} />
        <ModeBadge of={hold} />
        {hold.range && <span class="mono">{range(hold.range)}</span>}
        <ForceButton name={props.name} on_ask={props.on_ask} />
      </div>
      <dl class="facts">
        <div class="is-wide"><dt>Held for</dt><dd><Running ms={hold.held_for_ms} at={at} />
          <span class="quiet"> since <Since ms={hold.held_for_ms} at={at} /></span></dd></div>
        <div><dt>Fencing token</dt>
          <dd><span class="mono" data-testid="token">{hold.token}</span>
            <Copied text={hold.token} what="token" /></dd></div>
        <div><dt>Lease</dt><dd><LeaseId id={hold.lease} /></dd></div>
        {hold.user && <div><dt>User</dt>
          <dd class="break" data-testid="user">{visible(hold.user)}</dd></div>}
        {hold.count > 1 && <div><dt>Acquired</dt><dd>{plural(hold.count, "time")}</dd></div>}
        {hold.metadata && <div><dt>Metadata</dt><dd class="break">
          <span class="lines">{visible_lines(hold.metadata)}</span>
          {hold.metadata_encoding && <span class="tag">base64</span>}</dd></div>}
      </dl>
    </article>
  );
}

function Queue(props: { lock: Lock; at: number }) {
  const queue = props.lock.queue ?? [];
  if (queue.length === 0) {
    return null;
  }
  return (
    <section class="card" aria-label="Queue">
      <h2>Queue <span class="quiet">in order of arrival (FIFO)</span></h2>
      <table class="plain-table">
        <thead>
          <tr><th class="number">#</th><th>Owner</th><th>Mode</th>
            <th class="number">Waiting for</th><th class="hide-narrow">Lease</th></tr>
        </thead>
        <tbody>
          {queue.slice(0, 100).map((wait) =>
            <Waiter key={wait.ticket} wait={wait} at={props.at} />)}
        </tbody>
      </table>
      {props.lock.waiter_count > 100 &&
        <p class="quiet">{count(props.lock.waiter_count - 100)} more</p>}
    </section>
  );
}

function Waiter(props: { wait: Wait; at: number }) {
  const { wait } = props;
  return (
    <tr>
      <td class="number">{wait.position}</td>
      <td><Owner of={wait} link /><User of={wait} /></td>
      <td><ModeBadge of={wait} />{wait.is_upgrade && <span class="tag">upgrade</span>}
        {wait.range && <span class="mono"> {range(wait.range)}</span>}</td>
      <td class="number"><Running ms={wait.waited_ms} at={props.at} />
        <span class="quiet hide-narrow"> since <Since ms={wait.waited_ms} at={props.at} /></span>
      </td>
      <td class="hide-narrow"><LeaseId id={wait.lease} /></td>
    </tr>
  );
}

function History(props: { events: LockEvent[] }) {
  const { events } = props;
  const now = cluster_now();
  const { ms: range_ms } = range_of(event_ranges, query.value.get("range"));
  const shown = events.filter((event) => now - event.cluster_time_ms <= range_ms);
  const latest = shown.slice(-events_listed_max).reverse();
  return (
    <section class="card" aria-label="History">
      <div class="card-head"><h2>History</h2><RangeChips ranges={event_ranges} /></div>
      {events.length === 0
        ? <p class="quiet">The events that the server retains contain none of this lock. New events
            appear here.</p>
        : <TimelineChart events={events} now={now} range_ms={range_ms} />}
      {events.length > 0 && shown.length === 0 &&
        <p class="quiet">No events in this time range.</p>}
      {shown.length > 0 && (
        <table class="plain-table events">
          <thead>
            <tr><th>Time</th><th>Event</th><th>Owner</th><th class="hide-narrow">Mode</th>
              <th class="number hide-narrow">Token</th></tr>
          </thead>
          <tbody>
            {latest.map((event, i) => (
              <tr key={`${event.revision} ${i}`}>
                <td class="when"><When at={event.cluster_time_ms} />
                  <span class="quiet hide-narrow">
                    {duration(Math.max(0, now - event.cluster_time_ms))} ago</span></td>
                <td><span class={`what what-${event.type}`}>{event.type}</span></td>
                <td><Owner of={event} link /><User of={event} />
                  {event.operator && <span class="quiet break">{forced_by(event)}</span>}</td>
                <td class="hide-narrow"><ModeBadge of={event} /></td>
                <td class="number mono hide-narrow">{event.token ?? ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

interface EventLog {
  events: LockEvent[]; ///< The last ones.
  grants: number[]; ///< Cluster times of the last grants; more than there are in `events`.
  complete_since: number; ///< Cluster time after which no event is missing.
}

/// Retained events of this lock, then live events.
function use_events(place: PlaceName, on_change: () => void): EventLog {
  const empty: EventLog = { events: [], grants: [], complete_since: Infinity };
  const [log, set_log] = useState(empty);
  const changed = useRef(on_change);
  changed.current = on_change;
  useEffect(() => {
    let feed: Feed | undefined;
    let is_over = false;
    const kind = place.kind === "space" ? "space" : "lock";
    const begin = () => {
      if (is_over) {
        return;
      }
      set_log(empty);
      feed = new Feed({
        prefix: place.is_base64 ? "" : place.name,
        start: "oldest",
        on_ready: (compact_revision) => set_log((before) => ({ ...before, complete_since:
          compact_revision === "0" ? -Infinity : Math.min(before.complete_since, cluster_now()) })),
        on_events: (more) => {
          const ours = more.filter((event) => event.name === place.name && event.kind === kind);
          if (ours.length > 0) {
            set_log((before) => added(before, ours));
            changed.current();
          }
        },
        on_gap: () => {
          feed?.close();
          setTimeout(begin, 1_000);
        },
      });
    };
    begin();
    return () => {
      is_over = true;
      feed?.close();
    };
  }, [place.name, place.kind]);
  return log;
}

function added(before: EventLog, more: LockEvent[]): EventLog {
  const grants = more.filter((event) => event.type === "granted")
    .map((event) => event.cluster_time_ms);
  return {
    events: [...before.events, ...more].slice(-events_kept_max),
    grants: [...before.grants, ...grants].slice(-grants_kept_max),
    // The server discards the oldest events of all locks first.
    complete_since: Math.min(before.complete_since, more[0]!.cluster_time_ms),
  };
}
