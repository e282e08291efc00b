#!/usr/bin/python3
"""Fixture of the browser tests: real servers and clients of their locks. It reads one command per
line from its standard input, {"do": "lock", "name": "a", "as": "ann"}, and writes one JSON reply
per command.

    fixture.py [--members 3 | --token TOKEN] [flags of tenured]

TOKEN authenticates the clients of a server with users.
"""

import json
import pathlib
import random
import signal
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "daemon"))
# pylint: disable=wrong-import-position
import grpc  # noqa: E402

import cluster  # noqa: E402
from daemon import (TIMEOUT, Daemon, admin_pb, eventually, item_pb, lease_pb,  # noqa: E402
                    lock_pb)

MODES = {"X": item_pb.MODE_EXCLUSIVE, "S": item_pb.MODE_SHARED}
ITEMS_AT_ONCE = 64
SESSION_S = 600  # upper bound for the duration of a test file


class LockClient:
    """A client with its own lease."""

    def __init__(self, client, name, ttl_ms):
        self.client, self.name = client, name
        self.lease = client.lease(ttl_ms, client=name)

    def acquire(self, name, mode, timeout_ms, note, owner=None):
        """Without `timeout_ms` it waits until the fixture ends."""
        timeout = SESSION_S if timeout_ms is None else TIMEOUT
        return self.client.lock(name, self.lease, timeout, owner=owner or self.name,
                                mode=MODES[mode],
                                metadata=note.encode(),
                                **({} if timeout_ms is None else {"timeout_ms": timeout_ms}))


