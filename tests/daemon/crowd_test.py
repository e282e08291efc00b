#!/usr/bin/python3
"""Large numbers of waiters, leases and slow watchers at a real server, clients that disappear
without closing their connection, and oversized or malformed requests."""

import itertools
import socket
import threading
import time
import unittest

import grpc

from daemon import (TIMEOUT, eventually, item_pb, lease_pb, lock_pb, running, session_pb, watch_pb)


def code_of(call, *arguments, **fields):
    """The status code a call fails with."""
    try:
        call(*arguments, **fields)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


class Crowd(unittest.TestCase):
    def setUp(self):
        self.context = running("--limits-leases-per-client-max", "200000",
                               "--service-watch-buffer-events-max", "200")
        self.daemon = self.context.__enter__()
        self.client = self.daemon.client()
        self.noises = itertools.count(5_000_000)  # The id of an ended lease is not reused.

    def tearDown(self):
        self.client.close()
        self.context.__exit__(None, None, None)

    def make_noise(self, cycles):
        """Locks and unlocks with large metadata on one stream. Returns the number of outcomes."""
        lease = next(self.noises)

        def requests():
            yield session_pb.SessionRequest(
                hello=session_pb.Hello(client="noise", revoke_leases=True),
                operations=[session_pb.Operation(
                    grant_lease=session_pb.GrantLease(id=lease, request_id=1))])
            for first in range(0, cycles, 10):
                request = session_pb.SessionRequest()
                for number in range(first, first + 10):
                    request.operations.add(acquire=session_pb.Acquire(
                        lease_id=lease, request_id=2 + number, metadata=b"x" * 4000,
                        items=[item_pb.Item(name="noisy")]))
                    request.operations.add(release=session_pb.Release(
                        lease_id=lease, name="noisy"))
                yield request

        outcomes = [outcome for response in self.client.locks.Session(requests(), timeout=TIMEOUT)
                    for outcome in response.outcomes]
        self.assertNotIn("refused", {outcome.WhichOneof("what") for outcome in outcomes})
        eventually(lambda: self.client.status().leases == 0, "the lease ends with its stream")
        return len(outcomes)

    # 002.076: strictly in order, one grant per release; and none beyond the limit.
    def test_ten_thousand_waiters_on_one_lock_are_granted_in_order(self):
        waiters = 10_000
        holder = self.client.lease()
        token = self.client.lock("hot", holder).fencing_token
        answers = {}
        requests = [session_pb.SessionRequest(hello=session_pb.Hello(client="crowd"))]
        for first in range(0, waiters, 100):
            operations = []
            for number in range(first, first + 100):
                lease = 1_000_000 + number
                operations.append(session_pb.Operation(
                    id=2 * number, grant_lease=session_pb.GrantLease(
                        id=lease, request_id=1, ttl_ms=600_000)))
                operations.append(session_pb.Operation(
                    id=2 * number + 1, acquire=session_pb.Acquire(
                        lease_id=lease, request_id=2, items=[item_pb.Item(name="hot")])))
            requests.append(session_pb.SessionRequest(operations=operations))
        done = threading.Event()

        def send():
            yield from requests
            done.wait(TIMEOUT)

        stream = self.client.locks.Session(send(), timeout=10 * TIMEOUT)
        positions = {}
        while len(positions) < waiters:
            for outcome in next(stream).outcomes:
                if outcome.WhichOneof("what") == "queued":
                    positions[outcome.id] = outcome.queued.position
        self.assertEqual(sorted(positions.values()), list(range(1, waiters + 1)))
        self.assertEqual(self.client.status().waits, waiters)

        # One more than the limit is refused, and names the limit.
        with self.assertRaises(grpc.RpcError) as caught:
            self.client.lock("hot", self.client.lease())
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)

        order = []
        self.client.unlock(holder, token)
        rounds = 200
        while len(order) < rounds:
            for outcome in next(stream).outcomes:
                if outcome.WhichOneof("what") == "granted":
                    order.append(positions[outcome.id])
                    answers[outcome.id] = outcome.granted.fencing_token
                    if len(order) < rounds:
                        self.client.unlock(1_000_000 + outcome.id // 2, answers[outcome.id])
        self.assertEqual(order, list(range(1, rounds + 1)))
        tokens = list(answers.values())
        self.assertEqual(tokens, sorted(set(tokens)))

        # The client disconnects: all its waits leave the queue.
        done.set()
        stream.cancel()
        eventually(lambda: self.client.status().waits == 0, "the queue is empty")

    # 002.081, 002.083: one timer for all of them, no scan.
    def test_a_hundred_thousand_leases_are_granted_renewed_and_expire(self):
        count = 100_000
        ttl_ms = 20_000

        def requests():
            yield session_pb.SessionRequest(hello=session_pb.Hello(client="many"))
            for first in range(1, count + 1, 1000):
                yield session_pb.SessionRequest(operations=[
                    session_pb.Operation(id=number, grant_lease=session_pb.GrantLease(
                        id=number, request_id=1, ttl_ms=ttl_ms))
                    for number in range(first, first + 1000)])

        granted = sum(1 for response in self.client.locks.Session(requests(), timeout=10 * TIMEOUT)
                      for outcome in response.outcomes
                      if outcome.WhichOneof("what") == "lease_granted")
        self.assertEqual(granted, count)
        self.assertEqual(self.client.status().leases, count)

        def renew():
            yield session_pb.SessionRequest(hello=session_pb.Hello(client="many"))
            for first in range(1, count + 1, 5000):
                yield session_pb.SessionRequest(operations=[session_pb.Operation(
                    id=first, renew_leases=session_pb.RenewLeases(
                        ids=range(first, first + 5000)))])

        renewed = [ttl for response in self.client.locks.Session(renew(), timeout=10 * TIMEOUT)
                   for outcome in response.outcomes for ttl in outcome.renewed.ttl_ms]
        self.assertEqual(renewed, [ttl_ms] * count)
        eventually(lambda: self.client.status().leases == 0, "all have expired")

    # 002-B30
    def test_slow_watchers_do_not_stall_other_clients(self):
        stop = threading.Event()

        def requests():
            yield watch_pb.WatchRequest(create=watch_pb.WatchCreate(key="", prefix=True))
            stop.wait(10 * TIMEOUT)

        # Small receive buffers of the client, so that the server soon cannot write.
        idle = [grpc.insecure_channel(self.daemon.grpc_address, options=[
            ("grpc.use_local_subchannel_pool", 1), ("grpc.http2.lookahead_bytes", 65536)])
            for _ in range(3)]
        from daemon import STUBS  # pylint: disable=import-outside-toplevel
        stub = STUBS["lock_grpc"].LockServiceStub
        streams = [stub(channel).Watch(requests(), timeout=10 * TIMEOUT) for channel in idle]
        for stream in streams:
            self.assertTrue(next(stream).created)
        began = time.monotonic()
        while "tenure_watch_cut_total 3" not in self.daemon.get("/metrics")[1]:
            answered = self.make_noise(cycles=500)
            self.assertEqual(answered, 1001)
            self.assertLess(time.monotonic() - began, 10 * TIMEOUT)

        # Each watch gets its resume revision, and the events before that revision have no gap.
        for stream in streams:
            last = 0
            for response in stream:
                for event in response.events:
                    self.assertGreater(event.revision, last)
                    last = event.revision
                if response.cancelled:
                    self.assertGreater(response.resume_revision, last)
                    break
        stop.set()
        for stream, channel in zip(streams, idle):
            stream.cancel()
            channel.close()

    # 002-B21: neither a FIN nor a cancellation reaches the server.
    def test_a_client_that_vanishes_leaves_the_queue(self):
        held = self.client.lock("a", self.client.lease())
        other = self.daemon.client()
        waiting = other.locks.Lock.future(
            lock_pb.LockRequest(name="a", lease_id=self.client.lease()), timeout=TIMEOUT)
        eventually(lambda: self.client.status().waits == 1, "it waits")

        other.close()

        eventually(lambda: self.client.status().waits == 0, "the queue is empty")
        self.assertTrue(held.acquired)
        self.assertTrue(waiting.done())

    def test_a_request_over_a_limit_is_refused_with_its_name(self):
        lease = self.client.lease()
        lock = self.client.lock
        invalid = grpc.StatusCode.INVALID_ARGUMENT
        self.assertEqual(code_of(lock, "", lease), invalid)
        self.assertEqual(code_of(lock, "n" * 1025, lease), invalid)
        self.assertEqual(code_of(lock, "new\nline", lease), invalid)
        self.assertEqual(code_of(lock, "a", lease, metadata=b"m" * 4097), invalid)
        self.assertEqual(code_of(lock, "a", lease, owner="o" * 257), invalid)
        self.assertEqual(code_of(lock, "", lease, items=[
            item_pb.Item(name=str(number)) for number in range(65)]), invalid)
        self.assertEqual(code_of(lock, "", lease, items=[
            item_pb.Item(name="s", permits=item_pb.Permits(capacity=2_000_000))]), invalid)
        self.assertEqual(code_of(lock, "a", lease, mode=99), invalid)
        self.assertEqual(code_of(self.client.lease, ttl_ms=1), invalid)
        self.assertEqual(code_of(self.client.lease, ttl_ms=10**15), invalid)
        # gRPC itself refuses a message above its size limit.
        self.assertEqual(code_of(lock, "a", lease, metadata=b"m" * 70_000),
                         grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertTrue(lock("n" * 1024, lease, metadata=b"m" * 4096).acquired)

    def test_malformed_requests_have_no_side_effects(self):
        garbage = self.client.channel.unary_unary("/tenure.v1.LockService/Lock")
        self.assertNotEqual(code_of(garbage, b"\xff" * 100, timeout=TIMEOUT),
                            grpc.StatusCode.OK)
        unknown = self.client.channel.unary_unary("/tenure.v1.LockService/Nothing")
        self.assertEqual(code_of(unknown, b"", timeout=TIMEOUT), grpc.StatusCode.UNIMPLEMENTED)
        host, port = self.daemon.grpc_address.split(":")
        for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 1000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n"):
            with socket.create_connection((host, int(port)), timeout=TIMEOUT) as raw:
                raw.sendall(noise)
                raw.shutdown(socket.SHUT_WR)
                while raw.recv(4096):
                    pass
        self.assertTrue(self.client.lock("a", self.client.lease()).acquired)

    def test_limits_of_the_store_answer_resource_exhausted(self):
        self.context.__exit__(None, None, None)
        self.context = running("--limits-leases-max", "3", "--limits-items-per-lease-max", "2",
                               "--limits-waiters-per-lock-max", "1",
                               "--limits-leases-per-client-max", "2")
        self.daemon = self.context.__enter__()
        self.client = self.daemon.client()
        exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
        one, two = self.client.lease(client="a"), self.client.lease(client="a")
        self.assertEqual(code_of(self.client.lease, client="a"), exhausted)
        three = self.client.lease(client="b")
        self.assertEqual(code_of(self.client.lease, client="c"), exhausted)
        self.client.lock("1", one)
        self.client.lock("2", one)
        self.assertEqual(code_of(self.client.lock, "3", one), exhausted)
        waiting = self.client.locks.Lock.future(
            lock_pb.LockRequest(name="1", lease_id=two), timeout=TIMEOUT)
        eventually(lambda: self.client.status().waits == 1, "one waits")
        self.assertEqual(code_of(self.client.lock, "1", three), exhausted)
        waiting.cancel()


if __name__ == "__main__":
    unittest.main()
