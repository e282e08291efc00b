#!/usr/bin/python3
"""Requests of `tenure` whose reply is lost: repeated only if they cannot take effect twice."""

import json
import unittest

from command import UNREACHABLE, WithServer
from lossy_proxy import LossyProxy

from daemon import item_pb


class LostReplies(WithServer):
    def proxy(self, lost_method):
        made = LossyProxy(self.daemon.grpc_address, lost_method)
        self.addCleanup(made.close)
        return made

    # Regression: the second attempt granted another lease, which lived until the end of its TTL.
    def test_a_repeated_grant_returns_the_same_lease(self):
        proxy = self.proxy("LeaseGrant")

        lease = self.output("--url", proxy.url, "lease", "grant", "--ttl", "60s", "--owner", "once")

        leases = json.loads(self.output("lease", "ls", "--json"))
        self.assertEqual([one["lease"] for one in leases if one["client"] == "once"],
                         [lease.strip()])
        self.assertEqual(proxy.counts["LeaseGrant"], 2)

    # A second execution would release readers that acquired the lock in between.
    def test_a_forced_release_is_not_repeated(self):
        proxy, client = self.proxy("ForceRelease"), self.client()
        for _ in range(2):
            client.lock("lost/a", client.lease(), mode=item_pb.MODE_SHARED)

        code, _, err = self.outcome("--url", proxy.url, "unlock", "-f", "-y", "lost/a")

        self.assertEqual(code, UNREACHABLE, err)
        self.assertIn("not known whether the request was executed", err)
        self.assertEqual(self.held("lost/a"), [])
        self.assertEqual(proxy.counts["ForceRelease"], 1)

    # The new leader would choose yet another one.
    def test_a_transfer_to_any_member_is_not_repeated(self):
        proxy = self.proxy("TransferLeadership")

        # The single node refuses it, but the reply is lost.
        code, _, err = self.outcome("--url", proxy.url, "cluster", "transfer")

        self.assertEqual(code, UNREACHABLE, err)
        self.assertEqual(proxy.counts["TransferLeadership"], 1)


if __name__ == "__main__":
    unittest.main()
