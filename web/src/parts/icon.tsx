// Drawn here, in one stroke width, and coloured by the text around them.

const paths = {
  lock: "M7 11V8a5 5 0 0 1 10 0v3M6 11h12v9H6z",
  unlock: "M7 11V8a5 5 0 0 1 9.6-2M6 11h12v9H6z",
  lease: "M12 8v4.5l3 2M12 4a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17M9.5 1.8h5",
  graph: "M6 8.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M18 14.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5" +
    "M6 20.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M8.3 7l7.4 4M15.7 13l-7.4 4",
  cluster: "M4 4h16v6H4zM4 14h16v6H4zM8 7h.01M8 17h.01",
  overview: "M3 17l5-6 4 4 8-9M3 21h18",
  alert: "M12 4 2.8 20h18.4zM12 10v4.5M12 17.3h.01",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14M16 16l4.5 4.5",
  sun: "M12 16.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4" +
    "M17.6 17.6 19 19M19 5l-1.4 1.4M6.4 17.6 5 19",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M4.5 12.5 10 18 20 6.5",
  user: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8M4.5 20.5a7.5 7.5 0 0 1 15 0",
  back: "M15 5l-7 7 7 7",
  pause: "M8 5v14M16 5v14",
  play: "M7 4.5v15l12-7.5z",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  folder: "M3.500 6.500h6l2 2.500h9v10.500h-17z",
  filter: "M4 6h16M7 12h10M10 18h4",
  flame: "M12 3c1 4 5 5.5 5 10.5a5 5 0 0 1-10 0C7 11 8.500 10 9 8c1.500 1 2 2 2 3 1-2 1.500-5 1-8z",
} as const;

export type IconName = keyof typeof paths;

export function Icon(props: { name: IconName; label?: string }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden={props.label ? undefined : "true"}
         role={props.label ? "img" : undefined} aria-label={props.label}>
      <path d={paths[props.name]} />
    </svg>
  );
}
