#!/usr/bin/python3
"""Failover of a cluster of three real members, seen by Python and C++ clients: the leader is
killed, paused, stopped, or transfers its leadership."""

import os
import subprocess
import threading
import unittest

import grpc

import cluster
from daemon import HOME, TIMEOUT, admin_pb, eventually, lease_pb, watch_pb


class Failover(unittest.TestCase):
    def setUp(self):
        self.context = cluster.running()
        self.nodes = self.context.__enter__()
        self.addCleanup(self.context.__exit__, None, None, None)
        self.client = self.nodes.client()

    def wait_in_queue(self, name, lease):
        """Starts a Lock call in a thread and returns when it is in the wait queue."""
        answers = []
        waiter = self.nodes.client()
        before = self.waits()
        thread = threading.Thread(target=lambda: answers.append(waiter.lock(name, lease)))
        thread.start()
        eventually(lambda: self.waits() == before + 1, "the wait is queued")
        return thread, answers

    def waits(self):
        return self.nodes.node(self.nodes.wait_for_leader()).client().status().waits

    # 002.103, 002.108
    def test_a_lock_and_a_wait_survive_a_crash_of_the_leader(self):
        one, two = self.client.lease(), self.client.lease()
        held = self.client.lock("a", one)
        thread, answers = self.wait_in_queue("a", two)
        dead = self.nodes.wait_for_leader()

        self.nodes.kill(dead)
        self.nodes.wait_for_leader(but=dead)
        self.client.unlock(one, held.fencing_token)
        thread.join(TIMEOUT)

        self.assertTrue(answers[0].acquired)
        self.assertGreater(answers[0].fencing_token, held.fencing_token)
        self.nodes.restart(dead)
        eventually(lambda: self.nodes.node(dead).seen() is not None, "the restarted member replies")
        self.assertFalse(self.client.try_lock("a", one).acquired)

    # 002.103, 002.104: a paused leader can neither renew, expire nor grant.
    def test_clients_leave_a_hanging_leader_which_then_decides_nothing(self):
        lease = self.client.lease(ttl_ms=5000)
        held = self.client.lock("a", lease)
        hung = self.nodes.wait_for_leader()

        self.nodes.pause(hung)
        other = self.nodes.wait_for_leader(but=hung)
        self.assertEqual(self.client.renew(lease), 5000)
        self.nodes.resume(hung)
        eventually(lambda: (self.nodes.node(hung).seen() or {}).get("leader") == str(other),
                   "it follows")

        self.assertEqual(self.client.renew(lease), 5000)
        self.client.unlock(lease, held.fencing_token)

    # 002.109: a minority grants nothing and renews nothing.
    def test_a_leader_without_a_majority_acknowledges_nothing(self):
        lease = self.client.lease()
        leader = self.nodes.wait_for_leader()
        alone = self.nodes.node(leader).client()
        for follower in self.nodes.followers():
            self.nodes.kill(follower)

        for call in (lambda: alone.try_lock("a", lease, request_id=1),
                     lambda: next(alone.locks.LeaseKeepAlive(
                         iter([lease_pb.LeaseKeepAliveRequest(id=lease)]), timeout=TIMEOUT))):
            with self.assertRaises(grpc.RpcError) as caught:
                call()
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        eventually(lambda: self.nodes.node(leader).get("/readyz")[0] == 503, "it is not ready")
        self.assertEqual(self.nodes.node(leader).get("/healthz")[0], 200)

    # 002.106
    def test_a_watch_resumes_at_the_next_leader_without_gap_or_duplicate(self):
        lease = self.client.lease()
        seen = []

        def watch():
            start = 0
            while len(seen) < 20:
                leader = self.nodes.node(self.nodes.wait_for_leader()).client()
                create = watch_pb.WatchCreate(key="w", start_revision=start)
                stop = threading.Event()

                def requests():
                    yield watch_pb.WatchRequest(create=create)
                    stop.wait(TIMEOUT)

                try:
                    for answer in leader.locks.Watch(requests(), timeout=TIMEOUT):
                        if answer.created and start == 0:
                            start = answer.header.revision + 1
                            begun.set()
                        for event in answer.events:
                            seen.append(event.revision)
                            start = event.revision + 1
                        if len(seen) >= 20:
                            break
                except grpc.RpcError as error:
                    assert error.code() == grpc.StatusCode.UNAVAILABLE, error
                finally:
                    stop.set()

        begun = threading.Event()
        watcher = threading.Thread(target=watch)
        watcher.start()
        begun.wait(TIMEOUT)
        for round_ in range(10):
            held = self.client.lock("w", lease)
            self.client.unlock(lease, held.fencing_token)
            if round_ in (3, 6):
                self.nodes.transfer()
        watcher.join(TIMEOUT)

        self.assertEqual(len(seen), 20)
        self.assertEqual(seen, sorted(set(seen)))

    def test_leadership_is_transferred_to_a_chosen_member_and_back(self):
        for wanted in (2, 3, 1, 2):
            if self.nodes.wait_for_leader() == wanted:
                continue
            self.nodes.transfer(wanted)
            eventually(lambda: self.nodes.leader() == wanted, f"{wanted} leads")
            lease = self.client.lease()
            self.assertTrue(self.client.lock("a", lease).acquired)
            self.client.lock_call("LeaseRevoke", lease_pb.LeaseRevokeRequest(id=lease))

    def test_a_clean_stop_of_the_leader_transfers_leadership(self):
        lease = self.client.lease()
        held = self.client.lock("a", lease)
        leader = self.nodes.wait_for_leader()

        code = self.nodes.stop(leader)

        self.assertEqual(code, 0)
        self.client.unlock(lease, held.fencing_token)

    def test_followers_name_the_leader_and_serve_stale_reads(self):
        lease = self.client.lease()
        self.client.lock("a", lease)
        leader = self.nodes.node(self.nodes.wait_for_leader())
        for member in self.nodes.followers():
            follower = self.nodes.node(member).client()
            with self.assertRaises(grpc.RpcError) as caught:
                follower.lease()
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
            named = dict(caught.exception.trailing_metadata())
            self.assertEqual(named["tenure-leader"], leader.grpc_address)
            self.assertEqual(named["tenure-leader-id"], str(leader.member))
            eventually(lambda: [lock.name for lock in follower.admin.List(
                admin_pb.ListRequest(stale=True), timeout=TIMEOUT).locks] == ["a"], "it is there")
            self.assertEqual(self.nodes.node(member).get("/readyz")[0], 200)
            self.assertEqual(self.nodes.node(member).get("/v1/locks")[0], 503)

    def test_the_example_follows_the_leader(self):
        hold = subprocess.Popen(
            ["/usr/bin/python3", str(HOME / "examples/python/hold.py"), "example", "--seconds", "3",
             "--server", ",".join(self.nodes.addresses())], stdout=subprocess.PIPE, text=True)
        self.addCleanup(hold.stdout.close)
        self.assertRegex(hold.stdout.readline(), "is held, fencing token")

        dead = self.nodes.wait_for_leader()
        self.nodes.kill(dead)

        self.assertIn("is released", hold.communicate(timeout=TIMEOUT)[0])
        self.assertEqual(hold.returncode, 0)


