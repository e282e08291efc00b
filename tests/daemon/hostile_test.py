#!/usr/bin/python3
"""Attacks on a real server, for a few seconds, while another client takes locks."""

import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

import grpc

import cluster
import raw_h2
from daemon import HOME, TIMEOUT, Client, eventually, running
from tls_test import Authority

FLOOD_SECONDS = 10
HANDSHAKES_PER_SECOND = 2000


def begin_flood(*arguments):
    """A process of tests/daemon/flood.cpp."""
    path = os.environ.get("TENURE_FLOOD", str(HOME / "build/dev/tests/tenure_flood"))
    return subprocess.Popen([path, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def result_of(flood):
    """Waits for the end of a flood and returns its counters."""
    return json.loads(flood.communicate(timeout=FLOOD_SECONDS + TIMEOUT)[0])


def resident_bytes(daemon):
    for line in pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def counter(daemon, labels):
    """The value of the counter with these labels; 0 if it does not exist."""
    for line in daemon.get("/metrics")[1].splitlines():
        if f"{{{labels}}}" in line:
            return float(line.split()[-1])
    return 0


def percentile_99(times):
    return sorted(times)[int(len(times) * 0.99) - 1]


class Memory(unittest.TestCase):
    # Regression: 270 KB of calls to an unknown path produced 227 MiB of unread refusals.
    def test_unread_refusals_use_little_memory(self):
        with running() as daemon:
            client = daemon.client()
            lease = client.lease()
            idle = resident_bytes(daemon)
            attackers = []
            for _ in range(4):
                raw = raw_h2.connect(daemon.grpc_address, receive_bytes=4096)
                attackers.append(raw)
                calls = raw_h2.Calls(b"/" + b"%" * 3900)
                flood = b"".join(calls.begin(raw_h2.END_HEADERS | raw_h2.END_STREAM)
                                 for _ in range(20_000))
                raw.setblocking(False)
                try:
                    raw.send(flood)
                except BlockingIOError:
                    pass  # The server stopped reading.
            most = 0
            for number in range(300):
                held = client.lock(f"lock/{number}", lease)
                self.assertTrue(held.acquired)
                client.unlock(lease, held.fencing_token)
                most = max(most, resident_bytes(daemon))
            self.assertGreater(counter(daemon, 'limit="refusals"'), 1000)
            self.assertGreater(counter(daemon, 'code="UNIMPLEMENTED",method="unknown"'), 1000)
            self.assertLess(most - idle, 64 << 20)
            for raw in attackers:
                raw.close()


class Flood(unittest.TestCase):
    """A cluster that uses TLS on all ports, while clients flood the leader. The members must still
    receive heartbeats, and locks must still be granted.

    The flood starts 2000 handshakes per second. A machine with two cores and 11 other runnable
    processes reached 1388 per second on the gRPC port, beside the resets and three
    members (p99 of a lock 57 ms), and 1998 on the port of the members (p99 17 ms)."""

    MEMBERS = (1, 2, 3)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(folder.cleanup)
        self.authority = Authority(folder.name, "ours")
        self.authority.sign("server")
        self.peers = Authority(folder.name, "peers")
        self.nodes = cluster.Cluster(pathlib.Path(folder.name), len(self.MEMBERS),
                                     "--tls-cert", self.authority.path("server.pem"),
                                     "--tls-key", self.authority.path("server.key"))
        for member in self.MEMBERS:
            node = self.nodes.node(member)
            node.http_address = node.http_address.replace("http:", "https:")
            node.authority = self.authority.path("ca.pem")
            self.peers.sign(f"member{member}", member)
            self.nodes.node(member).flags += (
                "--peer-tls-cert", self.peers.path(f"member{member}.pem"),
                "--peer-tls-key", self.peers.path(f"member{member}.key"),
                "--peer-tls-ca", self.peers.path("ca.pem"))
        self.addCleanup(self.nodes.end)
        self.nodes.start()
        self.leader = self.nodes.node(self.nodes.wait_for_leader())
        credentials = grpc.ssl_channel_credentials(self.authority.read("ca.pem"))
        channel = grpc.secure_channel(self.leader.grpc_address, credentials)
        self.addCleanup(channel.close)
        self.client = Client(channel)
        self.lease = self.client.lease()
        end = time.monotonic() + 0.5
        self.usual = percentile_99(self.lock_until(lambda: time.monotonic() > end))

    def begin_flood(self, *arguments):
        flood = begin_flood(*arguments)
        self.addCleanup(lambda: flood.poll() is None and flood.kill())
        return flood

    def lock_until(self, is_over):
        """Acquires a lock in a loop and returns the latency of each acquire."""
        times = []
        while not is_over() or len(times) < 100:
            began = time.monotonic()
            held = self.client.lock("a", self.lease)
            times.append(time.monotonic() - began)
            self.assertTrue(held.acquired)
            self.client.unlock(self.lease, held.fencing_token)
        return times

    def lock_during(self, *floods):
        """Locks while these floods run. The leader, its term and the low latency must persist."""
        term = self.client.status().header.raft_term
        times = self.lock_until(lambda: all(flood.poll() is not None for flood in floods))
        self.assertEqual(self.client.status().header.raft_term, term)
        # Waits, because a flood of the HTTPS port uses up the handshakes of its last second.
        self.assertEqual(self.nodes.wait_for_leader(), self.leader.member)
        # Relative to the latency without a flood, because the machine may be busy.
        self.assertLess(percentile_99(times), max(0.1, 10 * self.usual))

    def assert_rate(self, flood):
        """A machine that is busy with other work reaches less than the intended rate: 463 per
        second with a load of 13. It must reach a tenth, twice the limit on the members' port."""
        self.assertGreaterEqual(flood["attempts"] / flood["seconds"], HANDSHAKES_PER_SECOND / 10,
                                flood)

    def rejections(self, limit):
        return counter(self.leader, f'limit="{limit}"')

    def test_handshakes_and_resets_disturb_neither_the_leader_nor_its_clients(self):
        handshakes = self.begin_flood("handshakes", self.leader.grpc_address, FLOOD_SECONDS,
                                      HANDSHAKES_PER_SECOND, "h2")
        resets = self.begin_flood("resets", self.leader.grpc_address, FLOOD_SECONDS)
        self.lock_during(handshakes, resets)
        attempted, reset = result_of(handshakes), result_of(resets)

        self.assert_rate(attempted)
        self.assertGreater(attempted["answered"], 0)
        if attempted["answered"] < attempted["attempts"] / 2:
            self.assertGreater(self.rejections("tls_handshakes"), 0)
        self.assertGreater(reset["resets"], 0)
        self.assertGreater(reset["disconnections"], 0)

    # Regression: without a limit, each handshake used the thread of Raft.
    def test_handshakes_on_the_port_of_the_members_disturb_neither_the_leader_nor_its_clients(self):
        flood = self.begin_flood("handshakes", self.leader.peer_address, FLOOD_SECONDS,
                                 HANDSHAKES_PER_SECOND, "h2")
        # The flood uses other addresses than the members, so a member can reconnect during it.
        follower = self.nodes.node(next(one for one in self.MEMBERS if one != self.leader.member))
        follower.kill()
        follower.start()
        self.lock_during(flood)
        attempted = result_of(flood)

        self.assert_rate(attempted)
        self.assertGreater(attempted["answered"], 0)
        self.assertGreater(self.rejections("peer_tls_handshakes"), 0)
        eventually(lambda: follower.get("/readyz")[0] == 200, "the follower is ready")

    def test_handshakes_on_the_https_port_disturb_neither_the_leader_nor_its_clients(self):
        flood = self.begin_flood("handshakes", self.leader.http_address.removeprefix("https://"),
                                 FLOOD_SECONDS, HANDSHAKES_PER_SECOND, "http/1.1")
        self.lock_during(flood)
        attempted = result_of(flood)

        self.assert_rate(attempted)
        self.assertGreater(attempted["answered"], 0)
        if attempted["answered"] < attempted["attempts"] / 2:
            self.assertGreater(self.rejections("http_tls_handshakes"), 0)


if __name__ == "__main__":
    unittest.main()
