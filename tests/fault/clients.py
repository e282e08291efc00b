"""Clients of a cluster under fault injection: processes of tenure_workload, and gRPC clients for
what the C++ library does not offer: key ranges and linearizable reads of the holders."""

import contextlib
import json
import random
import sqlite3
import subprocess
import threading
import time

import grpc

from daemon import admin_pb, item_pb, lease_pb
from harness import BUILD, FaultFile, fault_environment

NAMES = ["chaos/m0", "chaos/m1", "chaos/m2", "chaos/r0", "chaos/r1"]
SPACE = "chaos/k0"


def now():
    """Clock of the history: CLOCK_BOOTTIME in microseconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class Recorder:
    """Appends events to a history file, unbuffered. Thread safe: each line is one write()."""

    def __init__(self, path):
        self.file = open(path, "ab", buffering=0)

    def record(self, kind, **fields):
        fields = {"at": now()} | fields | {"kind": kind}
        self.file.write((json.dumps(fields) + "\n").encode())

    def close(self):
        self.file.close()


def create_ledger(folder):
    """Creates the storage of all workloads. It sets WAL mode before any workload starts: SQLite
    rejects one of two concurrent mode changes without waiting for the busy timeout."""
    with contextlib.closing(sqlite3.connect(folder / "ledger.db")) as ledger:
        ledger.execute("PRAGMA journal_mode = WAL")


class Workload:
    """One process of tenure_workload."""

    def __init__(self, folder, name, url, **options):
        self.name, self.history = name, folder / f"{name}.jsonl"
        self.faults = FaultFile(folder / f"{name}.faults")
        flags = {"--url": url, "--name": name, "--history": self.history,
                 "--ledger": folder / "ledger.db"}
        flags |= {"--" + option.replace("_", "-"): value for option, value in options.items()}
        with open(folder / f"{name}.log", "wb") as log:
            self.process = subprocess.Popen(
                [*fault_environment(self.faults), str(BUILD / "tests/tenure_workload"),
                 *(str(word) for pair in flags.items() for word in pair)],
                stdout=subprocess.DEVNULL, stderr=log)

    def stop(self, timeout=60):
        self.process.terminate()
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the workload {self.name} does not stop") from None


class RangeClient:
    """A thread that locks key ranges over gRPC and renews its lease like the client library: the
    lease counts from before the last confirmed renewal was sent."""

    def __init__(self, folder, harness, number, seed, ttl_ms):
        self.id = f"range_client{number}"
        self.recorder = Recorder(folder / f"{self.id}.jsonl")
        self.cluster, self.ttl_ms = harness, ttl_ms
        self.random = random.Random(seed)
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

    def valid_until(self, sent):
        return sent + self.ttl_ms * 1000 * 99 // 100 - 2000

    def keep_lease(self):
        client = self.cluster.client()
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
                self.until = max(self.until, self.valid_until(sent))
                self.recorder.record("renewed", owner=self.owner(), until=self.until)

    def run(self):
        client = self.cluster.client()
        while not self.stop_event.wait(self.random.uniform(0, 0.03)):
            try:
                self.lock_range(client)
            except grpc.RpcError as error:
                self.abandon_lease(error)

    def abandon_lease(self, error):
        """Abandons the lease and its holds; it is no longer renewed."""
        if self.lease:
            self.recorder.record("lost", owner=self.owner(), why=str(error.code()))
        self.lease = 0

    def lock_range(self, client):
        if not self.lease:
            sent = now()
            self.lease = client.lease(ttl_ms=self.ttl_ms, client=self.id)
            self.until = self.valid_until(sent)
            self.recorder.record("renewed", owner=self.owner(), until=self.until)
        self.requests += 1
        request = f"{self.id}-{self.requests}"
        start = self.random.randrange(8)
        end = start + self.random.randrange(1, 4)
        mode, name = self.random.choice([(item_pb.MODE_SHARED, "S"),
                                         (item_pb.MODE_EXCLUSIVE, "X")])
        keys = {"start": f"{start:02}", "end": f"{end:02}"}
        item = item_pb.Item(name=SPACE, keys=item_pb.Keys(mode=mode, range=item_pb.Range(
            start=keys["start"].encode(), end=keys["end"].encode())))
        self.recorder.record("invoke", client=self.id, owner=self.owner(), request=request,
                          items=[{"name": SPACE, "mode": name, **keys}])
        try:
            held = client.lock("", self.lease, items=[item], metadata=request.encode(),
                               request_id=self.requests, timeout=60)
        except grpc.RpcError as error:
            self.recorder.record("failed", request=request, why=str(error.code()))
            raise
        if not held.acquired:
            self.recorder.record("failed", request=request, why="refused")
            return
        self.recorder.record("granted", request=request, token=held.fencing_token, until=self.until)
        self.stop_event.wait(self.random.uniform(0, 0.02))
        self.recorder.record("release", request=request)
        try:
            client.unlock(self.lease, held.fencing_token)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.FAILED_PRECONDITION:
                raise
            # A retry of an unlock whose first attempt succeeded but whose reply was lost.
        self.recorder.record("released", request=request)


class Reader:
    """A thread that reads the holders of locks with linearizable reads."""

    def __init__(self, folder, harness, seed):
        self.recorder = Recorder(folder / "reader.jsonl")
        self.cluster, self.random = harness, random.Random(seed)
        self.stop_event = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def stop(self):
        self.stop_event.set()
        self.thread.join(60)
        self.recorder.close()

    def run(self):
        client = self.cluster.client()
        while not self.stop_event.wait(0.05):
            name, since = self.random.choice(NAMES), now()
            try:
                lock = client.admin_call("Explain", admin_pb.ExplainRequest(name=name), 5).lock
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.NOT_FOUND:
                    continue
                lock = admin_pb.LockStatus()
            self.recorder.record("read", since=since, items=[{"name": name}],
                              holders=[holder.fencing_token for holder in lock.holders])


def writes(folder):
    """Writes recorded by the storage, in its order."""
    path = folder / "ledger.db"
    if not path.exists():
        return []
    with sqlite3.connect(path) as connection:
        rows = connection.execute(
            "SELECT at, resource, token, accepted FROM writes ORDER BY number")
        return [{"at": at, "kind": "write", "resource": resource, "token": token,
                 "accepted": accepted} for at, resource, token, accepted in rows]
