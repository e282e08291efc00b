#!/usr/bin/python3
"""A cluster of three real members on loopback: bootstrap from one member list, election, loss of
the leader, and rejection of invalid configurations before anything is written."""

import json
import pathlib
import socket
import tempfile
import unittest

from cluster import free_ports
from daemon import Daemon, eventually, run
from tls_test import Authority


class Cluster:
    """Members with their files in one folder; `more(id)` returns further flags of a member."""

    def __init__(self, folder, ids=(1, 2, 3), more=lambda member: ()):
        self.folder = pathlib.Path(folder)
        ports = free_ports(2 * len(ids))
        self.peers = {member: f"127.0.0.1:{ports.pop()}" for member in ids}
        self.grpc = {member: f"127.0.0.1:{ports.pop()}" for member in ids}
        self.members = ",".join(f"{member}={self.peers[member]}/{self.grpc[member]}"
                                for member in ids)
        self.daemons = {member: Daemon(self.data(member), *self.flags(member), *more(member))
                        for member in ids}

    def data(self, member):
        return self.folder / str(member)

    def flags(self, member):
        return ("--member-id", str(member), "--members", self.members, "--listen-peers",
                self.peers[member], "--listen-grpc", self.grpc[member])

    def start(self):
        for daemon in self.daemons.values():
            daemon.spawn()
        for daemon in self.daemons.values():
            ready = daemon.wait_for_event("ready")
            daemon.grpc_address = f"127.0.0.1:{ready['grpc_port']}"
            daemon.http_address = f"http://127.0.0.1:{ready['http_port']}"
        return self

    def alive(self):
        return {member: daemon for member, daemon in self.daemons.items()
                if daemon.process and daemon.process.poll() is None}

    def status(self, member):
        return json.loads(self.daemons[member].get("/v1/status")[1])

    def leaders(self):
        return [member for member in self.alive() if self.status(member)["role"] == "leader"]

    def leader(self):
        """Waits for a leader and returns its id."""
        eventually(lambda: len(self.leaders()) == 1, "a leader is elected")
        return self.leaders()[0]

    def kill(self):
        for daemon in self.alive().values():
            daemon.kill()


