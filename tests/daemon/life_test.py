#!/usr/bin/python3
"""Start and stop of a real tenured: exit codes, a clean stop, a damaged log, a full disk."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import grpc

from daemon import Daemon, TIMEOUT, eventually, lease_pb, lock_pb, run


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tenured."))
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, *flags):
        daemon = Daemon(self.folder, *flags).start()
        self.addCleanup(lambda: daemon.process.poll() is None and daemon.kill())
        return daemon

    def refusal(self, *flags, folder=None):
        """(exit code, error) of a tenured that does not start."""
        daemon = Daemon(folder or self.folder, *flags)
        daemon.spawn()
        why = daemon.wait_for_event("cannot_start")["error"]
        return daemon.reap(), why


class Life(Folder):
    # 002.107: locks, leases, queues and revisions survive a restart.
    def test_a_clean_stop_answers_waiters_and_the_next_start_has_everything(self):
        daemon = self.start()
        client = daemon.client()
        holder, waiter = client.lease(), client.lease()
        held = client.lock("a", holder)
        waiting = client.locks.Lock.future(
            lock_pb.LockRequest(name="a", lease_id=waiter, request_id=5), timeout=TIMEOUT)
        eventually(lambda: client.status().waits == 1, "it waits")
        revision = client.status().header.revision

        self.assertEqual(daemon.stop(), 0)

        self.assertEqual(waiting.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual([line["event"] for line in daemon.lines][-1], "stopped")
        client = self.start().client()
        status = client.status()
        self.assertGreater(status.snapshot_index, 0)
        self.assertGreaterEqual(status.header.revision, revision)
        self.assertEqual((status.locks, status.waits, status.leases), (1, 1, 2))
        # A retry of the request has its old queue position.
        retry = client.locks.Lock.future(
            lock_pb.LockRequest(name="a", lease_id=waiter, request_id=5), timeout=TIMEOUT)
        client.unlock(holder, held.fencing_token)
        self.assertTrue(retry.result().acquired)
        # 002.108
        self.assertGreater(retry.result().fencing_token, held.fencing_token)

    # 002-B23: downtime of the server does not count.
    def test_a_restart_never_shortens_a_lease(self):
        daemon = self.start()
        client = daemon.client()
        lease = client.lease(ttl_ms=60_000)
        daemon.kill()

        client = self.start().client()

        leases = client.locks.Leases(lease_pb.LeasesRequest(),
                                     timeout=TIMEOUT).leases
        self.assertEqual([one.id for one in leases], [lease])
        self.assertGreater(leases[0].left_ms, 50_000)

    def test_sockets_of_the_daemon_are_close_on_exec(self):
        daemon = self.start()
        client = daemon.client()
        client.status()
        sockets = 0
        for link in pathlib.Path(f"/proc/{daemon.process.pid}/fd").iterdir():
            if not str(link.readlink()).startswith("socket:"):
                continue
            sockets += 1
            status = (link.parent.parent / "fdinfo" / link.name).read_text()
            flags = int(status.split("flags:")[1].split()[0], 8)
            self.assertTrue(flags & os.O_CLOEXEC, f"descriptor {link.name}")
        self.assertGreaterEqual(sockets, 3, "two listeners and a connection")

    def test_two_daemons_never_share_a_folder(self):
        self.start()

        code, why = self.refusal()

        self.assertEqual(code, 74)
        self.assertIn(str(self.folder), why)

    def test_a_folder_of_another_cluster_is_refused(self):
        self.start().stop()

        code, why = self.refusal("--cluster-id", "12345")

        self.assertEqual(code, 74)
        self.assertIn("12345", why)

    def test_a_port_in_use_is_refused_by_name(self):
        other = self.start()
        with tempfile.TemporaryDirectory() as folder:
            code, why = self.refusal("--listen-grpc", other.grpc_address, folder=folder)
        self.assertEqual(code, 69)
        self.assertIn(other.grpc_address, why)

    def test_the_environment_sets_what_no_flag_sets(self):
        daemon = Daemon(self.folder)
        daemon.prefix = ("env", "TENURE_NODE_NAME=blue", "TENURE_NODE_DATA_DIR=/proc/none",
                         "TENURE_DATA_DIR=/proc/none")
        self.addCleanup(daemon.start().kill)

        self.assertIn('"name":"blue"', daemon.get("/v1/status")[1])
        self.assertIn("TENURE_DATA_DIR: unknown variable, ignored; did you mean "
                      "TENURE_NODE_DATA_DIR?",
                      [line["warning"] for line in daemon.lines
                       if line["event"] == "configuration_warning"])

    def test_invalid_flags_and_files_have_distinct_exit_codes(self):
        self.assertEqual(run("--no-such-flag").returncode, 64)
        config = self.folder / "wrong.toml"
        config.write_text("[node]\ndata_dirr = 'x'\n", encoding="utf-8")
        wrong = run("--config", str(config))
        self.assertEqual(wrong.returncode, 78)
        self.assertIn("wrong.toml:2", wrong.stderr)
        self.assertIn("data_dir", wrong.stderr)
        public = run("--data-dir", str(self.folder / "x"), "--listen-grpc", "0.0.0.0:0")
        self.assertEqual(public.returncode, 78)
        self.assertIn("--insecure", public.stderr)


class Damage(Folder):
    """Damage to the log that a disk or a power failure can cause."""

    def setUp(self):
        super().setUp()
        daemon = self.start("--raft-segment-bytes", "64KiB")
        client = daemon.client()
        self.lease = client.lease()
        self.tokens = [client.lock(f"lock/{number}", self.lease).fencing_token
                       for number in range(100)]
        daemon.kill()
        self.segment = max(self.folder.glob("log-*"), key=self.bytes_used)

    @staticmethod
    def bytes_used(path):
        return len(path.read_bytes().rstrip(b"\0"))

    def lose_end(self, size):
        content = bytearray(self.segment.read_bytes())
        end = self.bytes_used(self.segment)
        content[end - size:end] = bytes(size)
        self.segment.write_bytes(content)

    def refused(self, *names):
        """The start fails with the documented exit code, and the error contains these words."""
        code, why = self.refusal("--raft-segment-bytes", "64KiB")
        self.assertEqual(code, 74)
        for name in names:
            self.assertIn(name, why)

    def test_a_torn_tail_is_cut_and_named(self):
        # A write that a power failure interrupted before its sync was recorded.
        self.lose_end(10)
        (self.folder / "durable_end").unlink()

        daemon = self.start("--raft-segment-bytes", "64KiB")

        self.assertEqual(daemon.client().status().holds, 99)
        named = [line for line in daemon.lines if self.segment.name in str(line)]
        self.assertTrue(named, daemon.lines)

    def test_an_acknowledged_end_that_is_lost_is_refused_by_name(self):
        self.lose_end(10)

        self.refused(self.segment.name, "backup")

    def test_a_truncated_log_is_refused_by_name(self):
        content = self.segment.read_bytes()
        self.segment.write_bytes(content[:self.bytes_used(self.segment) - 3])

        self.refused(self.segment.name)

    def test_a_vote_with_one_damaged_copy_is_restored_and_named(self):
        vote = self.folder / "vote"
        whole = vote.read_bytes()
        vote.write_bytes(bytes(4096) + whole[4096:])

        daemon = self.start("--raft-segment-bytes", "64KiB")

        self.assertEqual(daemon.client().status().holds, 100)
        self.assertIn("vote_file_repaired", [line["event"] for line in daemon.lines])
        daemon.kill()
        restored = vote.read_bytes()
        self.assertEqual(restored[:4096], restored[4096:])

    def test_a_vote_without_a_good_copy_is_refused_by_name(self):
        (self.folder / "vote").write_bytes(bytes(8192))

        self.refused("vote", "join again")

    def test_a_flipped_bit_in_acknowledged_entries_is_refused_by_name(self):
        content = bytearray(self.segment.read_bytes())
        content[self.bytes_used(self.segment) // 2] ^= 0x10
        self.segment.write_bytes(content)

        self.refused(self.segment.name)


class FullDisk(unittest.TestCase):
    """A small real file system without free space."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tenured."))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs",
                                  str(self.folder)], capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest(f"no small file system: {mounted.stderr.decode()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(self.folder)], check=False)

    def test_a_full_disk_refuses_locks_until_there_is_space(self):
        ballast = self.folder / "ballast"
        daemon = Daemon(self.folder / "store", "--raft-segment-bytes", "64KiB",
                        "--raft-snapshot-bytes", "1GiB").start()
        self.addCleanup(lambda: daemon.process.poll() is None and daemon.kill())
        client = daemon.client()
        lease = client.lease()
        ballast.write_bytes(b"x" * (1024 * 1024 - 64 * 1024 * 6))
        tokens = []
        # The server frees space by snapshots as long as a snapshot fits.
        while daemon.get("/readyz")[0] == 200:
            try:
                while True:
                    held = client.lock(f"lock/{len(tokens)}", lease, metadata=b"m" * 1000)
                    tokens.append(held.fencing_token)
            except grpc.RpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
                self.assertIn("full", error.details())
        # No acknowledged lock is lost, and reads and releases still succeed.
        self.assertEqual(client.status().holds, len(tokens))
        client.unlock(lease, tokens[0])

        ballast.unlink()

        eventually(lambda: daemon.get("/readyz")[0] == 200, "there is space again")
        self.assertTrue(client.lock("later", lease).acquired)
        daemon.kill()
        again = Daemon(self.folder / "store", "--raft-segment-bytes", "64KiB").start()
        self.assertEqual(again.client().status().holds, len(tokens))
        again.kill()


if __name__ == "__main__":
    unittest.main()
