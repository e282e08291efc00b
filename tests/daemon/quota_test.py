#!/usr/bin/python3
"""Clients that ask for more than the server has memory for are refused, and what they hold can be
released. The server runs under a limit of its address space."""

import pathlib
import tempfile
import unittest

import grpc

from daemon import Daemon, run

LIMIT = 8 << 20
ADDRESS_SPACE = 2 << 30
RESIDENT_MAX = 256 << 20


class StateQuota(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def daemon_of_version_2(self):
        """A seeded state has the newest cluster version."""
        self.assertEqual(Daemon(self.folder / "old").start().stop(), 0)
        seeded = run("seed", "--from", str(self.folder / "old"), "--longest-ttl", "1ms",
                     "--data-dir", str(self.folder / "new"))
        self.assertEqual(seeded.returncode, 0, seeded.stderr)
        daemon = Daemon(self.folder / "new", "--limits-state-bytes-max", str(LIMIT))
        daemon.prefix = ("prlimit", f"--as={ADDRESS_SPACE}")
        daemon.start()
        self.addCleanup(lambda: daemon.process.poll() is None and daemon.kill())
        return daemon

    def fill(self, client):
        """The last hold before the server refuses: (lease, token)."""
        last = None
        for _ in range(1000):
            try:
                lease = client.lease()
                for number in range(100):
                    name = f"{lease}/{number}"
                    last = lease, client.lock(name, lease, metadata=b"m" * 4096).fencing_token
            except grpc.RpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED, error.details())
                self.assertIn("state_bytes_max", error.details())
                return last
        raise AssertionError("the server takes everything")

    def metric(self, daemon, name):
        page = daemon.get("/metrics")[1]
        return float(next(line.split()[1] for line in page.splitlines()
                          if line.startswith(name + " ")))

    def test_a_full_state_refuses_and_releases_make_room(self):
        daemon = self.daemon_of_version_2()
        clients = [daemon.client() for _ in range(3)]
        for client in clients:
            self.addCleanup(client.close)
        lease, token = [self.fill(client) for client in clients][0]

        self.assertEqual(self.metric(daemon, "tenure_state_bytes_limit"), LIMIT)
        used = self.metric(daemon, "tenure_state_bytes")
        self.assertLessEqual(used, LIMIT)
        self.assertGreater(used, LIMIT * 0.99)
        self.assertLess(self.metric(daemon, "process_resident_memory_bytes"), RESIDENT_MAX)

        daemon.kill()
        daemon.start()
        client = daemon.client()
        self.addCleanup(client.close)
        with self.assertRaises(grpc.RpcError):
            client.lock("more", lease, metadata=b"m" * 4096)
        client.unlock(lease, token)
        self.assertTrue(client.lock("more", lease).acquired)


if __name__ == "__main__":
    unittest.main()
