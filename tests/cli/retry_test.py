#!/usr/bin/python3
"""Requests of `tenure` whose reply is lost: repeated only if they cannot take effect twice."""

import collections
import concurrent.futures
import json
import unittest

import grpc

from command import TIMEOUT, UNREACHABLE, WithServer

from daemon import item_pb


class LossyProxy(grpc.GenericRpcHandler):
    """gRPC server that forwards unary calls to a tenured. The first reply of one method is lost:
    the tenured executes the call, and the client gets UNAVAILABLE."""

    def __init__(self, address, lost_method):
        self.channel = grpc.insecure_channel(address)
        self.lost_method, self.counts = lost_method, collections.Counter()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), handlers=(self,))
        port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.url = f"tenure://127.0.0.1:{port}"

    def service(self, handler_call_details):
        path = handler_call_details.method
        method = path.rsplit("/", 1)[1]

        def forward(request, context):
            self.counts[method] += 1
            is_lost = method == self.lost_method and self.counts[method] == 1
            reply, failure = None, None
            try:
                reply = self.channel.unary_unary(path)(request, timeout=TIMEOUT)
            except grpc.RpcError as error:
                failure = error
            if is_lost:
                context.abort(grpc.StatusCode.UNAVAILABLE, "the connection was lost")
            if failure:
                context.abort(failure.code(), failure.details())
            return reply

        return grpc.unary_unary_rpc_method_handler(forward)

    def close(self):
        self.server.stop(None)
        self.channel.close()


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