class ClusterLife(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def begin(self, **options):
        cluster = Cluster(self.folder, **options)
        self.addCleanup(cluster.kill)
        return cluster.start()

    def test_three_members_with_one_list_elect_a_leader(self):
        cluster = self.begin()

        leader = cluster.leader()

        self.assertEqual(len({cluster.status(member)["cluster"] for member in (1, 2, 3)}), 1)
        eventually(lambda: all(cluster.daemons[member].get("/readyz")[0] == 200
                               for member in (1, 2, 3)), "all are ready")
        metrics = cluster.daemons[leader].get("/metrics")[1]
        self.assertEqual(metrics.count('tenure_peer_connected{peer="'), 2)

    def test_a_new_leader_has_every_lock_of_a_killed_leader(self):
        cluster = self.begin()
        first = cluster.leader()
        client = cluster.daemons[first].client()
        held = client.lock("a", client.lease())
        client.close()

        cluster.daemons[first].kill()

        second = cluster.leader()
        self.assertNotEqual(second, first)
        client = cluster.daemons[second].client()
        self.assertFalse(client.try_lock("a", client.lease()).acquired)
        other = client.lock("b", client.lease())
        self.assertGreater(other.fencing_token, held.fencing_token)
        client.close()

    def test_a_restart_of_all_members_keeps_the_locks(self):
        cluster = self.begin()
        client = cluster.daemons[cluster.leader()].client()
        client.lock("a", client.lease())
        client.close()

        for daemon in cluster.daemons.values():
            self.assertEqual(daemon.stop(), 0)
        alone = run("--data-dir", str(cluster.data(1)), "--listen-grpc", "127.0.0.1:0",
                    "--listen-http", "off")
        self.assertEqual(alone.returncode, 78, alone.stderr)
        self.assertIn("a member of a cluster of 3", alone.stderr)
        cluster.start()

        client = cluster.daemons[cluster.leader()].client()
        self.assertFalse(client.try_lock("a", client.lease()).acquired)
        client.close()

    def test_members_with_certificates_of_one_authority_form_a_cluster(self):
        authority = Authority(self.folder, "ours")
        for member in (1, 2, 3):
            authority.sign(f"member{member}", member)

        cluster = self.begin(more=lambda member: (
            "--peer-tls-cert", authority.path(f"member{member}.pem"),
            "--peer-tls-key", authority.path(f"member{member}.key"),
            "--peer-tls-ca", authority.path("ca.pem")))

        cluster.leader()

    def test_a_single_node_becomes_a_cluster_by_a_planned_restart(self):
        single = Daemon(self.folder / "single").start()
        self.addCleanup(lambda: single.process.poll() is None and single.kill())
        client = single.client()
        token = client.lock("a", client.lease()).fencing_token
        client.close()
        cluster = Cluster(self.folder)
        self.addCleanup(cluster.kill)
        seed = [("seed", "--current", "--from", str(single.folder), "--data-dir",
                 str(cluster.data(member)), *cluster.flags(member)) for member in (1, 2, 3)]

        self.assertEqual(run(*seed[0]).returncode, 74, "it still runs")
        self.assertFalse(cluster.data(1).exists())
        single.kill()
        for one in seed:
            done = run(*one)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(run(*seed[0]).returncode, 74, "it is seeded once")
        cluster.start()

        client = cluster.daemons[cluster.leader()].client()
        self.assertFalse(client.try_lock("a", client.lease()).acquired)
        self.assertGreater(client.lock("b", client.lease()).fencing_token, token)
        client.close()


class ClusterRefusals(unittest.TestCase):
    """Rejected configurations: exit code, error text, and an untouched data directory."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cluster = Cluster(self.folder)
        self.data = self.folder / "refused"

    def refused(self, code, words, *flags):
        wrong = run("--data-dir", str(self.data), "--listen-http", "off", *flags)
        self.assertEqual(wrong.returncode, code, wrong.stderr)
        self.assertIn(words, wrong.stderr)
        self.assertFalse(self.data.exists(), "something was written")

    def test_an_invalid_member_list_is_refused(self):
        members = self.cluster.members
        self.refused(78, "is not in the list", "--members", members, "--member-id", "4")
        self.refused(78, "required in a cluster", "--members", members)
        self.refused(64, "two members tolerate no failure",
                     "--members", ",".join(members.split(",")[:2]),
                     "--member-id", "1")
        again = members + ",4" + members[1:].split(",", maxsplit=1)[0]
        self.refused(64, "occurs twice", "--members", again, "--member-id", "1")
        self.refused(78, "reachable from the network", "--members",
                     "1=a:1/a:2,2=b:1/b:2,3=c:1/c:2", "--member-id", "1")
        self.refused(78, "requires node.cluster_id", "--join", "--member-id", "4")

    def test_a_certificate_of_another_cluster_is_refused(self):
        ours, theirs = (Authority(self.folder, name) for name in ("ours", "theirs"))
        ours.sign("member", 1)
        self.refused(78, "certificate of another cluster", *self.cluster.flags(1),
                     "--peer-tls-cert", ours.path("member.pem"),
                     "--peer-tls-key", ours.path("member.key"),
                     "--peer-tls-ca", theirs.path("ca.pem"))

    def test_a_certificate_that_names_no_member_is_refused(self):
        ours = Authority(self.folder, "ours")
        ours.sign("client")
        self.refused(78, "it needs URI:tenure:member/1", *self.cluster.flags(1),
                     "--peer-tls-cert", ours.path("client.pem"),
                     "--peer-tls-key", ours.path("client.key"),
                     "--peer-tls-ca", ours.path("ca.pem"))

    def test_a_port_in_use_is_refused_by_setting(self):
        for setting, addresses in (("listen.peers", self.cluster.peers),
                                   ("listen.grpc", self.cluster.grpc)):
            host, port = addresses[1].split(":")
            with socket.socket() as taken:
                taken.bind((host, int(port)))
                taken.listen()
                self.refused(69, setting, *self.cluster.flags(1))

    def test_a_directory_with_foreign_files_is_refused(self):
        foreign = self.folder / "foreign"
        foreign.mkdir()
        (foreign / "thesis.txt").write_text("years of work", encoding="utf-8")
        wrong = run("--listen-http", "off", *self.cluster.flags(1), "--data-dir", str(foreign))
        self.assertEqual(wrong.returncode, 74, wrong.stderr)
        self.assertIn("thesis.txt", wrong.stderr)
        self.assertEqual([path.name for path in foreign.iterdir()], ["thesis.txt"])

    def test_the_directory_of_a_single_node_is_refused(self):
        single = Daemon(self.folder / "single").start()
        self.assertEqual(single.stop(), 0)
        wrong = run("--listen-http", "off", *self.cluster.flags(1), "--data-dir",
                    str(single.folder))
        self.assertEqual(wrong.returncode, 74, wrong.stderr)
        self.assertIn("tenured seed", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
