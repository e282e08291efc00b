#!/usr/bin/env python3
"""Compares the in-process lock manager with its peers; prints one table with ratios.

  bench/run_local.py                              about three minutes
  bench/run_local.py --quick                      a smoke run: every row once, numbers are rough
  bench/run_local.py --write docs/benchmarks.md   puts the table into the page, too
  bench/run_local.py --only range --only point_x  some rows

The contenders of a row run in one process and in one minute, their repetitions shuffled; the figure
is the fastest one, since what else runs on the machine only ever adds; with two threads it is the
median, since a run in which they do not meet is the fastest of all. Exit code 0 also if targets are
missed, unless --strict.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from document import replace_section  # noqa: E402
from table_rows import BERKELEY, COLUMNS, FLOOR, RECREATION, ROCKS, all_rows  # noqa: E402

HOME = pathlib.Path(__file__).resolve().parent.parent
SHOWN_ALSO = {"hand_over/floor_spin_lock": "a spin lock hands over in {:,.0f} ns (wall, p50)"}


def main():
    """Measures, and prints the report."""
    options = arguments()
    rows = [row for row in all_rows() if not options.only or row["group"] in options.only]
    if not rows:
        sys.exit("no such row: " + ", ".join(options.only))
    values = {}
    groups = list(dict.fromkeys(row["group"] for row in rows))
    for number, group in enumerate(groups):
        progress(f"[{number + 1}/{len(groups)}] {group}")
        measure = measure_memory if group == "memory" else measure_group
        values.update(measure(group, options))
    progress("")

    table = [cells_of(row, values) for row in rows]
    verdicts = [rated for row in rows for rated in rate(row, values)]
    print(plain_text(table))
    print(summary(verdicts))
    for name, text in SHOWN_ALSO.items():
        if name in values:
            print(text.format(values[name]))
    if options.write:
        replace_section(options.write, "bench-local", markdown(table, verdicts, values, options))
    if options.json:
        options.json.write_text(json.dumps(values, indent=1, sort_keys=True), encoding="utf-8")
    missed = any(not met for _, _, met in verdicts)
    return 1 if options.strict and missed else 0


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HOME / "build" / "release",
                        help="the build folder (default: build/release)")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE",
                        help="replace this script's section of a page")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures")
    parser.add_argument("--only", action="append", default=[], metavar="ROW",
                        help="only this group of rows; may be repeated")
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a target is missed")
    options = parser.parse_args()
    for program in ("bench_local", "bench_memory"):
        if not (options.build / "bench" / program).exists():
            sys.exit(f"{options.build / 'bench' / program} is not there: "
                     "build with the preset `release`, or run `make bench-local`")
    options.repetitions = 1 if options.quick else 9
    options.seconds = 0.01 if options.quick else 0.05
    return options


def measure_group(group, options):
    """Benchmark name -> value over the repetitions, as described above."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [str(options.build / "bench" / "bench_local"),
                   f"--benchmark_filter=^{group}/",
                   f"--benchmark_repetitions={options.repetitions}",
                   f"--benchmark_min_time={options.seconds}",
                   "--benchmark_enable_random_interleaving=true",
                   f"--benchmark_out={report.name}", "--benchmark_out_format=json"]
        run(command, seconds_max=300)
        runs = json.load(report)["benchmarks"]
    samples = {}
    for one in runs:
        if one["run_type"] != "iteration":
            continue
        if one.get("error_occurred"):
            print(f"{one['name']}: {one['error_message']}", file=sys.stderr)
            continue
        name = re.sub(r"/(iterations:\d+|manual_time|repeats:\d+)", "", one["run_name"])
        time = one["real_time" if "manual_time" in one["run_name"] else "cpu_time"]
        samples.setdefault(name, []).append(time)
    return {name: (statistics.median if "threads:2" in name else min)(times)
            for name, times in samples.items()}


def measure_memory(_group, options):
    """`allocated/contender` and `resident/contender` -> bytes per lock."""
    program = str(options.build / "bench" / "bench_memory")
    values = {}
    for contender in run([program], seconds_max=10).split():
        line = json.loads(run([program, contender], seconds_max=60))
        values[f"allocated/{contender}"] = line["allocated"]
        values[f"resident/{contender}"] = line["resident"]
    return values


