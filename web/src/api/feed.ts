// Subscription to the event stream (server-sent events). It resumes at the last received revision
// after a reconnect, and disconnects while the page is hidden: a browser allows about six HTTP/1
// connections for each server.

import { event_types, type LockEvent } from "./types";

export interface FeedOptions {
  prefix?: string;
  /// First revision to receive, or "oldest"; undefined starts with the next event.
  start?: string | undefined;
  on_events: (events: LockEvent[]) => void;
  /// Events were lost. The receiver must read the full state and subscribe after its revision.
  on_gap: () => void;
  /// The stream begins; the server has discarded the events up to `compact_revision`.
  on_ready?: (compact_revision: string) => void;
  on_state?: (is_connected: boolean) => void;
}

const batch_ms = 100;
const retry_ms = 2_000;

export class Feed {
  private source: EventSource | undefined;
  private next: string | undefined;
  private pending: LockEvent[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private is_closed = false;

  constructor(private readonly options: FeedOptions) {
    this.next = options.start;
    document.addEventListener("visibilitychange", this.on_visibility);
    this.on_visibility();
  }

  close(): void {
    this.is_closed = true;
    document.removeEventListener("visibilitychange", this.on_visibility);
    this.disconnect();
    clearTimeout(this.timer);
  }

  private on_visibility = (): void => {
    if (document.hidden) {
      this.disconnect();
    } else if (!this.source) {
      this.connect();
    }
  };

  private connect(): void {
    if (this.is_closed || document.hidden) {
      return;
    }
    const query = new URLSearchParams();
    if (this.options.prefix) {
      query.set("prefix", this.options.prefix);
    }
    if (this.next) {
      query.set("start_revision", this.next);
    }
    const source = new EventSource(`/v1/events?${query}`);
    this.source = source;
    source.addEventListener("ready", (message) => {
      const { revision, compact_revision } = JSON.parse(message.data) as
        { revision: string; compact_revision: string };
      this.options.on_ready?.(compact_revision);
      // Resume position for a stream without a start; replayed events advance it one by one.
      this.next ??= after(revision);
      this.options.on_state?.(true);
    });
    for (const type of event_types) {
      source.addEventListener(type, (message) => this.take(message));
    }
    for (const type of ["compact", "cut"]) {
      source.addEventListener(type, () => {
        this.disconnect();
        this.next = undefined;
        this.options.on_gap();
      });
    }
    // EventSource would reconnect by itself, but only from the last event id.
    source.onerror = () => {
      this.disconnect();
      this.options.on_state?.(false);
      this.retry = setTimeout(() => this.connect(), retry_ms);
    };
  }

  private disconnect(): void {
    clearTimeout(this.retry);
    this.source?.close();
    this.source = undefined;
  }

  private take(message: MessageEvent<string>): void {
    const event = JSON.parse(message.data) as LockEvent;
    if (message.lastEventId === event.revision) {
      // The last event of its revision: resume with the next one, so that no revision is split.
      this.next = after(event.revision);
    }
    this.pending.push(event);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      const events = this.pending;
      this.pending = [];
      this.options.on_events(events);
    }, batch_ms);
  }
}

export function after(revision: string): string {
  return (BigInt(revision) + 1n).toString();
}
