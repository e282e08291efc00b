#!/usr/bin/python3
"""tenured with the system call filter of its systemd unit, and its calls without a filter."""

import hashlib
import pathlib
import re
import signal
import ssl
import subprocess
import tempfile
import unittest
import urllib.request

import grpc

import cluster
from daemon import HOME, TIMEOUT, Bearer, Client, Daemon, admin_pb, eventually
from tls_test import Authority

UNIT = HOME / "packaging/tenured.service"
FILTER = HOME / "tests/package/unit_filter.py"


def allow_list():
    shown = subprocess.run([FILTER, UNIT], capture_output=True, text=True, check=True).stdout
    return set(shown.split())


def take_snapshot(client):
    return client.admin.Snapshot(admin_pb.SnapshotRequest(), timeout=TIMEOUT).index


class Sandbox(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *flags, prefix=()):
        daemon = Daemon(self.folder / "store", *flags)
        daemon.prefix = prefix
        daemon.start()
        self.addCleanup(lambda: daemon.process.poll() is None and daemon.kill())
        return daemon

    def traced(self):
        """A command prefix that counts system calls, and a function that waits for their names.
        strace -D leaves tenured the child of the test, and ends soon after tenured."""
        output = self.folder / "calls"

        def calls():
            eventually(lambda: output.exists() and "100.00" in output.read_text(),
                       "the summary of strace")
            rows = re.findall(r"^ *[0-9.]+ .* (\w+)$", output.read_text(), re.M)
            return set(rows) - {"total", "syscall"}

        return ("strace", "-D", "-f", "-c", "-o", str(output)), calls

    def check_life(self, *options):
        """Starts under the filter, locks, takes a snapshot, stops, and starts again."""
        prefix = (str(FILTER), *options, str(UNIT))
        daemon = self.start(prefix=prefix)
        client = daemon.client()
        held = client.lock("a", client.lease())
        self.assertGreater(take_snapshot(client), 0)
        self.assertTrue(client.lock("b", client.lease()).acquired)
        client.close()
        self.assertEqual(daemon.stop(), 0, daemon.lines)

        again = self.start(prefix=prefix)
        client = again.client()
        self.addCleanup(client.close)
        self.assertEqual(client.status().holds, 2)
        self.assertGreater(client.lock("c", client.lease()).fencing_token, held.fencing_token)
        self.assertEqual(again.stop(), 0, again.lines)

    def test_snapshots_and_stops_work_under_the_filter_of_the_unit(self):
        self.check_life()

    def test_a_refused_priority_does_not_stop_a_snapshot(self):
        self.check_life("--deny", "setpriority")

    def test_the_unit_refuses_calls_with_an_error_instead_of_a_signal(self):
        self.assertIn("\nSystemCallErrorNumber=EPERM\n", UNIT.read_text(encoding="utf-8"))
        refused = subprocess.run(
            [FILTER, UNIT, "/usr/bin/python3", "-c", "import os; os.chroot('/')"],
            capture_output=True, text=True, timeout=TIMEOUT, check=False)
        self.assertIn("PermissionError: [Errno 1]", refused.stderr)
        self.assertEqual(refused.returncode, 1)

    def test_a_node_with_tls_and_users_makes_only_allowed_calls(self):
        ours = Authority(self.folder, "ours")
        ours.sign("server")
        users = self.folder / "users.toml"
        users.write_text(f'[users.ann]\ntokens = ["sha256:{hashlib.sha256(b"t").hexdigest()}"]\n'
                         'rights = { "" = "admin" }\n', encoding="utf-8")
        prefix, calls = self.traced()
        daemon = self.start("--tls-cert", ours.path("server.pem"), "--tls-key",
                            ours.path("server.key"), "--auth-file", str(users), prefix=prefix)
        channel = grpc.secure_channel(daemon.grpc_address,
                                      grpc.ssl_channel_credentials(ours.read("ca.pem")))
        client = Client(grpc.intercept_channel(channel, Bearer("t")))
        self.addCleanup(channel.close)
        self.assertTrue(client.lock("a", client.lease()).acquired)
        self.assertGreater(take_snapshot(client), 0)
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for_event("auth_reloaded")
        context = ssl.create_default_context(cafile=ours.path("ca.pem"))
        asked = urllib.request.Request(daemon.http_address + "/v1/locks",
                                       headers={"Authorization": "Bearer t"})
        with urllib.request.urlopen(asked, timeout=TIMEOUT, context=context) as answer:
            self.assertIn('"a"', answer.read().decode())
        self.assertEqual(daemon.stop(), 0)

        used = calls()
        # Guard against an empty trace.
        self.assertLessEqual({"fdatasync", "accept", "setpriority"}, used)
        self.assertEqual(used - allow_list(), set())

    def test_a_member_of_a_cluster_makes_only_allowed_calls(self):
        prefix, calls = self.traced()
        members = cluster.Cluster(self.folder, 3)
        members.node(1).prefix = prefix
        self.addCleanup(members.end)
        members.start()
        client = members.client()
        self.assertTrue(client.lock("a", client.lease()).acquired)
        if members.leader() != 1:
            members.transfer(1)
            members.wait_for_leader()
        self.assertTrue(client.lock("b", client.lease()).acquired)
        self.assertGreater(take_snapshot(members.node(1).client()), 0)
        self.assertEqual(members.stop(1), 0)

        used = calls()
        self.assertLessEqual({"fdatasync", "connect", "accept"}, used)
        self.assertEqual(used - allow_list(), set())


if __name__ == "__main__":
    unittest.main()
