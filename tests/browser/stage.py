#!/usr/bin/python3
"""Real servers and people who use them, for tests in a browser. Obeys one JSON object a line on
its standard input, {"do": "lock", "name": "a", "as": "ann"}, and answers each with one line.

    stage.py [--members 3 | --token TOKEN] [flags of tenured]

The token is that of the people, where there are users.
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
SCENE_S = 600  # no scene is longer


class Person:
    """Somebody with a lease of his own."""

    def __init__(self, client, name, ttl_ms):
        self.client, self.name = client, name
        self.lease = client.lease(ttl_ms, client=name)

    def ask(self, name, mode, timeout_ms, note):
        """Without a timeout: for as long as the scene lasts."""
        timeout = SCENE_S if timeout_ms is None else TIMEOUT
        return self.client.lock(name, self.lease, timeout, owner=self.name, mode=MODES[mode],
                                metadata=note.encode(),
                                **({} if timeout_ms is None else {"timeout_ms": timeout_ms}))


class Stage:
    """What the commands do."""

    def __init__(self, nodes):
        self.nodes, self.people, self.traffic = nodes, {}, None
        self.stop_traffic = threading.Event()

    def person(self, name, ttl_ms=600_000):
        if name not in self.people:
            self.people[name] = Person(self.nodes.client(), name, ttl_ms)
        return self.people[name]

    def do_where(self, _):
        return {"http": self.nodes.addresses(), "leader": self.nodes.leader_address(),
                "secret": self.nodes.secret()}

    def do_lease(self, order):
        return {"lease": str(self.person(order["as"], order.get("ttl_ms", 600_000)).lease)}

    def do_lock(self, order):
        """Holds it when this returns."""
        who = self.person(order["as"])
        held = who.ask(order["name"], order.get("mode", "X"), order.get("timeout_ms", 20_000),
                       order.get("note", ""))
        return {"acquired": held.acquired, "token": str(held.fencing_token),
                "lease": str(who.lease)}

    def do_wait(self, order):
        """Waits in the queue when this returns, and goes on waiting."""
        who = self.person(order["as"])
        before = self.waiting()

        def wait():
            try:
                who.ask(order["name"], order.get("mode", "X"), None, order.get("note", ""))
            except Exception:  # pylint: disable=broad-except
                pass  # The scene is over.

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        eventually(lambda: self.waiting() > before or not thread.is_alive(), "it waits")
        return {"lease": str(who.lease)}

    def do_unlock(self, order):
        self.person(order["as"]).client.unlock(self.person(order["as"]).lease,
                                               int(order["token"]))
        return {}

    def do_revoke(self, order):
        who = self.people.pop(order["as"])
        who.client.locks.LeaseRevoke(lease_pb.LeaseRevokeRequest(id=who.lease), timeout=TIMEOUT)
        return {}

    def do_deadlock(self, order):
        """Two people, two locks, taken crosswise: the second one gives way."""
        first, second = order["people"]
        one, two = order["locks"]
        self.do_lock({"name": one, "as": first})
        held = self.do_lock({"name": two, "as": second})
        self.do_wait({"name": two, "as": first})
        answer = self.person(second).ask(one, "X", 20_000, "")
        if not order.get("stay"):
            self.do_unlock({"as": second, "token": held["token"]})
        return {"acquired": answer.acquired, "reason": int(answer.reason)}

    def do_many(self, order):
        """So many locks, each held by one of a few leases."""
        count, prefix = order["count"], order.get("prefix", "many/")
        leases = [self.person(f"batch {i}").lease for i in range(order.get("leases", 16))]
        client = self.nodes.client()
        for start in range(0, count, ITEMS_AT_ONCE):
            items = [item_pb.Item(name=f"{prefix}{i:06d}", mode=MODES["X"])
                     for i in range(start, min(count, start + ITEMS_AT_ONCE))]
            lease = leases[(start // ITEMS_AT_ONCE) % len(leases)]
            client.locks.Lock(lock_pb.LockRequest(items=items, lease_id=lease, owner="batch"),
                              timeout=TIMEOUT)
        return {}

    def do_traffic(self, order):
        """People who come and go until the scene is over."""
        def work(seed):
            chance = random.Random(seed)
            who = self.person(f"{order.get('who', 'worker')}-{seed}")
            while not self.stop_traffic.is_set():
                name = chance.choice(order["names"])
                mode = "S" if chance.random() < order.get("shared", 0.3) else "X"
                try:
                    held = who.ask(name, mode, 5_000, "")
                    self.stop_traffic.wait(chance.expovariate(1 / order.get("hold_s", 0.02)))
                    if held.acquired:
                        who.client.unlock(who.lease, held.fencing_token)
                except Exception:  # pylint: disable=broad-except
                    pass  # A server that is killed; the next one answers.
                self.stop_traffic.wait(chance.expovariate(1 / order.get("pause_s", 0.05)))
        for seed in range(order.get("people", 4)):
            threading.Thread(target=work, args=(seed,), daemon=True).start()
        return {}

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
    """One whose certificate vouches for itself."""

    def channel(self):
        certificate = self.flags[self.flags.index("--tls-cert") + 1]
        trusted = grpc.ssl_channel_credentials(pathlib.Path(certificate).read_bytes())
        return grpc.secure_channel(self.grpc_address, trusted)


class Alone:
    """One server."""

    def __init__(self, folder, flags, token=None):
        self.daemon = TlsDaemon(folder, *flags) if "--tls-cert" in flags else Daemon(folder, *flags)
        self.daemon.token = token
        self.daemon.start()
        if "--tls-cert" not in flags:  # That certificate vouches only for itself.
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
        """On the ports it had."""
        port = self.daemon.http_address.rsplit(":", 1)[1]
        self.daemon.flags = (*self.daemon.flags, "--listen-http", f"127.0.0.1:{port}",
                             "--listen-grpc", self.daemon.grpc_address)
        self.daemon.start()
        self.shared = None

    def close(self):
        if self.daemon.process.poll() is None:
            self.daemon.kill()


class Several:
    """A cluster."""

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
        """Of the leader."""
        return self.nodes.node(self.nodes.wait_for_leader()).secret()

    def kill(self, member):
        self.nodes.kill(member)

    def start(self, member):
        self.nodes.restart(member)


def obey(stage):
    """Until the input ends."""
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = {"ok": True, **getattr(stage, f"do_{order['do']}")(order)}
        except Exception as error:  # pylint: disable=broad-except
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    stage.stop_traffic.set()


def main(arguments):
    # An exit, so that the servers are ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if arguments[:1] == ["--members"]:
        with cluster.running(int(arguments[1]), *arguments[2:]) as nodes:
            obey(Stage(Several(nodes)))
        return
    with tempfile.TemporaryDirectory(prefix="tenured.") as folder:
        has_token = arguments[:1] == ["--token"]
        alone = (Alone(folder, arguments[2:], arguments[1]) if has_token
                 else Alone(folder, arguments))
        try:
            obey(Stage(alone))
        finally:
            alone.close()


if __name__ == "__main__":
    main(sys.argv[1:])
