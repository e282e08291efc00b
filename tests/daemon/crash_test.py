#!/usr/bin/python3
"""Kills a real tenured with SIGKILL at random moments under load, restarts it, and checks that no
acknowledged change is lost.

    crash_test.py [--rounds 5] [--seed N]

Each worker has a lease and locks of its own and records what the server acknowledged. When the
server dies, at most one request per worker has an unknown outcome; the worker retries it with the
same request id. Pairs of workers also contend for a shared lock. The report contains the numbers of
operations, kills and violations.
"""

import argparse
import random
import sys
import tempfile
import threading
import time

import grpc

from daemon import Daemon, TIMEOUT, lease_pb, lock_pb

WORKERS = 8
LOCKS_PER_WORKER = 4
UNKNOWN = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


class Facts:
    """Maxima and violations over the replies to all workers; thread safe."""

    def __init__(self):
        self.mutex = threading.Lock()
        self.token_max = 0
        self.revision_max = 0
        self.operations = 0
        self.violations = []

    def violation(self, text):
        with self.mutex:
            self.violations.append(text)

    def answered(self, response, token=0):
        with self.mutex:
            self.operations += 1
            self.revision_max = max(self.revision_max, response.header.revision)
            self.token_max = max(self.token_max, token)


class Worker:
    """One client: its lease, its locks and their acknowledged state."""

    def __init__(self, number, facts, seed):
        self.number, self.facts = number, facts
        self.random = random.Random(f"{seed}/{number}")
        self.lease = 1_000_000 + number
        self.has_lease = False
        self.held = {}  # name -> token
        self.last_request = 0
        self.pending = None  # (kind, request) whose outcome is unknown
        self.shared = f"shared/{number // 2}"

    def names(self):
        return [f"own/{self.number}/{n}" for n in range(LOCKS_PER_WORKER)]

    def run(self, client, stop):
        """Works until the server dies or stop is requested."""
        self.client = client
        try:
            if self.pending:
                self.ask(*self.pending)
            while not stop.is_set():
                self.ask(*self.next_request())
        except grpc.RpcError as error:
            if error.code() not in UNKNOWN:
                self.facts.violation(f"worker {self.number}: {self.pending}: {error.code()} "
                                     f"{error.details()}")

    def next_request(self):
        self.last_request += 1
        if not self.has_lease:
            return "grant", lease_pb.LeaseGrantRequest(
                id=self.lease, request_id=self.last_request, ttl_ms=3_600_000,
                client=f"worker-{self.number}")
        name = self.random.choice([*self.names(), self.shared])
        if name in self.held:
            return "unlock", lock_pb.UnlockRequest(
                lease_id=self.lease, request_id=self.last_request,
                fencing_token=self.held[name])
        request = lock_pb.LockRequest(lease_id=self.lease, request_id=self.last_request, name=name)
        if name == self.shared:
            request.timeout_ms = self.random.choice([0, 1, 20])
        return "lock", request

    def ask(self, kind, request):
        """Sends a request; it stays `pending`, with an unknown outcome, until the reply arrives."""
        self.pending = (kind, request)
        if kind == "grant":
            response = self.client.locks.LeaseGrant(request, timeout=TIMEOUT)
            self.has_lease = True
            self.facts.answered(response)
        elif kind == "unlock":
            response = self.client.locks.Unlock(request, timeout=TIMEOUT)
            token = request.fencing_token
            self.held = {name: kept for name, kept in self.held.items() if kept != token}
            self.facts.answered(response)
        else:
            response = self.client.locks.Lock(request, timeout=TIMEOUT)
            if response.acquired:
                self.held[request.name] = response.fencing_token
            self.facts.answered(response, response.fencing_token)
        self.pending = None

    def check(self, client):
        """Compares the acknowledged holds with those of the server."""
        if not self.has_lease:
            return
        try:
            answer = client.locks.LeaseTimeToLive(
                lease_pb.LeaseTimeToLiveRequest(id=self.lease, keys=True), timeout=TIMEOUT)
        except grpc.RpcError as error:
            self.facts.violation(f"worker {self.number}: its lease is gone: {error.details()}")
            return
        held = {one.item.name: one.fencing_token for one in answer.held}
        unsure = set()
        if self.pending and self.pending[0] == "lock":
            unsure.add(self.pending[1].name)
        if self.pending and self.pending[0] == "unlock":
            unsure |= {name for name, token in self.held.items()
                       if token == self.pending[1].fencing_token}
        for name in {*held, *self.held} - unsure:
            if held.get(name) != self.held.get(name):
                self.facts.violation(f"worker {self.number}: {name} was acknowledged with token "
                                     f"{self.held.get(name)} and has {held.get(name)}")


def one_round(daemon, workers, facts, pause):
    """Load for `pause` seconds, then SIGKILL, then a new start and all checks."""
    stop = threading.Event()
    clients = [daemon.client() for _ in workers]
    threads = [threading.Thread(target=worker.run, args=(client, stop))
               for worker, client in zip(workers, clients)]
    for thread in threads:
        thread.start()
    time.sleep(pause)  # no wait for a condition: the moment of the kill varies
    daemon.kill()
    stop.set()
    for thread in threads:
        thread.join(TIMEOUT)
    for client in clients:
        client.close()
    daemon.start()
    client = daemon.client()
    if client.status().header.revision < facts.revision_max:
        facts.violation(f"revision {facts.revision_max} was acknowledged, now it is "
                        f"{client.status().header.revision}")
    for worker in workers:
        worker.check(client)
    probe = client.lock("probe", client.lease(ttl_ms=1000))
    if probe.acquired and probe.fencing_token <= facts.token_max:
        facts.violation(f"token {probe.fencing_token} after {facts.token_max}: it went back")
    client.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    chance = random.Random(options.seed)
    facts = Facts()
    workers = [Worker(number, facts, options.seed) for number in range(WORKERS)]
    with tempfile.TemporaryDirectory(prefix="tenured.") as folder:
        # Small segments and snapshots, so that some kills interrupt a change of them.
        daemon = Daemon(folder, "--raft-segment-bytes", "64KiB", "--raft-snapshot-bytes", "128KiB")
        daemon.start()
        for number in range(options.rounds):
            one_round(daemon, workers, facts, chance.uniform(0.02, 0.4))
            if facts.violations:
                break
            if sys.stdout.isatty():
                print(f"\r{number + 1}/{options.rounds} kills, {facts.operations} operations",
                      end="", flush=True)
        daemon.kill()
    print(f"\n{facts.operations} operations acknowledged, {options.rounds} kills, "
          f"{len(facts.violations)} violations")
    for violation in facts.violations:
        print(violation)
    if facts.operations < 20 * options.rounds:
        print("too few operations to mean anything")
        return 1
    return 1 if facts.violations else 0


if __name__ == "__main__":
    sys.exit(main())