def run(command, seconds_max):
    """Standard output of a program; exits if the program fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds_max, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with {done.returncode}:\n{done.stderr}")
    return done.stdout


def rate(row, values):
    """(row title, text with verdict, met) for each target that can be rated."""
    verdicts = []
    for text, decide in row["targets"]:
        outcome = decide(values)
        if outcome is not None:
            reached, met = outcome
            verdicts.append((row["title"], f"{text}: {reached} {'ok' if met else 'MISSED'}", met))
    return verdicts


def cells_of(row, values):
    """The texts of one line of the table."""
    mine = values.get(row["ours"])
    cells = [row["title"], "–" if mine is None else number(mine)]
    for column in COLUMNS:
        theirs = values.get(row["peers"].get(column))
        if theirs is None:
            cells.append("–")
        elif mine is None:
            cells.append(number(theirs))
        else:
            cells.append(f"{number(theirs)} ({ratio(theirs / mine)})")
    cells.append("; ".join(text for _, text, _ in rate(row, values)))
    return cells


def number(value):
    """Number with three significant digits and thousands separators."""
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def ratio(value):
    """peer / ours: above 1, Tenure is faster or smaller."""
    return f"{value:,.0f}x" if value >= 100 else f"{value:.1f}x" if value >= 1 else f"{value:.2f}x"


HEADER = ["work", "ours"] + COLUMNS + ["targets"]


def plain_text(table):
    """Aligned columns; the targets are last, because they are long."""
    lines = [HEADER] + table
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEADER) - 1)]
    texts = []
    for line in lines:
        first = line[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(line[1:-1], widths[1:])]
        texts.append("  ".join([first] + rest + [line[-1]]).rstrip())
    return "\n".join(texts)


def summary(verdicts):
    """Number of met targets, and the targets that are not met."""
    missed = [f"  {title}: {text}" for title, text, met in verdicts if not met]
    head = f"targets: {len(verdicts) - len(missed)} of {len(verdicts)} met"
    return "\n".join([head] + missed)


NOTES = f"""### Notes
- *{RECREATION}*: lock-db 1.0 is a Rust crate; a plain C++ re-creation of its design stands in for
  it. Its author's own figures, from a Windows workstation and only quoted here: S 104 ns, X 106 ns,
  upgrade 121 ns, release_all 117 ns per lock, disjoint threads 100 ns, granted request 147 ns,
  range with 1,000 live 550 ns.
- *{BERKELEY}*: the lock subsystem of 5.3 alone, in private memory. Its deadlock row is one run of
  its detector.
- *{ROCKS}*: TransactionDB 7.8. It has no intention modes, S stands in for them; its ranges end with
  their transaction; its deadlock row is a request that searches and then times out.
- *{FLOOR}*: std::mutex and absl::flat_hash_map, without modes, queues or transactions; for S on a
  hot resource a map of std::shared_mutex; for the hand-over std::mutex.
"""


def markdown(table, verdicts, values, options):
    """The section of docs/benchmarks.md."""
    lines = ["## The lock manager inside a process, beside its peers", "",
             "CPU nanoseconds for one operation, summed over the threads (hand-over: wall clock;",
             "memory: bytes). In brackets the peer's figure divided by ours: above 1x we win.", "",
             f"Measured by `make bench-local` {facts(options)}.", "",
             "| " + " | ".join(HEADER) + " |", "|---|" + "---:|" * (len(HEADER) - 2) + "---|"]
    lines += ["| " + " | ".join(cells) + " |" for cells in table]
    lines += ["", *(f"- {line.strip()}" for line in summary(verdicts).splitlines())]
    lines += [f"- {text.format(values[name])}" for name, text in SHOWN_ALSO.items()
              if name in values]
    lines += ["", NOTES]
    return "\n".join(lines)


def facts(options):
    """Machine and date, without host names."""
    model = "unknown CPU"
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    date = datetime.date.today().isoformat()
    mode = ", a smoke run: rough numbers" if options.quick else ""
    return (f"on {date} with {model}, {os.cpu_count()} cores, {platform.system()} "
            f"{platform.release()}, {compiler(options.build)}, Release{mode}")


def compiler(build):
    """The compiler that CMake chose, with its version."""
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    found = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.MULTILINE)
    program = found.group(1) if found else "c++"
    version = run([program, "-dumpfullversion", "-dumpversion"], seconds_max=10).strip()
    return f"{pathlib.Path(program).name} {version}"


def progress(text):
    """One line that is overwritten, on terminals only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
