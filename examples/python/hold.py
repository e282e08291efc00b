#!/usr/bin/python3
"""Acquires a lock of a running tenured, holds it for some seconds and releases it.

    hold.py NAME [--seconds 10] [--wait SECONDS] [--server 127.0.0.1:7420,...] [--ttl 9]
            [--token-file FILE] [--tls-ca FILE [--tls-cert FILE --tls-key FILE]]

It shows what a client in any language needs: code generated from proto/, following the leader of a
cluster and learning its members, keeping a lease alive, stopping before the lease can end at the
server, a Lock call that waits in the queue, TLS, a bearer token, and the fencing token for storage.
Exit codes: 69 no server, 75 not acquired, 77 not permitted, 79 lost. Requires Debian's
python3-grpcio, python3-protobuf and protobuf-compiler-grpc.
"""

import argparse
import importlib
import os
import pathlib
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time

import grpc

HOME = pathlib.Path(__file__).resolve().parent.parent.parent
CONNECT_SECONDS = 30  # timeout of the first call
REVOKE_SECONDS = 5    # timeout of the last call, which only frees the lease sooner
EXIT_CODES = {grpc.StatusCode.UNAUTHENTICATED: 77, grpc.StatusCode.PERMISSION_DENIED: 77,
              grpc.StatusCode.NOT_FOUND: 79}  # the lease has ended


def make_stubs(folder):
    """Generates Python modules from proto/; a build would do this once."""
    protos = sorted((HOME / "proto/tenure/v1").glob("*.proto"))
    subprocess.run(["protoc", "-I", str(HOME / "proto"), f"--python_out={folder}",
                    f"--grpc_out={folder}",
                    "--plugin=protoc-gen-grpc=/usr/bin/grpc_python_plugin", *map(str, protos)],
                   check=True)
    sys.path.insert(0, folder)
    return [importlib.import_module(f"tenure.v1.{name}")
            for name in ("lock_pb2", "lease_pb2", "lock_pb2_grpc", "admin_pb2", "admin_pb2_grpc")]


