// Formats numbers and durations for display.

const units: [string, number][] = [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1000]];

/// Two units at most: "3 m 20 s". Below a second, milliseconds.
export function duration(ms: number): string {
  if (ms < 0) {
    return "0 s";
  }
  if (ms < 1000) {
    return `${Math.floor(ms)} ms`;
  }
  const first = units.findIndex(([, size]) => ms >= size);
  const [name, size] = units[first]!;
  const whole = Math.floor(ms / size);
  if (name === "s") {
    return ms < 10_000 ? `${(Math.floor(ms / 100) / 10).toFixed(1)} s` : `${whole} s`;
  }
  const [next_name, next_size] = units[first + 1]!;
  const rest = Math.floor((ms % size) / next_size);
  return rest ? `${whole} ${name} ${rest} ${next_name}` : `${whole} ${name}`;
}

const two = (number: number) => String(number).padStart(2, "0");

/// Local date: "2026-11-19".
export function date(of: Date): string {
  return `${of.getFullYear()}-${two(of.getMonth() + 1)}-${two(of.getDate())}`;
}

/// Local time of day: "14:05:09".
export function time(of: Date): string {
  return `${two(of.getHours())}:${two(of.getMinutes())}:${two(of.getSeconds())}`;
}

/// Local wall-clock time, with the date unless it is today.
export function wall_clock(of: Date, today = new Date()): string {
  return date(of) === date(today) ? time(of) : `${date(of)} ${time(of)}`;
}

/// A latency given in seconds: "820 µs", "1.4 ms", "2.5 s".
export function latency(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) {
    return "–";
  }
  if (seconds < 0.001) {
    return `${Math.round(seconds * 1e6)} µs`;
  }
  if (seconds < 1) {
    return `${significant(seconds * 1000)} ms`;
  }
  return `${significant(seconds)} s`;
}

export function count(number: number): string {
  return number.toLocaleString("en-US");
}

/// A rate with two significant digits; whole numbers from 100.
export function rate(number: number | null | undefined): string {
  if (number === null || number === undefined) {
    return "–";
  }
  if (number >= 100) {
    return Math.round(number).toLocaleString("en-US");
  }
  return significant(number);
}

function significant(number: number): string {
  if (number === 0) {
    return "0";
  }
  return number >= 100 ? String(Math.round(number)) : Number(number.toPrecision(2)).toString();
}

export function bytes(number: number): string {
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  let value = number;
  while (value >= 1024 && power < names.length - 1) {
    value /= 1024;
    power += 1;
  }
  return `${power === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${names[power]}`;
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

const mode_names: Record<string, string> = {
  X: "exclusive", S: "shared", U: "update", IS: "intention shared", IX: "intention exclusive",
  SIX: "shared, intention exclusive",
};

export function mode_name(mode: string): string {
  return mode_names[mode] ?? mode;
}

/// Mode or permits of a hold or wait: "X", "3 permits".
export function claim(of: { mode?: string; permits?: number }): string {
  return of.mode ?? plural(of.permits ?? 1, "permit");
}

/// A key range; keys that are not text stay in base64, as the server sends them.
export function range(of: { start: string; end?: string }): string {
  return `[${visible(of.start) || "…"}, ${of.end === undefined ? "…" : visible(of.end)})`;
}

// Control characters, zero-width characters, and characters that change the direction of the text
// around them: a name with U+202E is drawn from right to left and so looks like another name.
const invisible = new RegExp("[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f" +
  "\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\u{e0000}-\\u{e007f}]", "gu");

/// Text that a client chose, with invisible characters as escapes such as \u202e.
export function visible(text: string): string {
  return text.replace(invisible, (found) => {
    const code = found.codePointAt(0)!.toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
  });
}

/// The same for text of several lines.
export function visible_lines(text: string): string {
  return text.split("\n").map(visible).join("\n");
}

/// Hue of a text: the same owner has the same colour everywhere. A number at the end is multiplied
/// by the golden angle, which separates worker-1 from worker-2 and worker-3.
export function hue(text: string): number {
  const digits = /\d{1,9}$/.exec(text)?.[0] ?? "";
  let hash = 0x811c9dc5; // FNV-1a
  for (const char of text.slice(0, text.length - digits.length)) {
    hash = Math.imul(hash ^ char.codePointAt(0)!, 0x01000193) >>> 0;
  }
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d) >>> 0;
  return Math.round((hash >>> 8) % 360 + Number(digits) * 137.508) % 360;
}

/// Colour of an owner: that of its label, or else of its lease.
export function owner_hue(of: { owner: string; lease: string }): number {
  return hue(of.owner || of.lease);
}

/// Label of an owner: the text chosen by the client, or else its lease.
export function owner_of(of: { owner: string; lease: string }): string {
  return visible(of.owner) || `lease ${short_id(of.lease)}`;
}

/// Operator of a forced release and the reason: " by ann: host is gone".
export function forced_by(of: { operator?: string; reason?: string }): string {
  return of.operator
    ? ` by ${visible(of.operator)}${of.reason ? `: ${visible(of.reason)}` : ""}` : "";
}

/// Shortens a long id (the server chooses them) to its last digits, which distinguish it.
export function short_id(id: string): string {
  return id.length > 10 ? `…${id.slice(-6)}` : id;
}