class Fixture:
    """Commands of the fixture: do_NAME() handles {"do": "NAME"}."""

    def __init__(self, nodes):
        self.nodes, self.clients = nodes, {}
        self.stop_traffic = threading.Event()

    def client(self, name, ttl_ms=600_000):
        if name not in self.clients:
            self.clients[name] = LockClient(self.nodes.client(), name, ttl_ms)
        return self.clients[name]

    def do_where(self, _):
        return {"http": self.nodes.addresses(), "leader": self.nodes.leader_address(),
                "secret": self.nodes.secret()}

    def do_lease(self, order):
        return {"lease": str(self.client(order["as"], order.get("ttl_ms", 600_000)).lease)}

    def do_lock(self, order):
        """Acquires a lock and replies when it is held."""
        who = self.client(order["as"])
        held = who.acquire(order["name"], order.get("mode", "X"), order.get("timeout_ms", 20_000),
                           order.get("note", ""), order.get("owner"))
        return {"acquired": held.acquired, "token": str(held.fencing_token),
                "lease": str(who.lease)}

    def do_wait(self, order):
        """Replies when the request is in the wait queue, where it stays."""
        who = self.client(order["as"])
        before = self.waiting()

        def wait():
            try:
                who.acquire(order["name"], order.get("mode", "X"), None, order.get("note", ""))
            except Exception:  # pylint: disable=broad-except
                pass  # The server was stopped at the end of the test.

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        eventually(lambda: self.waiting() > before or not thread.is_alive(), "the request waits")
        return {"lease": str(who.lease)}

    def do_unlock(self, order):
        self.client(order["as"]).client.unlock(self.client(order["as"]).lease,
                                               int(order["token"]))
        return {}

    def do_revoke(self, order):
        who = self.clients.pop(order["as"])
        who.client.locks.LeaseRevoke(lease_pb.LeaseRevokeRequest(id=who.lease), timeout=TIMEOUT)
        return {}

    def do_deadlock(self, order):
        """Two clients acquire two locks in opposite order: the second client is the victim, which
        tries it `times` times."""
        first, second = order["clients"]
        one, two = order["locks"]
        self.do_lock({"name": one, "as": first})
        held = self.do_lock({"name": two, "as": second})
        self.do_wait({"name": two, "as": first})
        for _ in range(order.get("times", 1)):
            reply = self.client(second).acquire(one, "X", 20_000, "")
        if not order.get("stay"):
            self.do_unlock({"as": second, "token": held["token"]})
        return {"acquired": reply.acquired, "reason": int(reply.reason)}

    def do_many(self, order):
        """Acquires `count` locks, distributed over a few leases."""
        count, prefix = order["count"], order.get("prefix", "many/")
        leases = [self.client(f"batch {i}").lease for i in range(order.get("leases", 16))]
        client = self.nodes.client()
        for start in range(0, count, ITEMS_AT_ONCE):
            items = [item_pb.Item(name=f"{prefix}{i:06d}", mode=MODES["X"])
                     for i in range(start, min(count, start + ITEMS_AT_ONCE))]
            lease = leases[(start // ITEMS_AT_ONCE) % len(leases)]
            client.locks.Lock(lock_pb.LockRequest(items=items, lease_id=lease, owner="batch"),
                              timeout=TIMEOUT)
        return {}

    def do_traffic(self, order):
        """Starts clients that acquire and release locks until the fixture ends."""
        def work(seed):
            rng = random.Random(seed)
            who = self.client(f"{order.get('who', 'worker')}-{seed}")
            while not self.stop_traffic.is_set():
                name = rng.choice(order["names"])
                mode = "S" if rng.random() < order.get("shared", 0.3) else "X"
                try:
                    held = who.acquire(name, mode, 5_000, "")
                    self.stop_traffic.wait(rng.expovariate(1 / order.get("hold_s", 0.02)))
                    if held.acquired:
                        who.client.unlock(who.lease, held.fencing_token)
                except Exception:  # pylint: disable=broad-except
                    pass  # The server was killed; the next call reconnects.
                self.stop_traffic.wait(rng.expovariate(1 / order.get("pause_s", 0.05)))
        for seed in range(order.get("clients", 4)):
            threading.Thread(target=work, args=(seed,), daemon=True).start()
        return {}

    def do_join(self, order):
        """Starts a member that waits to be added to the cluster."""
        return self.nodes.join(order["member"])

    def do_force(self, order):
        client = self.nodes.client()
        client.admin.ForceRelease(admin_pb.ForceReleaseRequest(name=order["name"]),
                                  timeout=TIMEOUT)
        return {}

    def do_kill(self, order):
        self.nodes.kill(order.get("member"))
        return {}

    def do_start(self, order):
        self.nodes.start(order.get("member"))
        return {}

    def waiting(self):
        return self.nodes.client().status().waits


class TlsDaemon(Daemon):
    """A server with a self-signed certificate."""

    def channel(self):
        certificate = self.flags[self.flags.index("--tls-cert") + 1]
        trusted = grpc.ssl_channel_credentials(pathlib.Path(certificate).read_bytes())
        return grpc.secure_channel(self.grpc_address, trusted)


class SingleServer:
    """A server without a cluster."""

    def __init__(self, folder, flags, token=None):
        self.daemon = TlsDaemon(folder, *flags) if "--tls-cert" in flags else Daemon(folder, *flags)
        self.daemon.token = token
        self.daemon.start()
        if "--tls-cert" not in flags:  # The version check does not trust that certificate.
            self.daemon.wait_for_version(2)
        self.shared = None

    def client(self):
        self.shared = self.shared or self.daemon.client()
        return self.shared

    def addresses(self):
        return [self.daemon.http_address]

    def leader_address(self):
        return self.daemon.http_address

    def secret(self):
        return self.daemon.secret()

    def kill(self, _):
        self.daemon.kill()

    def start(self, _):
        """Restarts the server on its previous ports."""
        port = self.daemon.http_address.rsplit(":", 1)[1]
        self.daemon.flags = (*self.daemon.flags, "--listen-http", f"127.0.0.1:{port}",
                             "--listen-grpc", self.daemon.grpc_address)
        self.daemon.start()
        self.shared = None

    def close(self):
        if self.daemon.process.poll() is None:
            self.daemon.kill()


class ClusterServers:
    """A cluster of several members."""

    def __init__(self, nodes):
        self.nodes, self.shared = nodes, None

    def client(self):
        self.shared = self.shared or self.nodes.client()
        return self.shared

    def addresses(self):
        return [node.http_address for node in self.nodes.nodes.values()]

    def leader_address(self):
        return self.nodes.node(self.nodes.wait_for_leader()).http_address

    def secret(self):
        """Secret of the current leader."""
        return self.nodes.node(self.nodes.wait_for_leader()).secret()

    def kill(self, member):
        self.nodes.kill(member)

    def start(self, member):
        self.nodes.restart(member)

    def join(self, member):
        node = self.nodes.make(member)
        node.flags += ("--members", self.nodes.founders)
        node.switches += ("--join",)
        node.begin()
        return {"peer": node.peer_address, "client": node.grpc_address}


def serve_commands(fixture):
    """Executes commands until the input ends."""
    for line in sys.stdin:
        command = json.loads(line)
        try:
            reply = {"ok": True, **getattr(fixture, f"do_{command['do']}")(command)}
        except Exception as error:  # pylint: disable=broad-except
            reply = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)
    fixture.stop_traffic.set()


def main(arguments):
    # Exit through Python's cleanup, so that the servers are stopped as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if arguments[:1] == ["--members"]:
        with cluster.running(int(arguments[1]), *arguments[2:]) as nodes:
            serve_commands(Fixture(ClusterServers(nodes)))
        return
    with tempfile.TemporaryDirectory(prefix="tenured.") as folder:
        has_token = arguments[:1] == ["--token"]
        server = (SingleServer(folder, arguments[2:], arguments[1]) if has_token
                  else SingleServer(folder, arguments))
        try:
            serve_commands(Fixture(server))
        finally:
            server.close()


if __name__ == "__main__":
    main(sys.argv[1:])