def now():
    """Seconds of a clock that no one sets and that also runs while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Access:
    """How to connect to a server: TLS and bearer token."""

    # A hanging server keeps its connections open; pings detect it.
    OPTIONS = [("grpc.keepalive_time_ms", 2000), ("grpc.keepalive_timeout_ms", 1000),
               ("grpc.http2.max_pings_without_data", 0)]

    def __init__(self, token_file=None, tls_ca=None, tls_cert=None, tls_key=None):
        self.metadata, self.tls = [], None
        if token_file:
            token = pathlib.Path(token_file).read_text(encoding="ascii").strip()
            self.metadata.append(("authorization", f"Bearer {token}"))
        if tls_ca:
            read = [pathlib.Path(file).read_bytes() if file else None
                    for file in (tls_ca, tls_key, tls_cert)]
            self.tls = grpc.ssl_channel_credentials(*read)

    def channel(self, server):
        if self.tls:
            return grpc.secure_channel(server, self.tls, options=self.OPTIONS)
        return grpc.insecure_channel(server, options=self.OPTIONS)


class Leader:
    """Sends calls to the leader of a cluster (docs/reference/grpc.md, "The leader").

    A call is a function of the service and of the options of gRPC, such as
    `lambda service, **options: service.Lock(request, **options)`."""

    HOPS_MAX = 4  # redirects followed without a pause

    def __init__(self, servers, access, stub, admin_stub):
        self.servers, self.access = servers, access
        self.stub, self.admin_stub = stub, admin_stub
        self.turn, self.hops, self.lock = 0, 0, threading.Lock()
        self.go_to(servers[0])

    def go_to(self, server):
        self.server = server
        self.channel = self.access.channel(server)
        self.service = self.stub(self.channel)

    def learn_members(self, request, timeout):
        """Replaces the list of servers by the current members: all initial servers may be replaced
        over time. Without a reply the list does not change."""
        try:
            members = self.admin_stub(self.channel).MemberList(
                request, timeout=timeout, metadata=self.access.metadata).members
        except grpc.RpcError:
            return
        self.servers = [one.client_address for one in members if one.client_address] or self.servers

    def ask(self, call, until=None, attempt=None):
        """Returns the leader's reply to the call. Retries when the leader changes or does not reply
        for `attempt` seconds, so the request must contain ids that stay the same across retries.
        Raises the last error when `until` (of now()) has passed."""
        while True:
            service = self.service
            limits = [attempt] if attempt else []
            if until is not None:
                limits.append(max(until - now(), 0))
            try:
                answer = call(service, timeout=min(limits, default=None),
                              metadata=self.access.metadata)
                self.hops = 0
                return answer
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.UNAVAILABLE,
                                        grpc.StatusCode.DEADLINE_EXCEEDED):
                    raise
                if until is not None and now() >= until:
                    raise
                with self.lock:
                    if service is self.service:  # else another thread has switched already
                        self.leave(dict(error.trailing_metadata() or ()).get("tenure-leader"))

    def leave(self, leader):
        if leader and leader != self.server and self.hops < self.HOPS_MAX:
            self.hops += 1
            self.go_to(leader)
            return
        self.hops = 0
        time.sleep(random.uniform(0.02, 0.2))
        self.turn += 1
        self.go_to(self.servers[self.turn % len(self.servers)])


class Lease:
    """A lease that two threads keep: one renews it, the other ends this process when the lease may
    end at the server. The local deadline counts from *before* the last confirmed renewal was sent,
    and ends earlier than the TTL by a margin for clocks of different rates. So this process stops
    before the server can grant the lock to the next client, also when the server hangs."""

    def __init__(self, leader, messages, admin_messages, ttl):
        self.leader, self.messages, self.admin = leader, messages, admin_messages
        self.ttl, self.over = ttl, threading.Event()
        # The client chooses the id, so it can retry the request safely.
        self.id = secrets.randbits(63)
        request = messages.LeaseGrantRequest(id=self.id, request_id=1, ttl_ms=int(ttl * 1000),
                                             client="hold.py")
        until = now() + CONNECT_SECONDS
        self.ask(lambda service, **options: service.LeaseGrant(request, **options), until)
        # The reply to a retry may be that of an earlier attempt, so its time is unknown: renew.
        self.ends = now()
        self.renew(until)
        for work in (self.watch, self.keep_alive):
            threading.Thread(target=work, daemon=True).start()

    def ask(self, call, until):
        # Short attempts: a cluster needs time to reply after its leader has begun to hang.
        return self.leader.ask(call, until, attempt=self.ttl / 6)

    def renew(self, until):
        """Renews the lease once and sets the local deadline, `ends`. The margin is that of the
        library (src/client/validity.hpp): 1 % of the TTL and 2 ms."""
        renewal = self.messages.LeaseKeepAliveRequest(id=self.id)
        sent = 0.0

        def send(service, **options):
            nonlocal sent
            sent = now()  # of this attempt: every attempt is a renewal of its own
            return next(service.LeaseKeepAlive(iter([renewal]), **options))

        reply = self.ask(send, until)
        if reply.ttl_ms == 0:
            self.lost("it has ended at the server")
            return
        ttl = reply.ttl_ms / 1000
        self.ends = sent + ttl - (ttl / 100 + 0.002)

    def watch(self):
        while (left := self.ends - now()) > 0:
            # In short steps: the time of wait() stops while the machine is suspended.
            if self.over.wait(min(left, 0.1)):
                return
        self.lost("no server has confirmed a renewal")

    def keep_alive(self):
        # Every third of the TTL, so two lost renewals are tolerated.
        while not self.over.wait(self.ttl / 3):
            try:
                self.renew(until=self.ends)
                self.leader.learn_members(self.admin.MemberListRequest(), timeout=self.ttl / 6)
            except grpc.RpcError as problem:  # watch() ends the process in time
                print(f"the lease is not renewed: {problem.code().name}", file=sys.stderr)

    def lost(self, why):
        """Ends this process, with all work that the lock protects."""
        if not self.over.is_set():  # else this program has revoked it
            print(f"the lease and its lock are lost: {why}", file=sys.stderr, flush=True)
            os._exit(79)

    def end(self):
        self.over.set()
        request = self.messages.LeaseRevokeRequest(id=self.id)
        try:
            self.leader.ask(lambda service, **options: service.LeaseRevoke(request, **options),
                            until=now() + REVOKE_SECONDS)
        except grpc.RpcError:
            pass  # It ends with its TTL.


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--seconds", type=float, default=10, help="how long to hold the lock")
    parser.add_argument("--server", default="127.0.0.1:7420", help="comma-separated addresses")
    parser.add_argument("--wait", type=float, help="timeout in seconds; default: none")
    parser.add_argument("--ttl", type=float, default=9, help="TTL of the lease in seconds")
    parser.add_argument("--token-file", help="file with the bearer token of a user")
    parser.add_argument("--tls-ca", help="PEM file: authority of the servers; turns TLS on")
    parser.add_argument("--tls-cert", help="PEM file: client certificate")
    parser.add_argument("--tls-key", help="PEM file: key of the client certificate")
    return parser.parse_args()


def main():
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        lock_pb2, lease_pb2, lock_pb2_grpc, admin_pb2, admin_pb2_grpc = make_stubs(folder)
    access = Access(options.token_file, options.tls_ca, options.tls_cert, options.tls_key)
    leader = Leader(options.server.split(","), access, lock_pb2_grpc.LockServiceStub,
                    admin_pb2_grpc.AdminStub)
    lease = Lease(leader, lease_pb2, admin_pb2, options.ttl)
    leader.learn_members(admin_pb2.MemberListRequest(), timeout=options.ttl / 6)

    request = lock_pb2.LockRequest(name=options.name, lease_id=lease.id, request_id=2,
                                   owner=f"pid {os.getpid()}")
    if options.wait is not None:
        request.timeout_ms = int(options.wait * 1000)
    held = leader.ask(lambda service, **call_options: service.Lock(request, **call_options))
    if held.acquired:
        print(f"{options.name} is held, fencing token {held.fencing_token}", flush=True)
        time.sleep(options.seconds)  # the work that the lock protects
        unlock = lock_pb2.UnlockRequest(lease_id=lease.id, fencing_token=held.fencing_token,
                                        request_id=3)
        leader.ask(lambda service, **call_options: service.Unlock(unlock, **call_options))
        print(f"{options.name} is released")
    else:
        print(f"{options.name}: {held.detail}")
    lease.end()
    return 0 if held.acquired else 75


if __name__ == "__main__":
    try:
        sys.exit(main())
    except grpc.RpcError as problem:
        print(f"{problem.code().name}: {problem.details()}", file=sys.stderr)
        sys.exit(EXIT_CODES.get(problem.code(), 69))