class CppClient(unittest.TestCase):
    """An application with the C++ library sees a higher latency and no errors during a failover."""

    def setUp(self):
        self.context = cluster.running()
        self.nodes = self.context.__enter__()
        self.addCleanup(self.context.__exit__, None, None, None)
        path = os.environ.get("TENURE_CYCLER", str(HOME / "build/dev/tests/tenure_cycler"))
        url = self.nodes.url("?request_timeout=10s")  # the machine may be busy
        self.cycler = subprocess.Popen([path, url, "8"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.cycler.stdout.close)
        self.assertEqual(self.cycler.stdout.readline(), "running\n")

    def check(self):
        output = self.cycler.communicate(timeout=2 * TIMEOUT)[0]
        print(output.strip())
        seen = dict(pair.split("=", 1) for pair in output.split(" problem=")[0].split())
        self.assertGreater(int(seen["cycles"]), 0, output)
        for nothing in ("errors", "backwards", "gaps"):
            self.assertEqual(seen[nothing], "0", output)
        self.assertEqual(seen["kept"], "1", output)
        self.assertLess(int(seen["longest_ms"]), 10_000, output)  # a third of the TTL

    # 002.103, 002.106, 002.108
    def test_the_client_sees_no_error_when_leaders_crash(self):
        for _ in range(2):
            dead = self.nodes.wait_for_leader()
            self.nodes.kill(dead)
            self.nodes.wait_for_leader(but=dead)
            self.nodes.restart(dead)
            eventually(lambda: self.nodes.node(dead).seen() is not None, "the member replies")
        self.check()

    def test_the_client_sees_no_error_when_a_leader_hangs(self):
        hung = self.nodes.wait_for_leader()
        self.nodes.pause(hung)
        self.nodes.wait_for_leader(but=hung)
        self.nodes.resume(hung)
        self.check()

    def test_the_client_sees_no_error_when_leadership_is_transferred(self):
        for _ in range(5):
            before = self.nodes.wait_for_leader()
            self.nodes.transfer()
            self.nodes.wait_for_leader(but=before)
        self.check()


class Members(unittest.TestCase):
    def setUp(self):
        self.context = cluster.running()
        self.nodes = self.context.__enter__()
        self.addCleanup(self.context.__exit__, None, None, None)

    def test_a_member_is_added_and_a_failed_member_replaced(self):
        client = self.nodes.client()
        lease = client.lease()
        held = client.lock("a", lease)

        self.nodes.add(4)
        dead = self.nodes.followers()[0]
        self.nodes.kill(dead)
        self.nodes.remove(dead)

        members = self.nodes.members()
        self.assertEqual(set(members), {1, 2, 3, 4} - {dead})
        self.assertTrue(all(member.is_voter for member in members.values()))
        self.assertEqual(sum(member.is_leader for member in members.values()), 1)
        client.unlock(lease, held.fencing_token)

    def test_the_removal_of_one_of_three_members_is_refused(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.nodes.remove(self.nodes.followers()[0])
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)

    # 002.030
    def test_every_member_shows_the_cluster(self):
        leader = self.nodes.wait_for_leader()
        for node in self.nodes.nodes.values():
            eventually(lambda: node.seen()["leader"] == str(leader), "it knows the leader")
            seen = node.seen()
            self.assertEqual([member["member"] for member in seen["members"]], ["1", "2", "3"])
            self.assertEqual(seen["leader_address"], self.nodes.node(leader).grpc_address)
            status = node.client().status()
            self.assertEqual(status.leader_address, seen["leader_address"])
            self.assertEqual(len(status.members), 3)
            self.assertEqual(status.header.member_id, node.member)
            self.assertEqual(status.header.raft_term, status.term)


if __name__ == "__main__":
    unittest.main()
