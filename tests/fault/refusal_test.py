#!/usr/bin/python3
"""Configuration errors of a cluster, seen from outside: the exit code that docs/troubleshooting.md
documents, and a data directory in which nothing was written."""

import pathlib
import shutil
import socket
import subprocess
import unittest

import harness  # first: adds tests/daemon to the path
import cluster
from daemon import TIMEOUT, Daemon, eventually, tenured_path
from tls_test import Authority

USAGE, PORT, DISK, CONFIGURATION = 64, 69, 74, 78


class Refusal(unittest.TestCase):
    def setUp(self):
        self.folder = harness.temporary_folder()
        self.addCleanup(harness.remove_folder, self.folder)
        self.store = self.folder / "store"
        self.ports = cluster.free_ports(9)
        self.members = self.list_of(3)

    def list_of(self, count):
        return ",".join(f"{n}=127.0.0.1:{self.ports[3 * n - 3]}/127.0.0.1:{self.ports[3 * n - 2]}"
                        for n in range(1, count + 1))

    def flags(self, **more):
        """Flags of member 1, with overrides."""
        flags = {"data_dir": self.store, "member_id": 1, "members": self.members,
                 "listen_peers": f"127.0.0.1:{self.ports[0]}",
                 "listen_grpc": f"127.0.0.1:{self.ports[1]}",
                 "listen_http": f"127.0.0.1:{self.ports[2]}"} | more
        return [word for name, value in flags.items() if value is not None
                for word in ("--" + name.replace("_", "-"), str(value))]

    def refused(self, code, *words, prefix=(), **more):
        """tenured exits with this code and these words in its error, and has written nothing."""
        before = self.files()
        ended = subprocess.run([*prefix, tenured_path(), *self.flags(**more)], capture_output=True,
                               text=True, timeout=TIMEOUT, check=False)
        self.assertEqual(ended.returncode, code, ended.stderr)
        for word in words:
            self.assertIn(word, ended.stderr)
        self.assertEqual(self.files(), before)

    def files(self):
        if not self.store.is_dir():
            return self.store.exists()
        return {path: path.read_bytes() for path in self.store.rglob("*")
                if path.is_file() and path.name != "LOCK"}

    def started(self, *flags, **more):
        """Starts a member, which is killed at the end of the test."""
        process = subprocess.Popen([tenured_path(), *self.flags(**more), *flags],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def stop_after_start(self, **more):
        process = self.started(**more)
        eventually(lambda: any(self.store.glob("log-*")), "the member has a log")
        process.kill()
        process.wait()

    def test_wrong_lists_of_members_are_refused(self):
        one = f"1=127.0.0.1:{self.ports[0]}/127.0.0.1:{self.ports[1]}"
        self.refused(USAGE, "1=nonsense", members="1=nonsense")
        self.refused(USAGE, "two members tolerate no failure", members=self.list_of(2))
        self.refused(USAGE, "is the id of two members",
                     members=f"{one},{self.members.split(',')[1]},1=127.0.0.1:7/127.0.0.1:8")
        self.refused(USAGE, "occurs twice", members=f"{one},2{one[1:]},3=127.0.0.1:7/a:8")
        self.refused(CONFIGURATION, "is not in the list", "--join", member_id=9)
        self.refused(CONFIGURATION, "--member-id", member_id=None)

    def test_a_folder_of_another_member_is_refused(self):
        self.stop_after_start()
        self.refused(DISK, "belongs to member 1", "member 2", member_id=2,
                     listen_peers=f"127.0.0.1:{self.ports[3]}")

    def test_a_folder_of_another_cluster_is_refused(self):
        self.stop_after_start()
        self.refused(DISK, "belongs to cluster", cluster_name="another")
        self.refused(DISK, "belongs to cluster", "12345", cluster_id=12345)

    def test_a_single_node_does_not_become_a_member_by_a_list(self):
        self.stop_after_start(members=None, listen_peers=None)
        self.refused(DISK, "tenured seed")

    def test_a_folder_with_foreign_files_is_refused(self):
        self.store.mkdir()
        (self.store / "letters.txt").write_text("Dear ...", encoding="utf-8")
        self.refused(DISK, "letters.txt", "Name an empty one")

    def test_a_folder_that_cannot_be_made_or_read_is_refused(self):
        self.store.write_text("a file", encoding="utf-8")
        self.refused(DISK, str(self.store))
        self.store.unlink()
        self.store.mkdir()
        self.store.chmod(0)
        # Not as root, which ignores file modes.
        prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        if subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode != 0:
            print("cannot switch to another user: running as the current one")
            prefix = ()
        self.folder.chmod(0o755)
        self.refused(DISK, str(self.store), prefix=prefix)
        self.store.chmod(0o700)

    def test_ports_in_use_are_refused_by_name(self):
        for flag in ("listen_peers", "listen_grpc", "listen_http"):
            with socket.create_server(("127.0.0.1", 0)) as taken:
                address = "127.0.0.1:%d" % taken.getsockname()[1]
                self.refused(PORT, address, **{flag: address})
                self.assertFalse(self.store.exists())

    def test_certificates_that_cannot_work_are_refused(self):
        ours, theirs = (Authority(self.folder, name) for name in ("ours", "theirs"))
        ours.sign("one", 1)
        files = {"peer_tls_cert": ours.path("one.pem"), "peer_tls_key": ours.path("one.key"),
                 "peer_tls_ca": ours.path("ca.pem")}
        self.refused(CONFIGURATION, "certificate of another cluster",
                     **files | {"peer_tls_ca": theirs.path("ca.pem")})
        self.refused(CONFIGURATION, "peer_tls.key", **files | {"peer_tls_key": None})
        self.refused(CONFIGURATION, "peer_tls.cert",
                     **files | {"peer_tls_cert": self.folder / "none.pem"})
        self.assertFalse(self.store.exists())

    # Only the validity of certificates depends on the wall clock.
    def test_a_wrong_wall_clock_is_refused_with_certificates(self):
        ours = Authority(self.folder, "ours")
        ours.sign("one", 1)
        faults = harness.FaultFile(self.folder / "faults")
        faults.set(wall_ms=-40 * 365 * 86_400_000)
        self.refused(CONFIGURATION, "not yet valid",
                     prefix=("env", f"TENURE_FAULT_FILE={faults.path}",
                             f"LD_PRELOAD={harness.PRELOAD}"),
                     peer_tls_cert=ours.path("one.pem"), peer_tls_key=ours.path("one.key"),
                     peer_tls_ca=ours.path("ca.pem"))

    def test_a_public_address_needs_tls(self):
        self.refused(CONFIGURATION, "reachable from the network", "--insecure",
                     listen_peers=f"0.0.0.0:{self.ports[0]}")

    def test_seed_refuses_what_it_cannot_seed(self):
        def seed(source, **more):
            return subprocess.run([tenured_path(), "seed", "--from", str(source),
                                   *self.flags(**more)], capture_output=True, text=True,
                                  timeout=TIMEOUT, check=False)

        nothing = seed(self.folder / "nowhere")
        self.assertEqual(nothing.returncode, DISK, nothing.stderr)
        self.assertIn("nowhere", nothing.stderr)
        self.assertFalse(self.store.exists())
        self.stop_after_start(members=None, listen_peers=None)
        full = seed(self.store)
        self.assertEqual(full.returncode, DISK, full.stderr)
        unknown = seed(self.store, member_id=9, data_dir=self.folder / "new")
        self.assertEqual(unknown.returncode, CONFIGURATION, unknown.stderr)
        self.assertFalse((self.folder / "new").exists())


class ForeignMembers(unittest.TestCase):
    """Members that start, but that the other members do not accept."""

    def start(self, change):
        folder = harness.temporary_folder()
        self.addCleanup(harness.remove_folder, folder)
        nodes = harness.ClusterHarness(folder, 3, net="plain")
        self.addCleanup(nodes.end)
        change(nodes, folder)
        nodes.start()
        return nodes

    def kept_out(self, nodes, *words):
        """Member 3 stays alone, the others work, and a log contains these words."""
        client = nodes.client()
        self.assertTrue(client.lock("a", client.lease()).acquired)
        self.assertIn(nodes.wait_for_leader(), (1, 2))

        def is_logged():
            log = " ".join(self.log_of(node) for node in nodes.nodes.values())
            return all(word in log for word in words)

        eventually(is_logged, f"a log contains {words}")
        seen = nodes.node(3).seen()
        self.assertEqual((seen["role"], seen["leader"] in ("", "0", None)), ("follower", True))

    def test_the_certificate_of_another_cluster_is_kept_out(self):
        def change(nodes, folder):
            ours, theirs = (Authority(folder, name) for name in ("ours", "theirs"))
            for member, node in nodes.nodes.items():
                authority = theirs if member == 3 else ours
                authority.sign(f"member{member}", member)
                node.flags += ("--peer-tls-cert", authority.path(f"member{member}.pem"),
                               "--peer-tls-key", authority.path(f"member{member}.key"),
                               "--peer-tls-ca", authority.path("ca.pem"))

        self.kept_out(self.start(change), "certificate")

    def test_another_secret_is_kept_out(self):
        def change(nodes, folder):
            for member, node in nodes.nodes.items():
                secret = pathlib.Path(folder) / f"secret{member}"
                secret.write_text("wrong secret number 3" if member == 3 else "the secret of all",
                                  encoding="utf-8")
                node.flags += ("--cluster-secret-file", str(secret))

        self.kept_out(self.start(change), "secret")

    def test_the_id_of_another_cluster_is_kept_out(self):
        def change(nodes, _):
            nodes.nodes[3].flags += ("--cluster-name", "another")

        self.kept_out(self.start(change), "belongs to cluster")

    def test_a_founder_that_was_not_seeded_like_the_others_is_kept_out(self):
        def change(nodes, folder):
            single = Daemon(folder / "single").start()
            client = single.client()
            client.lock("before", client.lease())
            self.assertEqual(single.stop(), 0)
            for member in (1, 2):
                node = nodes.nodes[member]
                subprocess.run([tenured_path(), "seed", "--current", "--from", str(single.folder),
                                "--data-dir", str(node.folder), *node.flags], check=True,
                               capture_output=True, timeout=TIMEOUT)

        nodes = self.start(change)

        self.kept_out(nodes, "member 3", "started with different states", "tenured seed")
        client = nodes.client()
        self.assertFalse(client.try_lock("before", client.lease()).acquired)

    # The member may have voted and acknowledged before: with it, a minority could lose a lock.
    def test_a_founder_that_lost_its_folder_is_kept_out_until_it_joins_under_another_id(self):
        nodes = self.start(lambda nodes, folder: None)
        nodes.wait_until_healthy()
        client = nodes.client()
        held = client.lock("held", client.lease())
        lost = nodes.followers()[0]
        others = [member for member in nodes.nodes if member != lost]
        eventually(lambda: all(f"member {lost} " in (nodes.node(member).folder / "peers").read_text(
            encoding="utf-8") for member in others), "both others have registered it")
        nodes.kill(lost)
        shutil.rmtree(nodes.node(lost).folder)

        nodes.restart(lost)

        words = f"member {lost} has a new incarnation", "--join", f"remove member {lost}"
        eventually(lambda: all(all(word in self.log_of(nodes.node(member)) for word in words)
                               for member in nodes.nodes), "all members log it with the remedy")
        # The replaced member counts towards no majority, and a restarted member remembers that.
        follower = next(member for member in others if member != nodes.wait_for_leader())
        nodes.kill(follower)
        eventually(lambda: nodes.leader() is None, "the leader has no majority")
        self.assertNotEqual(nodes.node(lost).seen()["role"], "leader")
        nodes.restart(follower)
        self.assertIn(nodes.wait_for_leader(), others)
        self.assertFalse(nodes.node(lost).get("/readyz")[0] == 200)

        nodes.add(4)
        nodes.remove(lost)

        self.assertEqual(set(nodes.members()), {*others, 4})
        self.assertFalse(client.try_lock("held", client.lease()).acquired)
        self.assertGreater(client.lock("next", client.lease()).fencing_token, held.fencing_token)

    # Otherwise they would form a majority with an empty state.
    def test_two_founders_that_lost_their_folders_do_not_begin_an_empty_cluster(self):
        nodes = self.start(lambda nodes, folder: None)
        nodes.wait_until_healthy()
        keeps = nodes.wait_for_leader()
        lost = [member for member in nodes.nodes if member != keeps]
        peers = nodes.node(keeps).folder / "peers"
        eventually(lambda: all(f"member {member} " in peers.read_text(encoding="utf-8")
                               for member in lost), "the leader has registered both")
        for member in lost:
            nodes.kill(member)
            shutil.rmtree(nodes.node(member).folder)

        for member in lost:
            nodes.restart(member)

        eventually(lambda: all("member_quarantined" in self.log_of(nodes.node(member))
                               for member in lost), "both are quarantined")
        eventually(lambda: nodes.leader() is None, "the cluster has no leader")
        for member in nodes.nodes:
            eventually(lambda: nodes.node(member).get("/readyz")[0] == 503, "no member is ready")

    @staticmethod
    def log_of(node):
        return " ".join(str(line) for line in node.lines)


if __name__ == "__main__":
    unittest.main()
