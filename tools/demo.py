#!/usr/bin/env python3
"""Demo of a fenced late write: three lock servers, eight workers that add 1 to an account in turn,
and one worker that is paused for longer than its lease while it holds the lock.

    tools/demo.py build/run [--stay] [--no-fence] [--think-ms N] [--ttl-ms N] [--rounds N]

Exit code 0: the account is correct. 1: updates were lost, as --no-fence demonstrates. BASE_PORT
(7420) is as in run_cluster.sh; if it is in use, or 0, the demo uses other ports.
"""
import argparse
import os
import pathlib
import queue
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

HOME = pathlib.Path(__file__).resolve().parent.parent
NAMES = ("ann", "bob", "cem", "dora", "eve", "finn", "gina", "hugo")
LATE = "dora"
TIMEOUT_S = 60
BOLD, RED, GREEN, DIM, PLAIN = ("\033[1m", "\033[31m", "\033[32m", "\033[2m", "\033[0m") \
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else ("",) * 5


class DemoTimeout(Exception):
    """An expected step did not happen in time."""


def ports_of(base):
    return [base + 10 * member + kind for member in range(3) for kind in range(3)]


def is_free(base):
    try:
        for port in ports_of(base):
            socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


class Cluster:
    """Three tenured processes, started by tools/run_cluster.sh."""

    def __init__(self, tenured, folder):
        self.log = open(folder / "tenured.log", "w", encoding="utf-8")
        bases = random.sample(range(8000, 20000, 30), 5)
        if (preferred := int(os.environ.get("BASE_PORT", "7420"))) > 0:
            bases.insert(0, preferred)
        for base in filter(is_free, bases):
            if self.start(tenured, folder / f"cluster.{base}", base):
                return
        raise DemoTimeout(f"the cluster does not start; see {self.log.name}")

    def start(self, tenured, folder, base):
        self.process = subprocess.Popen(
            [HOME / "tools/run_cluster.sh", tenured.resolve()], text=True, stdout=subprocess.PIPE,
            stderr=self.log, start_new_session=True,
            env=os.environ | {"BASE_PORT": str(base), "FOLDER": str(folder)})
        text = ""
        for line in self.process.stdout:
            text += line
            if line.startswith("Ctrl-C stops all"):
                break
        found = re.search(r"member (\d) leads.*most data: (\S+).*(kill -9 \d+)", text, re.DOTALL)
        if not found:
            self.stop()
            return False
        self.leader, self.dashboard, self.kill_leader = found.groups()
        self.url = "tenure://" + ",".join(f"127.0.0.1:{base + 10 * n}" for n in range(3))
        return True

    def stop(self):
        """Stops all members, even while they start."""
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            pass
        except ProcessLookupError:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Worker:
    """One process, whose lines come to the story's queue."""

    def __init__(self, name, command, lines):
        self.name = name
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, start_new_session=True)
        self.reader = threading.Thread(target=self.read, args=(lines,), daemon=True)
        self.reader.start()
        self.held, self.wrote, self.fenced, self.lost, self.longest_ms = 0, 0, 0, 0, 0
        self.turn = {}

    def read(self, lines):
        for line in self.process.stdout:
            lines.put((self, line.rstrip("\n").split("\t")))
        lines.put((self, ["ended"]))

    def send(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def is_stopped(self):
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
        return stat.rpartition(")")[2].split()[0] == "T"

    def end(self):
        """Closes the standard input, and kills a worker that does not exit."""
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.close()
            self.process.wait(10)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.reader.join(10)


class Demo:
    def __init__(self, options, cluster, folder):
        self.options, self.file = options, folder / "account.db"
        self.lines, self.began = queue.Queue(), time.monotonic()
        program = str(options.build / "examples/demo_worker")
        flags = ["--ttl-ms", str(options.ttl_ms), "--think-ms", str(options.think_ms)]
        if options.no_fence:
            flags.append("--no-fence")
        self.expired, self.ending = set(), False
        self.service = Worker("service", [program, cluster.url, "service", "--watch"], self.lines)
        self.workers = {}
        self.until(lambda: self.service.turn, "the service can be watched")
        for name in NAMES:
            command = [program, cluster.url, name, str(self.file), *flags]
            self.workers[name] = Worker(name, command, self.lines)

    # Events -----------------------------------------------------------------------------------

    def until(self, is_done, what):
        """Reports events until `is_done()`."""
        deadline = time.monotonic() + TIMEOUT_S
        while not is_done():
            try:
                self.handle(*self.lines.get(timeout=max(0, deadline - time.monotonic())))
            except queue.Empty:
                raise DemoTimeout(f"not within {TIMEOUT_S} s: {what}") from None

    def handle(self, worker, words):
        what, *rest = words
        if what == "ended" and not self.ending:
            raise DemoTimeout(f"{worker.name} ended")
        getattr(self, "on_" + what, lambda *_: None)(worker, *rest)

    def on_watches(self, worker):
        worker.turn = {"watches": True}

    def on_event(self, _, what, owner, token):
        if what == "expired" and token != "0":
            self.expired.add(token)
            self.report("service", f"the lease of {owner} has expired, and token {token} with it",
                        RED)

    def on_holds(self, worker, token, waited_ms, position):
        worker.held += 1
        worker.longest_ms = max(worker.longest_ms, int(waited_ms))
        worker.turn = {"token": token, "waited": int(waited_ms) / 1000, "position": position}

    def on_read(self, worker, total):
        worker.turn["read"] = total

    def on_hesitates(self, worker):
        worker.turn["hesitates"] = True

    def on_wrote(self, worker, total, token):
        worker.wrote += 1
        turn = worker.turn
        waited = f"waited {turn['waited']:.1f} s at position {turn['position']}" \
            if turn["position"] != "0" else "did not wait"
        self.report(worker.name, f"{waited}, holds it with token {token}: "
                                 f"read {turn['read']}, wrote {total}")

    def on_fenced(self, worker, token, highest, total):
        worker.fenced += 1
        self.report("storage", f"rejects {worker.name}'s {total}: token {token} is stale, the "
                               f"highest is {highest}. The account has {self.stored()[0]}", RED)

    def on_lost(self, worker, why):
        worker.lost += 1
        self.report(worker.name, f"is notified: {why}", RED)

    def on_error(self, worker, why):
        self.report(worker.name, why, RED)

    def report(self, who, what, colour=""):
        seconds = time.monotonic() - self.began
        print(f"{DIM}{seconds:6.1f} s{PLAIN}  {colour}{who:8}{what}{PLAIN}", flush=True)

    # Steps ------------------------------------------------------------------------------------

    def writes(self):
        return sum(worker.wrote for worker in self.workers.values())

    def wait_for_writes(self, turns):
        """Waits until the workers have written `turns` more times."""
        wanted = self.writes() + turns
        self.until(lambda: self.writes() >= wanted, f"{turns} more writes")

    def pause_one(self):
        late = self.workers[LATE]
        late.turn.pop("hesitates", None)
        late.send("hesitate")
        self.until(lambda: late.turn.get("hesitates"), f"{LATE} reads and has not yet written")
        late.process.send_signal(signal.SIGSTOP)
        self.until_stopped(late)
        token, read = late.turn["token"], late.turn["read"]
        ttl = self.options.ttl_ms / 1000
        title(f"{LATE} holds the lock with token {token}, has read {read}, and is paused "
              "(SIGSTOP)")
        print(f"    Its next step is to write {int(read) + 1}. The others wait; "
              f"its lease is {ttl:g} s.")
        self.until(lambda: token in self.expired, f"the lease of {LATE} expires")
        self.wait_for_writes(self.options.rounds * (len(NAMES) - 1))

        title(f"{LATE} resumes (SIGCONT), unaware of the expiry, and writes {int(read) + 1} "
              f"with token {token}")
        counted, lost = late.fenced + late.wrote, late.lost
        late.send("go")
        late.process.send_signal(signal.SIGCONT)
        self.until(lambda: late.fenced + late.wrote > counted, f"{LATE} writes")
        self.until(lambda: late.lost > lost, f"{LATE} is notified of the loss")

    @staticmethod
    def until_stopped(worker):
        deadline = time.monotonic() + TIMEOUT_S
        while not worker.is_stopped():
            if time.monotonic() > deadline:
                raise DemoTimeout(f"{worker.name} does not stop")
            time.sleep(0.01)

    def run(self):
        title("Eight workers add 1 to an account: lock, read, think, write")
        self.wait_for_writes(self.options.rounds * len(NAMES))
        self.pause_one()
        title("All workers continue in FIFO order")
        self.wait_for_writes(self.options.rounds * len(NAMES))

    def end(self):
        self.ending = True
        for worker in (*self.workers.values(), self.service):
            worker.end()
        while not self.lines.empty():
            self.handle(*self.lines.get())

    # Result -----------------------------------------------------------------------------------

    def stored(self):
        """(total, accepted writes, accepted ones with a token older than one before)"""
        database = sqlite3.connect(f"file:{self.file}?mode=ro", uri=True, timeout=TIMEOUT_S)
        try:
            (total,), = database.execute("SELECT total FROM account")
            rows = database.execute("SELECT token FROM writes ORDER BY number")
            tokens = [token for token, in rows]
        finally:
            database.close()
        stale = sum(token < max(tokens[:at], default=0) for at, token in enumerate(tokens))
        return total, len(tokens), stale

    def check(self):
        """Prints the statistics of the workers; returns whether the fence kept the account
        correct."""
        total, accepted, stale = self.stored()
        title("Result")
        print(f"    {'worker':8}{'held':>6}{'wrote':>7}{'lost':>6}{'fenced':>8}"
              f"{'longest wait':>15}")
        for worker in self.workers.values():
            print(f"    {worker.name:8}{worker.held:6}{worker.wrote:7}{worker.lost:6}"
                  f"{worker.fenced:8}{worker.longest_ms / 1000:13.1f} s")
        fenced = sum(worker.fenced for worker in self.workers.values())
        is_correct = total == accepted and stale == 0
        print(f"\n    {accepted} writes of +1 were accepted, and the account has {total}: "
              + (f"{GREEN}correct.{PLAIN}" if is_correct
                 else f"{RED}{accepted - total} are lost.{PLAIN}"))
        print(f"    Late writes rejected by the storage: {fenced}. "
              f"Late writes accepted: {stale}.")
        if not is_correct:
            print(f"    {RED}A lock alone cannot stop a paused holder; a fence can.{PLAIN}")
        return is_correct and fenced > 0


def title(text):
    print(f"\n{BOLD}==> {text}{PLAIN}", flush=True)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path, help="build folder")
    parser.add_argument("--stay", action="store_true", help="continue until Ctrl-C")
    parser.add_argument("--no-fence", action="store_true", help="storage does not check tokens")
    parser.add_argument("--think-ms", type=int, default=150, help="time between read and write")
    parser.add_argument("--ttl-ms", type=int, default=2000, help="TTL of the leases")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each worker in a step")
    parser.add_argument("--folder", type=pathlib.Path, help="folder for the files, kept afterwards")
    return parser.parse_args()


def run_demo(options, folder):
    cluster = Cluster(options.build / "tenured", folder)
    demo = None
    try:
        title(f"Three lock servers run; the leader is member {cluster.leader}")
        print(f"    Dashboard: {cluster.dashboard}")
        demo = Demo(options, cluster, folder)
        demo.run()
        if options.stay:
            title("The demo continues until Ctrl-C. Open the dashboard, or kill the leader:")
            print(f"    {cluster.dashboard}   {cluster.kill_leader}")
        try:
            while options.stay:
                demo.run()
        except KeyboardInterrupt:
            pass
        demo.end()
        return 0 if demo.check() else 1
    finally:
        if demo:
            demo.end()
        cluster.stop()


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    try:
        if options.folder:
            options.folder.mkdir(parents=True, exist_ok=True)
            return run_demo(options, options.folder)
        with tempfile.TemporaryDirectory(prefix="tenure_demo.") as folder:
            return run_demo(options, pathlib.Path(folder))
    except DemoTimeout as why:
        print(f"{RED}{why}{PLAIN}", file=sys.stderr)
    except KeyboardInterrupt:
        print()
    return 1


if __name__ == "__main__":
    sys.exit(main())
