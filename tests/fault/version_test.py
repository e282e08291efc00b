#!/usr/bin/python3
"""Rolling upgrade and downgrade with two programs: tenured, and tenured_previous, whose newest
cluster version is one lower. Client processes use locks of every kind during the upgrade, and the
checker verifies their history."""

import os
import subprocess
import unittest

import grpc

from run import Run  # first: adds tests/daemon to the path
import cluster
import harness
from daemon import TIMEOUT, Daemon, admin_pb, eventually

SEED = int(os.environ.get("TENURE_SEED", "1"))
PREVIOUS = str(harness.BUILD / "tenured_previous")
LOWER = ("--cluster-version-max", "1")
CONFIGURATION = 78


def version(node):
    """Cluster version that the member uses; None if it does not reply."""
    seen = node.seen()
    return int(seen["cluster_version"]) if seen else None


def versions(nodes):
    return {member: version(node) for member, node in nodes.nodes.items()}


def wait_for_version(nodes, number):
    eventually(lambda: set(versions(nodes).values()) == {number}, f"all use version {number}")


def replace(nodes, member, program, *flags):
    """Stops a member gracefully and starts another program on its directory."""
    node = nodes.node(member)
    assert node.stop() == 0, f"member {member}: {node.lines[-3:]}"
    node.program = program
    before = {flag: value for flag, value in zip(node.flags[::2], node.flags[1::2])
              if flag != LOWER[0]}
    node.flags = tuple(word for flag in before.items() for word in flag) + flags
    nodes.restart(member)
    nodes.wait_until_healthy()


class RollingVersion(unittest.TestCase):
    def test_a_cluster_is_upgraded_and_downgraded_member_by_member(self):
        command = f"TENURE_SEED={SEED} /usr/bin/python3 {__file__} {self.id().split('.', 1)[1]}"
        run = Run(SEED, command=command)
        nodes = run.cluster
        for node in nodes.nodes.values():
            node.program = PREVIOUS
        with run:
            wait_for_version(nodes, 1)
            for member in nodes.nodes:
                self.assertEqual(set(versions(nodes).values()), {1})
                replace(nodes, member, None)
            wait_for_version(nodes, 2)
            run.note("upgraded")

            replace(nodes, 2, None, *LOWER)
            wait_for_version(nodes, 1)
            for member in nodes.nodes:
                replace(nodes, member, PREVIOUS)
            wait_for_version(nodes, 1)
            report = run.finish()
        print(report.text(), flush=True)
        self.assertGreater(report.kinds["granted"], 50)
        self.assertEqual(report.failures.get("lease_lost", 0), 0, report.failures)

    def test_a_member_with_an_older_program_is_not_added(self):
        with cluster.running() as nodes:
            wait_for_version(nodes, 2)
            node = nodes.make(4)
            node.program = PREVIOUS
            node.flags += ("--members", nodes.founders)
            node.switches += ("--join",)
            node.begin()
            self.addCleanup(lambda: node.is_running() and node.kill())

            with self.assertRaises(grpc.RpcError) as refused:
                nodes.client().admin_call("MemberAdd", admin_pb.MemberAddRequest(
                    id=4, peer_address=node.peer_address, client_address=node.grpc_address))

            self.assertEqual(refused.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn("newest cluster version is 1", refused.exception.details())
            self.assertTrue(node.is_running())


class OlderProgram(unittest.TestCase):
    def setUp(self):
        self.folder = harness.temporary_folder()
        self.addCleanup(harness.remove_folder, self.folder)
        self.daemon = Daemon(self.folder / "store")

    def start(self, program=None, *flags):
        self.daemon.program, self.daemon.flags = program, flags
        self.daemon.start()
        self.addCleanup(lambda: self.daemon.process.poll() is None and self.daemon.kill())
        return self.daemon.client()

    def refused(self):
        ended = subprocess.run([PREVIOUS, "--data-dir", str(self.daemon.folder), "--listen-grpc",
                                "127.0.0.1:0", "--listen-http", "off"], capture_output=True,
                               text=True, timeout=TIMEOUT, check=False)
        self.assertEqual(ended.returncode, CONFIGURATION, ended.stderr)
        self.assertIn("a newer program wrote this folder", ended.stderr)
        self.assertIn("cluster.version_max", ended.stderr)

    def test_a_newer_log_is_refused(self):
        client = self.start()
        client.lease()
        self.daemon.kill()
        self.refused()

    def test_a_newer_snapshot_is_refused(self):
        client = self.start()
        client.lease()
        self.assertEqual(self.daemon.stop(), 0)
        self.refused()

    def test_an_older_program_reads_a_directory_whose_version_was_lowered(self):

        client = self.start()
        lease = client.lease()
        token = client.lock("a", lease).fencing_token
        self.assertEqual(self.daemon.stop(), 0)
        self.start(None, *LOWER)
        self.assertEqual(self.daemon.stop(), 0)

        client = self.start(PREVIOUS)

        self.assertEqual([lock.name for lock in client.admin.List(
            admin_pb.ListRequest(), timeout=TIMEOUT).locks], ["a"])
        client.unlock(lease, token)
        self.assertGreater(client.lock("a", lease, request_id=77).fencing_token, token)


if __name__ == "__main__":
    unittest.main()
