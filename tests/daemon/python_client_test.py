#!/usr/bin/python3
"""The main scenarios of the gRPC service from Python, with a real server."""

import threading
import unittest

import grpc

from daemon import (TIMEOUT, OneDaemon, eventually, item_pb, lease_pb, lock_pb, session_pb,
                    watch_pb)


class PythonClient(OneDaemon):
    def setUp(self):
        self.client = self.daemon.client()

    def tearDown(self):
        self.client.close()

    # 002.021, 002.022, 002.023, 002.024
    def test_a_lock_is_acquired_refused_to_others_and_released(self):
        one, two = self.client.lease(), self.client.lease()

        first = self.client.lock("py/a", one, metadata=b"why")
        busy = self.client.try_lock("py/a", two)
        self.client.unlock(one, first.fencing_token)
        second = self.client.try_lock("py/a", two)

        self.assertTrue(first.acquired)
        self.assertFalse(busy.acquired)
        self.assertEqual(busy.reason, lock_pb.REASON_WOULD_BLOCK)
        self.assertTrue(second.acquired)
        self.assertGreater(second.fencing_token, first.fencing_token)

    # 002.062, 002.066
    def test_a_waiter_is_granted_when_the_holder_unlocks(self):
        one, two = self.client.lease(), self.client.lease()
        held = self.client.lock("py/b", one)
        waiting = self.client.locks.Lock.future(
            lock_pb.LockRequest(name="py/b", lease_id=two), timeout=TIMEOUT)
        eventually(lambda: self.client.status().waits == 1, "one waits")

        self.client.unlock(one, held.fencing_token)

        self.assertTrue(waiting.result().acquired)
        self.assertEqual(waiting.result().queue_position, 1)

    # 002.026, 002.033, 002.064
    def test_keep_alive_renews_a_lease(self):
        lease = self.client.lease(ttl_ms=5000)
        answers = self.client.locks.LeaseKeepAlive(
            iter([lease_pb.LeaseKeepAliveRequest(id=lease),
                  lease_pb.LeaseKeepAliveRequest(id=1234567)]),
            timeout=TIMEOUT)

        self.assertEqual([answer.ttl_ms for answer in answers], [5000, 0])

    # 002.063, 002.070: in real time, with a real server.
    def test_the_lock_of_an_expired_lease_is_granted_to_the_next_waiter(self):
        short, waiter = self.client.lease(ttl_ms=300), self.client.lease()
        held = self.client.lock("py/c", short)

        granted = self.client.lock("py/c", waiter)

        self.assertTrue(granted.acquired)
        self.assertGreater(granted.fencing_token, held.fencing_token)
        with self.assertRaises(grpc.RpcError) as caught:
            self.client.unlock(short, held.fencing_token)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    # 002.027, 002.034, 002.036
    def test_a_watch_delivers_events(self):
        lease = self.client.lease()
        stop = threading.Event()

        def requests():
            yield watch_pb.WatchRequest(create=watch_pb.WatchCreate(key="py/d/", prefix=True))
            stop.wait(TIMEOUT)

        events = self.client.locks.Watch(requests(), timeout=TIMEOUT)
        self.assertTrue(next(events).created)
        held = self.client.lock("py/d/1", lease)
        self.client.unlock(lease, held.fencing_token)
        seen = []
        while len(seen) < 2:
            seen.extend(next(events).events)
        stop.set()
        events.cancel()

        self.assertEqual([event.type for event in seen],
                         [watch_pb.CHANGE_PUT, watch_pb.CHANGE_DELETE])
        self.assertEqual(seen[0].record.fencing_token, held.fencing_token)

    def test_a_session_executes_a_batch_of_operations(self):
        requests = [
            session_pb.SessionRequest(
                hello=session_pb.Hello(client="python"),
                operations=[session_pb.Operation(
                    id=1, grant_lease=session_pb.GrantLease(id=777, request_id=1))]),
            session_pb.SessionRequest(operations=[
                session_pb.Operation(id=2, acquire=session_pb.Acquire(
                    lease_id=777, request_id=2, items=[item_pb.Item(name="py/e")])),
                session_pb.Operation(id=3, release=session_pb.Release(lease_id=777, name="py/e")),
            ]),
        ]
        answers = self.client.locks.Session(iter(requests), timeout=TIMEOUT)
        outcomes = [outcome for response in answers for outcome in response.outcomes]

        self.assertEqual([outcome.id for outcome in outcomes], [1, 2, 3])
        self.assertEqual([outcome.WhichOneof("what") for outcome in outcomes],
                         ["lease_granted", "granted", "released"])

    # gRPC tools begin with health and reflection.
    def test_health_and_reflection_answer(self):
        # Encoded by hand, without generated code: field 1 is a string.
        check = self.client.channel.unary_unary("/grpc.health.v1.Health/Check")
        self.assertEqual(check(b"", timeout=TIMEOUT), b"\x08\x01")
        name = b"tenure.v1.LockService"
        self.assertEqual(check(b"\x0a" + bytes([len(name)]) + name, timeout=TIMEOUT), b"\x08\x01")
        reflect = self.client.channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        listing = b"".join(reflect(iter([b"\x3a\x01*"]), timeout=TIMEOUT))
        self.assertIn(b"tenure.v1.LockService", listing)
        self.assertIn(b"tenure.v1.Admin", listing)

    def test_calls_are_counted_by_method_and_code(self):
        self.client.lock("py/f", self.client.lease())
        with self.assertRaises(grpc.RpcError):
            self.client.lock("", 1)

        def counted(code):
            return (f'tenure_grpc_requests_total{{code="{code}",'
                    'method="/tenure.v1.LockService/Lock"} ')
        text = self.daemon.get("/metrics")[1]
        self.assertIn(counted("OK"), text)
        self.assertIn(counted("INVALID_ARGUMENT"), text)

    def test_a_reflected_file_comes_with_its_imports(self):
        reflect = self.client.channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        name = b"tenure.v1.LockService"
        ask = b"\x22" + bytes([len(name)]) + name
        found = b"".join(reflect(iter([ask]), timeout=TIMEOUT))
        for file in (b"tenure/v1/lock.proto", b"tenure/v1/lease.proto", b"tenure/v1/header.proto"):
            self.assertIn(file, found)

    def test_health_is_watched(self):
        watch = self.client.channel.unary_stream("/grpc.health.v1.Health/Watch")
        stream = watch(b"", timeout=TIMEOUT)
        self.assertEqual(next(stream), b"\x08\x01")
        stream.cancel()

    def test_a_deadlock_is_refused_with_its_cycle(self):
        one, two = self.client.lease(), self.client.lease()
        self.client.lock("py/x", one)
        self.client.lock("py/y", two)
        waiting = self.client.locks.Lock.future(
            lock_pb.LockRequest(name="py/y", lease_id=one), timeout=TIMEOUT)
        eventually(lambda: self.client.status().waits == 1, "one waits")

        refused = self.client.lock("py/x", two)
        waiting.cancel()

        self.assertEqual(refused.reason, lock_pb.REASON_DEADLOCK)
        self.assertEqual([step.name for step in refused.cycle], ["py/x", "py/y"])
        eventually(lambda: self.client.status().waits == 0, "the wait queue is empty")


if __name__ == "__main__":
    unittest.main()
