#!/usr/bin/python3
"""A backup is older than the end of its cluster: what was granted after it must not be granted
twice when a new cluster begins with it, and what was released after it must not stay held."""

import json
import re
import shutil
import signal
import subprocess
import unittest

import harness  # first: adds tests/daemon to the path
import cluster
from daemon import Daemon, TIMEOUT, eventually, run, session_pb
from clients import Workload, create_ledger

TTL_MS = 2000


class Restoring(unittest.TestCase):
    def setUp(self):
        self.folder = harness.temporary_folder()
        self.addCleanup(harness.remove_folder, self.folder)
        self.address = f"127.0.0.1:{cluster.free_ports(1)[0]}"
        create_ledger(self.folder)

    def start(self, name):
        daemon = Daemon(self.folder / name, "--listen-grpc", self.address).start()
        self.addCleanup(lambda: daemon.process.poll() is None and daemon.kill())
        return daemon

    def begin_workloads(self):
        workloads = [Workload(self.folder, f"client{number}", f"tenure://{self.address}",
                              seed=number, workers=4, ttl_ms=TTL_MS, hold_ms=20)
                     for number in (1, 2)]
        for workload in workloads:
            self.addCleanup(lambda process=workload.process: process.poll() is None and
                            process.kill())
        return workloads

    def grants(self, workload):
        if not workload.history.exists():
            return 0
        return workload.history.read_text(encoding="utf-8").count('"granted"')

    def wait_for_grants(self, workloads, more=30):
        wanted = [self.grants(workload) + more for workload in workloads]
        eventually(lambda: all(self.grants(workload) >= count
                               for workload, count in zip(workloads, wanted)), "more grants")

    def violations(self, workloads):
        """Number of violations by property, as counted by the history checker."""
        lines = []
        for workload in workloads:
            lines += workload.history.read_text(encoding="utf-8").splitlines()
        path = self.folder / "all.jsonl"
        lines.sort(key=lambda line: json.loads(line)["at"])
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        checked = subprocess.run([str(harness.BUILD / "tests/tenure_history"), "check", str(path)],
                                capture_output=True, text=True, timeout=TIMEOUT, check=False)
        return dict(re.findall(r"violations of (.) (\d+)", checked.stdout)), checked.stdout

    def test_a_grant_after_the_backup_is_never_granted_twice(self):
        daemon = self.start("old")
        workloads = self.begin_workloads()
        self.wait_for_grants(workloads)
        daemon.kill()
        shutil.copytree(self.folder / "old", self.folder / "backup")
        daemon.start()
        self.wait_for_grants(workloads)
        daemon.kill()

        seeded = run("seed", "--from", str(self.folder / "backup"), "--longest-ttl",
                     f"{TTL_MS}ms", "--data-dir", str(self.folder / "new"))
        self.assertEqual(seeded.returncode, 0, seeded.stderr)
        self.start("new")
        self.wait_for_grants(workloads)
        for workload in workloads:
            workload.stop()

        found, report = self.violations(workloads)
        self.assertEqual(found["M"], "0", report)

    def execute(self, client, *operations):
        """Outcomes of these operations on one Session."""
        for number, operation in enumerate(operations):
            operation.id = number + 1
        requests = [session_pb.SessionRequest(hello=session_pb.Hello(client="test")),
                    session_pb.SessionRequest(operations=operations)]
        outcomes = {}
        for response in client.locks.Session(iter(requests), timeout=TIMEOUT):
            outcomes |= {outcome.id: outcome for outcome in response.outcomes}
        return [outcomes[operation.id] for operation in operations]

    def renew(self, *leases):
        return session_pb.Operation(renew_leases=session_pb.RenewLeases(ids=leases))

    def confirm(self, lease, *tokens):
        return session_pb.Operation(confirm_holds=session_pb.ConfirmHolds(
            lease_id=lease, fencing_tokens=tokens))

    def test_restored_holds_end_unless_their_client_confirms_them(self):
        daemon = self.start("old")
        client = daemon.client()
        leases = [client.lease(ttl_ms=60_000) for _ in range(3)]
        tokens = [client.lock(f"lock/{lease}", lease).fencing_token for lease in leases]
        client.close()
        daemon.kill()
        seeded = run("seed", "--from", str(self.folder / "old"), "--longest-ttl", "60s",
                     "--data-dir", str(self.folder / "new"))
        self.assertEqual(seeded.returncode, 0, seeded.stderr)
        client = self.start("new").client()
        self.addCleanup(client.close)

        renewed = self.execute(client, self.renew(*leases))[0].renewed
        self.assertEqual((list(renewed.ttl_ms), list(renewed.unconfirmed)), ([0, 0, 0], leases))
        # The first still holds its lock, the second has released it, the third holds one that was
        # granted after the backup.
        answers = self.execute(client, self.confirm(leases[0], tokens[0]), self.confirm(leases[1]),
                           self.confirm(leases[2], tokens[2], 4711), self.renew(*leases))

        self.assertEqual([list(answer.renewed.ttl_ms) for answer in answers],
                         [[60_000], [60_000], [0], [60_000, 60_000, 0]])
        self.assertEqual(client.status().holds, 1)
        self.assertFalse(client.try_lock(f"lock/{leases[1]}", leases[0]).acquired)

    def hold(self, name, ttl_ms):
        """Starts a process that holds this lock through the client library: (process, token)."""
        process = subprocess.Popen(
            [str(harness.BUILD / "tenure"), "lock", name, "--ttl", f"{ttl_ms}ms", "--url",
             f"tenure://{self.address}"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
        return process, int(re.search(r"fencing token (\d+)", process.stdout.readline())[1])

    def test_a_running_client_keeps_its_lock_through_a_restore(self):
        ttl_ms = 10_000  # Longer than it takes to stop, seed and start.
        daemon = self.start("old")
        alive, token = self.hold("alive", ttl_ms)
        gone, _ = self.hold("gone", ttl_ms)
        daemon.kill()
        shutil.copytree(self.folder / "old", self.folder / "backup")
        gone.kill()
        gone.wait()

        seeded = run("seed", "--from", str(self.folder / "backup"), "--longest-ttl",
                     f"{ttl_ms}ms", "--data-dir", str(self.folder / "new"))
        self.assertEqual(seeded.returncode, 0, seeded.stderr)
        daemon = self.start("new")
        client = daemon.client()
        self.addCleanup(client.close)
        # The grant waits until no client of the old cluster can hold the lock.
        self.assertTrue(client.lock("gone", client.lease()).acquired)

        holder, = json.loads(daemon.get("/v1/locks/alive")[1])["holders"]
        self.assertEqual(int(holder["token"]), token)
        self.assertFalse(client.try_lock("alive", client.lease()).acquired)
        self.assertIsNone(alive.poll())
        alive.send_signal(signal.SIGTERM)
        self.assertEqual(alive.wait(TIMEOUT), 0)
        self.assertGreater(client.lock("alive", client.lease()).fencing_token, token)

    def test_a_seed_without_holds_frees_all_locks_and_continues_the_tokens(self):
        daemon = self.start("old")
        client = daemon.client()
        token = client.lock("a", client.lease(ttl_ms=TTL_MS)).fencing_token
        client.close()
        daemon.kill()

        seeded = run("seed", "--without-holds", "--current", "--from", str(self.folder / "old"),
                     "--data-dir", str(self.folder / "new"))
        self.assertEqual(seeded.returncode, 0, seeded.stderr)
        self.assertIn(f"granted for {TTL_MS // 1000}s", seeded.stdout)
        client = self.start("new").client()
        self.addCleanup(client.close)

        self.assertEqual(client.status().holds, 0)
        self.assertFalse(client.try_lock("a", client.lease()).acquired)
        self.assertGreater(client.lock("a", client.lease()).fencing_token, token + 2**40)


if __name__ == "__main__":
    unittest.main()
