#!/usr/bin/python3
"""The Python and Node.js clients of examples/ with a real server: they exclude each other, wait in
the queue, renew their leases and are fenced."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

import cluster
from daemon import HOME, TIMEOUT, Daemon, OneDaemon, eventually, lease_pb, run
from tls_test import Authority

PYTHON = ["/usr/bin/python3", str(HOME / "examples/python/hold.py")]
NODE = [os.environ.get("NODE", "node"), str(HOME / "examples/node/hold.mjs")]
LANGUAGES = {"python": PYTHON, "node": NODE}


class Clients(unittest.TestCase):
    """Starts the clients and reads what they print."""

    def hold(self, language, name, server, *options):
        process = subprocess.Popen([*LANGUAGES[language], name, "--server", server, *options],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def token(self, process):
        """Token in the first output line, which the client prints when it holds the lock."""
        line = process.stdout.readline()
        found = re.fullmatch(r"(\S+) is held, fencing token (\d+)\n", line)
        self.assertTrue(found, line + process.stdout.read() if not found else "")
        return int(found[2])

    def outcome(self, process):
        output, _ = process.communicate(timeout=TIMEOUT)
        return process.returncode, output


class Languages(OneDaemon, Clients):
    def start(self, language, name, *options):
        return self.hold(language, name, self.daemon.grpc_address, *options)

    def leases(self):
        """Leases that are alive. The lease of a refused client lives until its TTL ends."""
        return self.client.locks.Leases(lease_pb.LeasesRequest(), timeout=TIMEOUT).leases

    def holding(self):
        """Id of the lease that has a hold."""
        return next(lease.id for lease in self.leases() if lease.hold_count == 1)

    def revoke(self, lease):
        self.client.locks.LeaseRevoke(lease_pb.LeaseRevokeRequest(id=lease), timeout=TIMEOUT)

    def setUp(self):
        self.client = self.daemon.client()
        self.addCleanup(self.client.close)

    # 002.021, 002.023: afterwards the server has neither locks nor leases.
    def test_each_language_acquires_and_releases_a_lock(self):
        for language in LANGUAGES:
            with self.subTest(language):
                process = self.start(language, "one", "--seconds", "0")
                self.token(process)
                self.assertEqual(self.outcome(process), (0, "one is released\n"))
                status = self.client.status()
                self.assertEqual((status.locks, status.leases), (0, 0))

    # 002.062: the waiter is granted after the release, with a larger token.
    def test_clients_of_two_languages_exclude_each_other_and_queue(self):
        for first, second in (("python", "node"), ("node", "python")):
            with self.subTest(first=first):
                holder = self.start(first, "two", "--seconds", "60")
                older = self.token(holder)
                waiter = self.start(second, "two", "--seconds", "0", "--wait", str(TIMEOUT))
                eventually(lambda: self.client.status().waits == 1, "it waits")
                refused = self.start(second, "two", "--wait", "0")
                code, output = self.outcome(refused)
                self.assertEqual(code, 75, output)
                holder.send_signal(signal.SIGKILL)
                self.revoke(self.holding())

                self.assertGreater(self.token(waiter), older)
                self.assertEqual(self.outcome(waiter)[0], 0)

    # 002.033: the test revokes the lease, because waiting for the TTL of 9 s takes too long. The
    # next renewal reports the loss, which also shows that the client sends renewals.
    def test_each_client_detects_a_lost_lease_at_its_next_renewal(self):
        processes = {language: self.start(language, f"three/{language}", "--seconds", "60")
                     for language in LANGUAGES}
        for process in processes.values():
            self.token(process)
        for lease in self.leases():
            self.revoke(lease.id)

        for language, process in processes.items():
            with self.subTest(language):
                code, output = self.outcome(process)
                self.assertEqual(code, 79, output)
                self.assertIn("the lease and its lock are lost", output)

    # A JavaScript number would round 64-bit values, so its client handles ids and tokens as text.
    def test_ids_of_more_than_53_bits_are_not_rounded(self):
        node = self.start("node", "four", "--seconds", "60")
        token = self.token(node)
        lease = self.holding()
        status, body = self.daemon.get("/v1/locks/four")
        self.assertEqual(status, 200)
        self.assertIn(f'"token":"{token}"', body)
        self.assertIn(f'"lease":"{lease}"', body)
        self.revoke(lease)


class Hanging(Clients):
    """A server that hangs: SIGSTOP. Its connections stay open, and it does not reply."""

    # Catches a client that counts from the reply, that waits for one, or that ignores the margin:
    # the lease may be granted to another client when its TTL has passed at the server.
    def test_a_client_reports_the_loss_before_the_ttl_ends_when_the_server_hangs(self):
        for language in LANGUAGES:
            with self.subTest(language), tempfile.TemporaryDirectory() as folder:
                daemon = Daemon(folder).start()
                self.addCleanup(daemon.kill)
                process = self.hold(language, "a", daemon.grpc_address, "--ttl", "6",
                                    "--seconds", "60")
                self.token(process)
                daemon.process.send_signal(signal.SIGSTOP)
                # The server has received the last renewal before this moment.
                stopped = time.monotonic()

                line = process.stdout.readline()
                while line and "are lost" not in line:
                    line = process.stdout.readline()

                self.assertLess(time.monotonic() - stopped, 6)
                self.assertIn("the lease and its lock are lost", line)
                self.assertEqual(self.outcome(process)[0], 79)

    def test_a_client_keeps_its_lock_when_another_member_replaces_a_hanging_leader(self):
        with cluster.running() as nodes:
            servers = ",".join(nodes.addresses())
            processes = [self.hold(language, language, servers, "--ttl", "9", "--seconds", "12")
                         for language in LANGUAGES]
            for process in processes:
                self.token(process)

            nodes.pause(nodes.leader())

            for process in processes:
                code, output = self.outcome(process)
                self.assertEqual(code, 0, output)
                self.assertIn("is released", output)


class Secured(Clients):
    """A server with TLS and users."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.authority = Authority(folder.name, "ours")
        self.authority.sign("server")
        self.authority.sign("client")
        made = run("token")
        (self.folder / "token").write_text(made.stdout, encoding="ascii")
        (self.folder / "users.toml").write_text(
            f"[users.ann]\n{made.stderr.splitlines()[-1]}\nrights = {{ \"\" = \"lock\" }}\n",
            encoding="utf-8")

    def serve(self, *flags):
        daemon = Daemon(self.folder / "store", "--tls-cert", self.authority.path("server.pem"),
                        "--tls-key", self.authority.path("server.key"), *flags).start()
        self.addCleanup(daemon.kill)
        # By name: Node warns about a TLS server name that is an address.
        return daemon.grpc_address.replace("127.0.0.1", "localhost")

    def test_clients_authenticate_with_a_token_over_tls(self):
        server = self.serve("--auth-file", str(self.folder / "users.toml"))
        trust = ("--tls-ca", self.authority.path("ca.pem"), "--seconds", "0")
        for language in LANGUAGES:
            with self.subTest(language):
                held = self.hold(language, "a", server, *trust, "--token-file",
                                 str(self.folder / "token"))
                self.token(held)
                self.assertEqual(self.outcome(held), (0, "a is released\n"))
                self.assertEqual(self.outcome(self.hold(language, "a", server, *trust))[0], 77)

    def test_clients_authenticate_with_a_certificate(self):
        server = self.serve("--tls-client-ca", self.authority.path("ca.pem"))
        for language in LANGUAGES:
            with self.subTest(language):
                held = self.hold(language, "a", server, "--seconds", "0",
                                 "--tls-ca", self.authority.path("ca.pem"),
                                 "--tls-cert", self.authority.path("client.pem"),
                                 "--tls-key", self.authority.path("client.key"))
                self.token(held)
                self.assertEqual(self.outcome(held), (0, "a is released\n"))


