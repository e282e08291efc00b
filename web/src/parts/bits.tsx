// Small components that several views share.

import { useState } from "preact/hooks";

import { claim, duration, mode_name, owner_hue, owner_of, short_id, visible } from
  "../model/format";
import { now } from "../model/clock";
import { lease_link } from "../router";
import { Icon } from "./icon";

/// A running duration: `ms` at the time `at` of the page's clock.
export function Running(props: { ms: number; at: number; counts?: "up" | "down" }) {
  const passed = Math.max(0, now.value - props.at);
  return <>{duration(props.counts === "down" ? props.ms - passed : props.ms + passed)}</>;
}

export function ModeBadge(props: { of: { mode?: string; permits?: number } }) {
  const { mode } = props.of;
  return (
    <span class={`mode mode-${mode ?? "permits"}`} title={mode ? mode_name(mode) : undefined}>
      {claim(props.of)}
    </span>
  );
}

/// Label of an owner with its colour.
export function Owner(props: { of: { owner: string; lease: string }; link?: boolean }) {
  const text = owner_of(props.of);
  const dot = <span class="dot" style={{ "--hue": String(owner_hue(props.of)) }} />;
  return props.link
    ? <a class="owner" href={lease_link(props.of.lease)}>{dot}<span>{text}</span></a>
    : <span class="owner">{dot}<span>{text}</span></span>;
}

/// Authenticated user of a lease, if the server has users. The owner is only a label.
export function User(props: { of: { user?: string } }) {
  return props.of.user
    ? <span class="tag user" title={`authenticated user ${visible(props.of.user)}`}>
        <Icon name="user" />{visible(props.of.user)}
      </span> : null;
}

export function LeaseId(props: { id: string }) {
  return <a class="mono" href={lease_link(props.id)} title={props.id}>{short_id(props.id)}</a>;
}

export function Copied(props: { text: string; what: string }) {
  const [is_done, set_done] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(props.text);
      set_done(true);
      setTimeout(() => set_done(false), 1500);
    } catch {
      // The clipboard needs HTTPS or loopback, and a permission. The text can be selected instead.
    }
  };
  return (
    <button class="copy" onClick={copy} aria-label={`Copy ${props.what}`}
            title={`Copy ${props.what}`}>
      <Icon name={is_done ? "check" : "copy"} />
    </button>
  );
}

/// The name of a lock: text, or bytes in base64 with a tag.
export function Name(props: { of: { name: string; name_encoding?: string; is_base64?: boolean } }) {
  const is_base64 = props.of.is_base64 || props.of.name_encoding === "base64";
  const name = visible(props.of.name);
  const slash = name.lastIndexOf("/");
  return (
    <span class="name" title={name}>
      {slash > 0 && <span class="path">{name.slice(0, slash + 1)}</span>}
      <span>{slash > 0 ? name.slice(slash + 1) : name}</span>
      {is_base64 && <span class="tag">base64</span>}
    </span>
  );
}
