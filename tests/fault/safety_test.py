#!/usr/bin/python3
"""Guarantees of a lease on a cluster of real processes: no member ends it early, a deposed leader
does not renew it, and acknowledged commands survive. Each test makes the calls one at a time."""

import signal
import subprocess
import time
import unittest

import grpc

import harness  # first: adds tests/daemon to the path
import cluster
from daemon import TIMEOUT, admin_pb, eventually, lease_pb, lock_pb


class Safety(unittest.TestCase):
    def start(self, size=3, *flags):
        folder = harness.temporary_folder()
        self.addCleanup(harness.remove_folder, folder)
        nodes = harness.ClusterHarness(folder, size, *flags, net="plain")
        self.addCleanup(nodes.end)
        nodes.start()
        nodes.wait_until_healthy()
        return nodes

    def holders(self, client, name):
        answer = client.admin_call("Explain", admin_pb.ExplainRequest(name=name))
        return [holder.fencing_token for holder in answer.lock.holders]

    # 002.103, 002.104: the clients send requests while the leader is paused, so that it processes
    # them after SIGCONT, before it can learn about the new leader.
    def test_a_resumed_leader_neither_renews_nor_grants_nor_releases(self):
        nodes = self.start()
        client = nodes.client()
        lease, other = client.lease(ttl_ms=60_000), client.lease(ttl_ms=60_000)
        held = client.lock("a", lease)
        old = nodes.wait_for_leader()
        direct = nodes.node(old).client()
        direct.status()  # connected
        nodes.pause(old)
        asked = [
            direct.locks.TryLock.future(lock_pb.TryLockRequest(
                name="b", lease_id=other, request_id=7), timeout=TIMEOUT),
            direct.locks.Unlock.future(lock_pb.UnlockRequest(
                lease_id=lease, fencing_token=held.fencing_token, request_id=8), timeout=TIMEOUT),
            direct.locks.LeaseGrant.future(lease_pb.LeaseGrantRequest(
                ttl_ms=60_000, id=4711, request_id=9), timeout=TIMEOUT)]
        renewal = direct.locks.LeaseKeepAlive(
            iter([lease_pb.LeaseKeepAliveRequest(id=lease)]), timeout=TIMEOUT)
        leader = nodes.wait_for_leader(but=old)

        nodes.resume(old)

        for call in asked:
            error = call.exception(TIMEOUT)
            self.assertIsNotNone(error, f"{old} replied although {leader} is the leader, "
                                        f"{error or (call.result(), nodes.node(old).lines)}")

            self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE)
        with self.assertRaises(grpc.RpcError) as caught:
            next(renewal)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(self.holders(client, "a"), [held.fencing_token])
        self.assertTrue(client.try_lock("b", lease).acquired)

    # The leader was paused beyond the end of a lease that the new leader has renewed.
    def test_a_resumed_leader_does_not_expire_a_renewed_lease(self):
        nodes = self.start()
        client = nodes.client()
        lease = client.lease(ttl_ms=2000)
        held = client.lock("a", lease)
        old = nodes.wait_for_leader()
        nodes.pause(old)
        # Directly to the new leader: detecting that the old one is paused takes much of the TTL.
        client = cluster.FollowingClient(
            [nodes.node(nodes.wait_for_leader(but=old)).grpc_address])
        end = time.monotonic() + 3
        while time.monotonic() < end:
            self.assertEqual(client.renew(lease), 2000)
            time.sleep(0.1)  # renewal interval

        nodes.resume(old)

        eventually(lambda: (nodes.node(old).seen() or {}).get("role") == "follower",
                   "the old leader is a follower")
        self.assertEqual(client.renew(lease), 2000)
        self.assertEqual(self.holders(client, "a"), [held.fencing_token])

    # NTP may slow CLOCK_BOOTTIME down by 8 %. `tenure run` is paused, so that only its watchdog can
    # end the command; by the slow clock it would do so 0.14 s after the lease.
    def test_a_clock_that_ntp_slows_down_does_not_let_a_command_outlive_the_lease(self):
        nodes = self.start()
        faults = harness.FaultFile(nodes.folder / "run.faults")
        faults.set(steer_ppm=-80_000)
        log = nodes.folder / "lines"
        writing = f"while :; do echo first >>{log}; sleep 0.01; done"
        tenure = [str(harness.BUILD / "tenure"), "--url", nodes.url(), "run", "steered"]
        slow = subprocess.Popen([*harness.fault_environment(faults), *tenure, "--ttl", "3s", "--",
                                 "sh", "-c", writing])
        self.addCleanup(slow.wait)
        self.addCleanup(slow.kill)
        eventually(log.exists, "the command writes")

        slow.send_signal(signal.SIGSTOP)
        subprocess.run([*tenure, "--wait", "30s", "--", "sh", "-c", f"echo next >>{log}"],
                       check=True, timeout=TIMEOUT)

        lines = log.read_text(encoding="utf-8").splitlines()
        self.assertIn("first", lines)
        self.assertEqual(lines[-1], "next")

    # 002-B23
    def test_a_time_without_a_leader_does_not_shorten_a_lease(self):
        nodes = self.start()
        client = nodes.client()
        lease, other = client.lease(ttl_ms=2000), client.lease(ttl_ms=60_000)
        held = client.lock("a", lease)
        for member in nodes.nodes:
            nodes.kill(member)
        time.sleep(3)  # longer than the lease; no member runs

        for member in nodes.nodes:
            nodes.restart(member)
        nodes.wait_for_leader()

        self.assertFalse(client.try_lock("a", other).acquired)
        self.assertEqual(client.renew(lease), 2000)
        self.assertEqual(self.holders(client, "a"), [held.fencing_token])

    # 002.107, 002.108
    def acknowledged_survive(self, size, killed):
        nodes = self.start(size)
        client = nodes.client()
        lease = client.lease()
        tokens = {}
        for number in range(60):
            name = f"lock/{number:02}"
            tokens[name] = client.lock(name, lease).fencing_token
            if number % 20 == 10:
                # Right after a reply, so that a killed member had no time to replicate more.
                dead = [nodes.wait_for_leader()]
                nodes.kill(dead[0])
                while len(dead) < killed:
                    dead.append(next(one for one in nodes.running()))
                    nodes.kill(dead[-1])
                nodes.wait_for_leader()
                for member in dead:
                    nodes.restart(member)
                nodes.wait_until_healthy()

        answer = client.admin_call("List", admin_pb.ListRequest(prefix="lock/"))

        self.assertEqual({lock.name: lock.holders[0].fencing_token for lock in answer.locks},
                         tokens)
        self.assertEqual(sorted(tokens.values()), list(tokens.values()))
        nodes.wait_until_equal()

    def test_acknowledged_grants_survive_the_crash_of_one_of_three(self):
        self.acknowledged_survive(3, 1)

    def test_acknowledged_grants_survive_the_crash_of_two_of_five(self):
        self.acknowledged_survive(5, 2)

    # 002.107: also if all members crash at once.
    def test_acknowledged_grants_survive_the_crash_of_all_members(self):
        nodes = self.start()
        client = nodes.client()
        lease = client.lease()
        tokens = [client.lock(f"lock/{number}", lease).fencing_token for number in range(30)]
        for member in nodes.nodes:
            nodes.kill(member)
        for member in nodes.nodes:
            nodes.restart(member)
        nodes.wait_for_leader()

        answer = client.admin_call("List", admin_pb.ListRequest(prefix="lock/"))

        self.assertEqual(sorted(lock.holders[0].fencing_token for lock in answer.locks), tokens)


if __name__ == "__main__":
    unittest.main()
