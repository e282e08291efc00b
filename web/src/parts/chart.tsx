// Line chart of the last minutes.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

import { time } from "../model/format";
import { history } from "../model/server";
import { is_dark } from "../theme";

const window_min_s = 120;

export interface Line {
  series: string;
  label: string;
  colour: string; ///< Name of a CSS custom property.
  fill?: boolean;
}

interface ChartProps {
  title: string;
  lines: Line[];
  format: (value: number | null | undefined) => string;
  /// Logarithmic axis, for latencies, which span decades.
  is_log?: boolean;
  height?: number;
  range_ms: number; ///< Time range that is shown.
}

export function Chart(props: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const dark = is_dark.value;

  useEffect(() => {
    const element = place.current!;
    const made = new uPlot(options(props, element.clientWidth), columns(props.lines), element);
    plot.current = made;
    const observer = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: props.height ?? 180 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [dark, props.range_ms]);

  const data = history.value;
  useEffect(() => plot.current?.setData(columns(props.lines)), [data]);

  return (
    <figure class="card chart">
      <figcaption>
        <h2>{props.title}</h2>
        <ul class="legend">
          {props.lines.map((line) => (
            <li key={line.series}>
              <span class="swatch" style={{ background: `var(${line.colour})` }} />
              {line.label}
              <strong data-series={line.series}>{props.format(latest(line.series))}</strong>
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="plot" ref={place} role="img"
           aria-label={`${props.title}: ` + props.lines.map((line) =>
             `${line.label} ${props.format(latest(line.series))}`).join(", ")} />
    </figure>
  );
}

/// Most recent value of a series. Latencies have none while no lock is requested.
export function latest(series: string): number | null {
  const values = history.value.series[series] ?? [];
  return values[values.length - 1] ?? null;
}

/// Times are wall-clock times in seconds.
function columns(lines: Line[]): uPlot.AlignedData {
  const { interval_ms, length, series, at } = history.value;
  const times = Array.from({ length }, (_, i) => (at + (i + 1 - length) * interval_ms) / 1000);
  return [times, ...lines.map((line) => series[line.series] ?? [])] as uPlot.AlignedData;
}

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function options(props: ChartProps, width: number): uPlot.Options {
  const axis = {
    stroke: colour("--ink-3"), font: `11px ${getComputedStyle(document.body).fontFamily}`,
    grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false },
  };
  return {
    width, height: props.height ?? 180,
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    padding: [10, 18, 0, 0],
    scales: {
      x: { time: false, range: (_, first) => {
        const end = history.value.at / 1000;
        const start = Math.max(first ?? end, end - props.range_ms / 1000);
        return [Math.min(start, end - window_min_s), end];
      } },
      y: props.is_log
        ? { distr: 3, range: (_, low, high) => uPlot.rangeLog(low || 1e-4, high || 1, 10, false) }
        : { range: (_, __, high) => [0, nice(high ?? 0)] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: 28, incrs: [30, 60, 120, 300], space: 64,
        values: (_, splits) => splits.map((at) => minutes(at)) },
      { ...axis, size: 58, space: 36,
        grid: { ...axis.grid, filter: (_, splits) =>
          splits.map((value) => (props.is_log && !is_decade(value) ? null : value)) },
        values: (_, splits) => splits.map((value) =>
          (value === null || (props.is_log && !is_decade(value)) ? "" : props.format(value))) },
    ],
    series: [{}, ...props.lines.map((line) => ({
      label: line.label, stroke: colour(line.colour), width: 1.75, spanGaps: !props.is_log,
      points: { show: props.is_log ?? false, size: 3 },
      ...(line.fill ? { fill: fade(colour(line.colour)) } : {}),
    }))],
  };
}

/// "14:05", or with seconds at a half minute.
function minutes(at: number): string {
  const text = time(new Date(at * 1000));
  return text.endsWith(":00") ? text.slice(0, 5) : text;
}

function is_decade(value: number): boolean {
  const power = Math.log10(value);
  return Math.abs(power - Math.round(power)) < 1e-6;
}

/// Leaves space above the highest value; a flat series does not touch the top of the chart.
function nice(high: number): number {
  return high <= 0 ? 1 : high * 1.15;
}

function fade(hex: string): (plot: uPlot) => CanvasGradient | string {
  return (plot) => {
    const { top, height } = plot.bbox;
    if (!Number.isFinite(top) || !Number.isFinite(height)) {
      return "transparent";
    }
    const gradient = plot.ctx.createLinearGradient(0, top, 0, top + height);
    gradient.addColorStop(0, `${hex}40`);
    gradient.addColorStop(1, `${hex}03`);
    return gradient;
  };
}
