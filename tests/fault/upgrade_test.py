#!/usr/bin/python3
"""Data directories of earlier versions (tests/fixtures): an upgrade keeps all of their state.
`upgrade_test.py --make` writes a fixture of this version."""

import json
import pathlib
import subprocess
import sys
import tarfile
import unittest

import harness  # first: adds tests/daemon to the path
import cluster
from daemon import HOME, TIMEOUT, Daemon, admin_pb, eventually, lease_pb, lock_pb, tenured_path

FIXTURES = HOME / "tests/fixtures"
FLAGS = ("--raft-segment-bytes", "64KiB")
DAY_MS = 86_400_000


def make():
    """A store with a snapshot and a log after it: holders of every kind, a queue, leases."""
    folder = harness.temporary_folder()
    daemon = Daemon(folder / "store", *FLAGS).start()
    client = daemon.client()
    leases = [client.lease(ttl_ms=DAY_MS, id=number, request_id=1) for number in (11, 12, 13)]
    client.lock("before/the/snapshot", leases[0], request_id=1, metadata=b"note")
    client.lock("shared", leases[0], request_id=2, mode=3)
    client.lock("shared", leases[1], request_id=1, mode=3)
    client.admin.Snapshot(admin_pb.SnapshotRequest(), timeout=TIMEOUT)
    client.lock("after/the/snapshot", leases[1], request_id=2)
    waiting = client.locks.Lock.future(lock_pb.LockRequest(
        name="after/the/snapshot", lease_id=leases[2], request_id=1), timeout=TIMEOUT)
    eventually(lambda: client.status().waits == 1, "one request waits")
    seen = state_of(client)
    daemon.kill()
    waiting.cancel()
    (folder / "store" / "LOCK").unlink(missing_ok=True)
    with tarfile.open(FIXTURES / "store_v1.tar.gz", "w:gz") as archive:
        archive.add(folder / "store", "store")
    (FIXTURES / "store_v1.json").write_text(json.dumps(seen, indent=1) + "\n", encoding="utf-8")
    harness.remove_folder(folder)


def state_of(client):
    locks = client.admin.List(admin_pb.ListRequest(), timeout=TIMEOUT).locks
    leases = client.locks.Leases(lease_pb.LeasesRequest(), timeout=TIMEOUT).leases
    return {"holders": {lock.name: [[holder.lease_id, holder.fencing_token,
                                     holder.metadata.decode()] for holder in lock.holders]
                        for lock in locks},
            "waiters": {lock.name: lock.waiter_count for lock in locks if lock.waiter_count},
            "leases": [lease.id for lease in leases]}


class Upgrade(unittest.TestCase):
    def setUp(self):
        self.folder = harness.temporary_folder()
        self.addCleanup(harness.remove_folder, self.folder)
        with tarfile.open(FIXTURES / "store_v1.tar.gz") as archive:
            archive.extractall(self.folder)
        self.seen = json.loads((FIXTURES / "store_v1.json").read_text(encoding="utf-8"))

    def test_a_directory_of_version_1_keeps_all_of_its_state(self):
        daemon = Daemon(self.folder / "store", *FLAGS).start()
        self.addCleanup(daemon.kill)
        client = daemon.client()

        self.assertEqual(state_of(client), self.seen)
        # Tokens continue to grow, and the waiter is next.
        tokens = [holder[1] for lock in self.seen["holders"].values() for holder in lock]
        waiting = client.locks.Lock.future(lock_pb.LockRequest(
            name="after/the/snapshot", lease_id=13, request_id=1), timeout=TIMEOUT)
        client.unlock(12, self.seen["holders"]["after/the/snapshot"][0][1])
        self.assertGreater(waiting.result().fencing_token, max(tokens))

    def test_a_directory_of_version_1_becomes_a_cluster(self):
        nodes = cluster.Cluster(self.folder / "nodes", 3)
        self.addCleanup(nodes.end)
        for node in nodes.nodes.values():
            subprocess.run([tenured_path(), "seed", "--current", "--from",
                            str(self.folder / "store"), "--data-dir", str(node.folder),
                            *node.flags], check=True,
                           capture_output=True, timeout=TIMEOUT)
        nodes.start()

        client = nodes.node(nodes.wait_for_leader()).client()
        self.assertEqual(state_of(client), self.seen)

    def test_a_directory_of_a_newer_version_is_refused(self):
        identity = self.folder / "store/identity"
        identity.write_text(identity.read_text(encoding="utf-8").replace("tenure 1", "tenure 2"),
                            encoding="utf-8")
        before = {path: path.read_bytes() for path in pathlib.Path(self.folder).rglob("*")
                  if path.is_file()}

        ended = subprocess.run([tenured_path(), "--data-dir", str(self.folder / "store"),
                                "--listen-grpc", "127.0.0.1:0", "--listen-http", "off"],
                               capture_output=True, text=True, timeout=TIMEOUT, check=False)

        self.assertEqual(ended.returncode, 74)
        self.assertIn("format 2", ended.stderr)
        self.assertEqual({path: path.read_bytes() for path in before}, before)


if __name__ == "__main__":
    if sys.argv[1:] == ["--make"]:
        make()
    else:
        unittest.main()
