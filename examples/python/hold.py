#!/usr/bin/python3
"""Acquires a lock of a running tenured, holds it for some seconds and releases it.

    hold.py NAME [--seconds 10] [--server 127.0.0.1:7420,...] [--wait SECONDS]

It shows what a client in any language needs: code generated from proto/, following the leader of a
cluster and learning its members, keeping a lease alive, a Lock call that waits in the queue, and
the fencing token for storage. Requires Debian's python3-grpcio, python3-protobuf and
protobuf-compiler-grpc.
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


class Leader:
    """Sends calls to the leader of a cluster (docs/reference/grpc.md, "The leader")."""

    HOPS_MAX = 4  # redirects followed without a pause
    # A hanging leader keeps its connections open; pings detect it.
    OPTIONS = [("grpc.keepalive_time_ms", 2000), ("grpc.keepalive_timeout_ms", 1000),
               ("grpc.http2.max_pings_without_data", 0)]

    def __init__(self, servers, stub):
        self.servers, self.stub = servers, stub
        self.turn, self.hops, self.lock = 0, 0, threading.Lock()
        self.go_to(servers[0])

    def go_to(self, server):
        self.server = server
        self.channel = grpc.insecure_channel(server, options=self.OPTIONS)
        self.service = self.stub(self.channel)

    def learn_members(self, admin_stub, request):
        """Replaces the list of servers by the current members: all initial servers may be replaced
        over time. Without a reply the list does not change."""
        try:
            members = admin_stub(self.channel).MemberList(request, timeout=1).members
        except grpc.RpcError:
            return
        self.servers = [one.client_address for one in members if one.client_address] or self.servers

    def ask(self, call):
        """Returns the leader's reply to call(service). Retries when the leader changes, so the
        request must contain ids that stay the same across retries."""
        while True:
            service = self.service
            try:
                answer = call(service)
                self.hops = 0
                return answer
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE:
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--seconds", type=float, default=10, help="how long to hold the lock")
    parser.add_argument("--server", default="127.0.0.1:7420", help="comma-separated addresses")
    parser.add_argument("--wait", type=float, help="timeout in seconds; default: none")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lock_pb2, lease_pb2, lock_pb2_grpc, admin_pb2, admin_pb2_grpc = make_stubs(folder)
    leader = Leader(options.server.split(","), lock_pb2_grpc.LockServiceStub)

    # The client chooses the ids, so it can retry the request safely.
    lease = lease_pb2.LeaseGrantRequest(id=secrets.randbits(63), request_id=1, ttl_ms=9000,
                                        client="hold.py")
    leader.ask(lambda service: service.LeaseGrant(lease))
    leader.learn_members(admin_pb2_grpc.AdminStub, admin_pb2.MemberListRequest())
    over = threading.Event()

    def keep_alive():
        # Every third of the TTL, so two lost renewals are tolerated.
        while not over.wait(lease.ttl_ms / 3000):
            renewal = lease_pb2.LeaseKeepAliveRequest(id=lease.id)
            answer = leader.ask(lambda service: next(service.LeaseKeepAlive(iter([renewal]))))
            if answer.ttl_ms == 0 and not over.is_set():  # else this program has revoked it
                print("the lease and its lock are lost", file=sys.stderr)
                os._exit(79)
            leader.learn_members(admin_pb2_grpc.AdminStub, admin_pb2.MemberListRequest())

    threading.Thread(target=keep_alive, daemon=True).start()
    request = lock_pb2.LockRequest(name=options.name, lease_id=lease.id, request_id=2,
                                   owner=f"pid {os.getpid()}")
    if options.wait is not None:
        request.timeout_ms = int(options.wait * 1000)
    held = leader.ask(lambda service: service.Lock(request))
    if not held.acquired:
        print(f"{options.name}: {held.detail}")
        return 75
    print(f"{options.name} is held, fencing token {held.fencing_token}", flush=True)
    over.wait(options.seconds)
    unlock = lock_pb2.UnlockRequest(lease_id=lease.id, fencing_token=held.fencing_token,
                                    request_id=3)
    leader.ask(lambda service: service.Unlock(unlock))
    over.set()
    leader.ask(lambda service: service.LeaseRevoke(lease_pb2.LeaseRevokeRequest(id=lease.id)))
    print(f"{options.name} is released")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except grpc.RpcError as problem:
        print(f"{problem.code().name}: {problem.details()}", file=sys.stderr)
        sys.exit(69)