class Replaced(Clients):
    """All members in the address list of a client are replaced while it holds a lock."""

    def test_clients_discover_the_members_that_replace_the_initial_ones(self):
        with cluster.running() as nodes:
            founders = list(nodes.nodes)
            driver = nodes.client()
            lease = driver.lease()
            holders = [subprocess.Popen([*command, language, "--seconds", "20", "--server",
                                         ",".join(nodes.addresses())],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                       for language, command in LANGUAGES.items()]
            for holder in holders:
                self.addCleanup(self.end, holder)
                self.assertIn("is held", holder.stdout.readline())

            for member in (4, 5, 6):
                nodes.add(member)
            before = self.renewals(nodes)
            eventually(lambda: self.renewals(nodes) >= before + 3 * len(holders),
                       "all have renewed and looked for members since")
            driver.renew(lease)
            for member in founders:
                nodes.remove(member)
                nodes.kill(member)

            self.assertEqual(driver.renew(lease), 600_000)
            for holder in holders:
                self.assertIn("is released", holder.communicate(timeout=TIMEOUT)[0])
                self.assertEqual(holder.returncode, 0)

    @staticmethod
    def renewals(nodes):
        """Sum over all members, because leadership may move between two queries."""
        pages = [node.get("/metrics")[1] for node in nodes.nodes.values()]
        return max(float(found) for page in pages for found in
                   re.findall(r'tenure_lease_renew_total{result="renewed"} (\S+)', page))


if __name__ == "__main__":
    unittest.main()
