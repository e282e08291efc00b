"""People who use a cluster while it is broken: processes of tenure_workload, and, for what the C++
library has no words for, clients over gRPC: ranges of keys, and looks at who holds what."""

import contextlib
import json
import random
import sqlite3
import subprocess
import threading
import time

import grpc

from daemon import admin_pb, item_pb, lease_pb
from fleet import BUILD, Faults, with_faults

NAMES = ["chaos/m0", "chaos/m1", "chaos/m2", "chaos/r0", "chaos/r1"]
SPACE = "chaos/k0"


def now():
    """The clock of the history: microseconds of CLOCK_BOOTTIME."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class Recorder:
    """Lines of a history, in a file, at once. Thread safe: each line is one write."""

    def __init__(self, path):
        self.file = open(path, "ab", buffering=0)

    def say(self, kind, **fields):
        fields = {"at": now()} | fields | {"kind": kind}
        self.file.write((json.dumps(fields) + "\n").encode())

    def close(self):
        self.file.close()


def begin_ledger(folder):
    """The storage of all workloads. In WAL mode before two processes ask for that at the same time,
    which SQLite refuses one of them without waiting."""
    with contextlib.closing(sqlite3.connect(folder / "ledger.db")) as ledger:
        ledger.execute("PRAGMA journal_mode = WAL")


class Workload:
    """One process of tenure_workload."""

    def __init__(self, folder, name, url, **options):
        self.name, self.history = name, folder / f"{name}.jsonl"
        self.faults = Faults(folder / f"{name}.faults")
        words = {"--url": url, "--name": name, "--history": self.history,
                 "--ledger": folder / "ledger.db"}
        words |= {"--" + option.replace("_", "-"): value for option, value in options.items()}
        with open(folder / f"{name}.log", "wb") as log:
            self.process = subprocess.Popen(
                [*with_faults(self.faults), str(BUILD / "tests/tenure_workload"),
                 *(str(word) for pair in words.items() for word in pair)],
                stdout=subprocess.DEVNULL, stderr=log)

    def stop(self, timeout=60):
        self.process.terminate()
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the workload {self.name} does not stop") from None


class Ranger:
    """A thread that locks ranges of keys by gRPC, under a lease that it renews itself by the rules:
    it believes from before it sent the last renewal that was confirmed."""

    def __init__(self, folder, fleet, number, seed, ttl_ms):
        self.id = f"ranger{number}"
        self.recorder = Recorder(folder / f"{self.id}.jsonl")
        self.fleet, self.ttl_ms = fleet, ttl_ms
        self.chance = random.Random(seed)
        self.stop_event = threading.Event()
        self.lease, self.until, self.requests = 0, 0, 0
        self.threads = [threading.Thread(target=self.run, daemon=True),
                        threading.Thread(target=self.keep_lease, daemon=True)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stop_event.set()
        for thread in self.threads:
            thread.join(60)
        self.recorder.close()

    def owner(self):
        return f"{self.id}.{self.lease}"

    def believed(self, sent):
        return sent + self.ttl_ms * 1000 * 99 // 100 - 2000

    def keep_lease(self):
        client = self.fleet.client()
        while not self.stop_event.wait(self.ttl_ms / 3000):
            lease, sent = self.lease, now()
            if not lease:
                continue
            try:
                left = client.ask(lambda me: next(me.locks.LeaseKeepAlive(
                    iter([lease_pb.LeaseKeepAliveRequest(id=lease)]), timeout=2)), 2).ttl_ms
            except (grpc.RpcError, StopIteration):
                continue
            if left and lease == self.lease:
                self.until = max(self.until, self.believed(sent))
                self.recorder.say("renewed", owner=self.owner(), until=self.until)

    def run(self):
        client = self.fleet.client()
        while not self.stop_event.wait(self.chance.uniform(0, 0.03)):
            try:
                self.once(client)
            except grpc.RpcError as error:
                self.forget(error)

    def forget(self, error):
        """Whatever hangs on the lease is not believed in any more, and nobody renews it."""
        if self.lease:
            self.recorder.say("lost", owner=self.owner(), why=str(error.code()))
        self.lease = 0

    def once(self, client):
        if not self.lease:
            sent = now()
            self.lease = client.lease(ttl_ms=self.ttl_ms, client=self.id)
            self.until = self.believed(sent)
            self.recorder.say("renewed", owner=self.owner(), until=self.until)
        self.requests += 1
        request = f"{self.id}-{self.requests}"
        start = self.chance.randrange(8)
        end = start + self.chance.randrange(1, 4)
        mode, name = self.chance.choice([(item_pb.MODE_SHARED, "S"),
                                         (item_pb.MODE_EXCLUSIVE, "X")])
        keys = {"start": f"{start:02}", "end": f"{end:02}"}
        item = item_pb.Item(name=SPACE, keys=item_pb.Keys(mode=mode, range=item_pb.Range(
            start=keys["start"].encode(), end=keys["end"].encode())))
        self.recorder.say("invoke", client=self.id, owner=self.owner(), request=request,
                          items=[{"name": SPACE, "mode": name, **keys}])
        try:
            held = client.lock("", self.lease, items=[item], metadata=request.encode(),
                               request_id=self.requests, timeout=60)
        except grpc.RpcError as error:
            self.recorder.say("failed", request=request, why=str(error.code()))
            raise
        if not held.acquired:
            self.recorder.say("failed", request=request, why="refused")
            return
        self.recorder.say("granted", request=request, token=held.fencing_token, until=self.until)
        self.stop_event.wait(self.chance.uniform(0, 0.02))
        self.recorder.say("release", request=request)
        try:
            client.unlock(self.lease, held.fencing_token)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.FAILED_PRECONDITION:
                raise
            # An unlock without an answer is asked again, and was done the first time.
        self.recorder.say("released", request=request)


class Reader:
    """A thread that looks who holds a lock, by linearizable reads."""

    def __init__(self, folder, fleet, seed):
        self.recorder = Recorder(folder / "reader.jsonl")
        self.fleet, self.chance = fleet, random.Random(seed)
        self.stop_event = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def stop(self):
        self.stop_event.set()
        self.thread.join(60)
        self.recorder.close()

    def run(self):
        client = self.fleet.client()
        while not self.stop_event.wait(0.05):
            name, since = self.chance.choice(NAMES), now()
            try:
                lock = client.admin_call("Explain", admin_pb.ExplainRequest(name=name), 5).lock
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.NOT_FOUND:
                    continue
                lock = admin_pb.LockStatus()
            self.recorder.say("read", since=since, items=[{"name": name}],
                              holders=[holder.fencing_token for holder in lock.holders])


def writes(folder):
    """The storage's own list, in its order."""
    path = folder / "ledger.db"
    if not path.exists():
        return []
    with sqlite3.connect(path) as connection:
        rows = connection.execute(
            "SELECT at, resource, token, accepted FROM writes ORDER BY number")
        return [{"at": at, "kind": "write", "resource": resource, "token": token,
                 "accepted": accepted} for at, resource, token, accepted in rows]
