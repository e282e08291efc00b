#!/usr/bin/python3
"""Requests beyond the memory quota of the state are refused, and held locks can still be released.
The server runs with a limited address space."""

import pathlib
import tempfile
import unittest

import grpc

from auth_test import user
from daemon import Daemon, run

LIMIT = 8 << 20
SHARE = 1 << 20
ADDRESS_SPACE = 2 << 30
RESIDENT_MAX = 256 << 20


class StateQuota(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def daemon_of_version_2(self):
        """Starts on a seeded state, which has the newest cluster version."""
        self.assertEqual(Daemon(self.folder / "old").start().stop(), 0)
        seeded = run("seed", "--from", str(self.folder / "old"), "--longest-ttl", "1ms",
                     "--data-dir", str(self.folder / "new"))
        self.assertEqual(seeded.returncode, 0, seeded.stderr)
        daemon = Daemon(self.folder / "new", "--limits-state-bytes-max", str(LIMIT))
        daemon.prefix = ("prlimit", f"--as={ADDRESS_SPACE}")
        daemon.start()
        self.addCleanup(lambda: daemon.process.poll() is None and daemon.kill())
        return daemon

    def fill(self, client, limit="state_bytes_max"):
        """Fills the state up to this limit; (lease, token) of the last hold."""
        last = None
        for _ in range(1000):
            try:
                lease = client.lease()
                for number in range(100):
                    name = f"{lease}/{number}"
                    last = lease, client.lock(name, lease, metadata=b"m" * 4096).fencing_token
            except grpc.RpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED, error.details())
                self.assertIn(f"limits.{limit}", error.details())
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

    def test_a_user_that_filled_its_share_is_refused_and_another_user_goes_on(self):
        users = self.folder / "users.toml"
        users.write_text(user("ann", "a", {"": "lock"}) + user("bob", "b", {"": "lock"}),
                         encoding="utf-8")
        daemon = Daemon(self.folder / "store", "--auth-file", str(users),
                        "--limits-state-bytes-per-user-max", str(SHARE)).start()
        self.addCleanup(lambda: daemon.process.poll() is None and daemon.kill())
        daemon.wait_for_version(2, "a")  # Earlier versions do not store users.
        first, second, bob = (daemon.client(token) for token in ("a", "a", "b"))
        for client in (first, second, bob):
            self.addCleanup(client.close)

        lease, token = self.fill(first, "state_bytes_per_user_max")

        with self.assertRaises(grpc.RpcError) as caught:  # Same user, other connection.
            second.lock("more", second.lease(), metadata=b"m" * 4096)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        theirs = bob.lease()
        for number in range(10):
            self.assertTrue(bob.lock(f"bob/{number}", theirs, metadata=b"m" * 4096).acquired)
        first.unlock(lease, token)
        self.assertTrue(first.lock("after", lease).acquired)


if __name__ == "__main__":
    unittest.main()
