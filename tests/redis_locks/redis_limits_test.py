#!/usr/bin/python3
"""Demonstrates the limits of redis:// that docs/guarantees.md documents. In each test the client
that lost the lock is notified, and the other client has the newer token."""

import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

HOME = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(HOME / "tests/cli"))

from command import TIMEOUT, eventually, tenure_path  # noqa: E402

TTL_S = 30
STEP_MS = 60_000
IDLE_MS = 120_000
WALL = 2 * 8  # where the preloaded library looks for the step of the wall clock


def start_redis(folder, faults):
    """Starts a redis-server whose clock can be moved; returns it and its port. Another process may
    take the port first; then another port is tried."""
    for _ in range(5):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        server = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir",
             folder], stdout=subprocess.DEVNULL,
            env=os.environ | {"LD_PRELOAD": os.environ["TENURE_PRELOAD"],
                              "TENURE_FAULT_FILE": str(faults)})
        deadline = time.monotonic() + TIMEOUT
        while server.poll() is None and time.monotonic() < deadline:
            if redis_cli(port, "ping") == "PONG":
                return server, port
        server.kill()
        server.wait()
    raise AssertionError("redis-server does not start")


def redis_cli(port, *words):
    return subprocess.run(["redis-cli", "-p", str(port), *words], capture_output=True, text=True,
                          timeout=TIMEOUT, check=False).stdout.strip()


class RedisLimits(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="redis_limits.")
        self.addCleanup(self.folder.cleanup)
        self.faults = pathlib.Path(self.folder.name) / "faults"
        self.faults.write_bytes(bytes(64))
        self.redis, self.port = start_redis(self.folder.name, self.faults)
        self.addCleanup(self.redis.wait)
        self.addCleanup(self.redis.kill)

    def step_clock(self, offset_ms):
        """Sets the difference between the server's wall clock and the real one."""
        with open(self.faults, "r+b") as file:
            file.seek(WALL)
            file.write(struct.pack("q", offset_ms))

    def hold(self):
        """Starts a process that holds the lock until it is lost; returns it and its token."""
        holder = subprocess.Popen(
            [tenure_path(), "run", "report", "--url", f"redis://127.0.0.1:{self.port}", "--ttl",
             f"{TTL_S}s", "--", "sh", "-c", "echo $TENURE_TOKEN; exec sleep 600"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(self.end, holder)
        return holder, int(holder.stdout.readline())

    @staticmethod
    def end(holder):
        if holder.poll() is None:
            holder.send_signal(signal.SIGTERM)
            holder.wait(TIMEOUT)

    def token_of_second_client(self):
        """Token of a second client; None if the lock is not available."""
        second = subprocess.run(
            [tenure_path(), "run", "--no-wait", "report", "--url",
             f"redis://127.0.0.1:{self.port}", "--", "sh", "-c", "echo $TENURE_TOKEN"],
            capture_output=True, text=True, timeout=TIMEOUT, check=False)
        return int(second.stdout) if second.returncode == 0 else None

    def check_overlap(self, began, holder, token):
        second = self.token_of_second_client()
        self.assertIsNotNone(second, "the second client has the lock")
        self.assertLess(time.monotonic() - began, TTL_S, "during the lease of the first client")
        self.assertGreater(second, token)
        eventually(lambda: holder.poll() is not None, "the first client is notified")
        self.assertEqual(holder.returncode, 79)

    def test_a_step_of_the_clock_gives_the_lock_to_a_second_client(self):
        began = time.monotonic()
        holder, token = self.hold()
        self.assertIsNone(self.token_of_second_client())

        self.step_clock(STEP_MS)
        self.check_overlap(began, holder, token)

    def test_tokens_of_an_idle_lock_grow_though_the_clock_steps_back(self):
        """The record of the lock has expired, so only the last token of all locks is known."""
        first = self.token_of_second_client()
        self.step_clock(IDLE_MS)
        eventually(lambda: redis_cli(self.port, "exists", "{tenure:report}") == "0",
                   "the record of the lock expires")

        self.step_clock(-IDLE_MS)
        second = self.token_of_second_client()

        self.assertGreater(second, first)

    def test_flushall_gives_the_lock_to_a_second_client_and_the_first_is_notified(self):
        began = time.monotonic()
        holder, token = self.hold()
        self.assertIsNone(self.token_of_second_client())

        self.assertEqual(redis_cli(self.port, "flushall"), "OK")
        self.check_overlap(began, holder, token)


if __name__ == "__main__":
    unittest.main()
