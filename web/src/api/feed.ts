// The stream of events. It goes on where it was after a broken connection, and rests while nobody
// looks: a browser has few connections for one server.

import { event_types, type LockEvent } from "./types";

export interface FeedOptions {
  prefix?: string;
  /// The first revision wanted, or "oldest"; nothing: from now on.
  start?: string | undefined;
  on_events: (events: LockEvent[]) => void;
  /// Something is missing: read everything anew and begin behind that.
  on_gap: () => void;
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
      const { revision } = JSON.parse(message.data) as { revision: string };
      // From now on. What is replayed moves it on event by event.
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
    // We come back ourselves, since we know better from where.
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
      // The last of its revision: from here on whole revisions are missing, or none.
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
