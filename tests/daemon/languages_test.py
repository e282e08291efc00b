#!/usr/bin/python3
"""The clients in other languages that examples/ shows, each beside a real server and beside the
other: they exclude each other, wait their turn, keep their leases and are fenced."""

import os
import re
import signal
import subprocess
import unittest

import cluster
from daemon import HOME, TIMEOUT, OneDaemon, eventually, lease_pb

PYTHON = ["/usr/bin/python3", str(HOME / "examples/python/hold.py")]
NODE = [os.environ.get("NODE", "node"), str(HOME / "examples/node/hold.mjs")]
LANGUAGES = {"python": PYTHON, "node": NODE}


class Languages(OneDaemon):
    def start(self, language, name, *options):
        process = subprocess.Popen(
            [*LANGUAGES[language], name, "--server", self.daemon.grpc_address, *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def token(self, process):
        """Of the first line, which comes when the lock is held."""
        line = process.stdout.readline()
        found = re.fullmatch(r"(\S+) is held, fencing token (\d+)\n", line)
        self.assertTrue(found, line + process.stdout.read() if not found else "")
        return int(found[2])

    def outcome(self, process):
        output, _ = process.communicate(timeout=TIMEOUT)
        return process.returncode, output

    def leases(self):
        """Those that live; of who was refused and went, until its ttl ends."""
        return self.client.locks.Leases(lease_pb.LeasesRequest(), timeout=TIMEOUT).leases

    def holding(self):
        """Id of the lease that has a hold."""
        return next(lease.id for lease in self.leases() if lease.hold_count == 1)

    def revoke(self, lease):
        self.client.locks.LeaseRevoke(lease_pb.LeaseRevokeRequest(id=lease), timeout=TIMEOUT)

    def setUp(self):
        self.client = self.daemon.client()
        self.addCleanup(self.client.close)

    # 002.021, 002.023: and what each leaves behind is nothing.
    def test_each_language_acquires_and_releases_a_lock(self):
        for language in LANGUAGES:
            with self.subTest(language):
                process = self.start(language, "one", "--seconds", "0")
                self.token(process)
                self.assertEqual(self.outcome(process), (0, "one is released\n"))
                status = self.client.status()
                self.assertEqual((status.locks, status.leases), (0, 0))

    # 002.062: the waiter is granted after the release, with a larger token.
    def test_they_exclude_each_other_and_wait_their_turn(self):
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

    # 002.033: longer than the ttl of 9 s would be too long for a test; a lease that is revoked is
    # noticed by the next renewal, so renewals are sent.
    def test_each_notices_at_its_next_renewal_that_its_lease_is_lost(self):
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
                self.assertIn("the lease is lost", output)

    # 64 bits would be rounded by a number of JavaScript, so ids and tokens are text there.
    def test_ids_of_more_than_53_bits_come_as_they_are(self):
        node = self.start("node", "four", "--seconds", "60")
        token = self.token(node)
        lease = self.holding()
        status, body = self.daemon.get("/v1/locks/four")
        self.assertEqual(status, 200)
        self.assertIn(f'"token":"{token}"', body)
        self.assertIn(f'"lease":"{lease}"', body)
        self.revoke(lease)


class Replaced(unittest.TestCase):
    """All members that a client knew when it began are replaced while it holds a lock."""

    def test_clients_learn_the_members_that_take_the_place_of_those_they_knew(self):
        with cluster.running() as nodes:
            founders = list(nodes.nodes)
            driver = nodes.client()
            lease = driver.lease()
            holders = [subprocess.Popen([*command, language, "--seconds", "20", "--server",
                                         ",".join(nodes.addresses())],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                       for language, command in LANGUAGES.items()]
            for holder in holders:
                self.addCleanup(Languages.end, holder)
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
        """Of all members: leadership may move between two looks."""
        pages = [node.get("/metrics")[1] for node in nodes.nodes.values()]
        return max(float(found) for page in pages for found in
                   re.findall(r'tenure_lease_renew_total{result="renewed"} (\S+)', page))


if __name__ == "__main__":
    unittest.main()
