#!/usr/bin/python3
"""Takes a lock of a running tenured, holds it for some seconds, gives it back.

    hold.py NAME [--seconds 10] [--server 127.0.0.1:7420] [--wait SECONDS]

It shows all that a client in whatever language needs: code made from proto/, a lease that is kept
alive, a Lock call that waits its turn, and the fencing token to show to storage. Needs Debian's
python3-grpcio, python3-protobuf and protobuf-compiler-grpc.
"""

import argparse
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

import grpc

HOME = pathlib.Path(__file__).resolve().parent.parent.parent


def make_stubs(folder):
    """What a build would do once: Python modules from the protocol's files."""
    protos = sorted((HOME / "proto/tenure/v1").glob("*.proto"))
    subprocess.run(["protoc", "-I", str(HOME / "proto"), f"--python_out={folder}",
                    f"--grpc_out={folder}",
                    "--plugin=protoc-gen-grpc=/usr/bin/grpc_python_plugin", *map(str, protos)],
                   check=True)
    sys.path.insert(0, folder)
    return [importlib.import_module(f"tenure.v1.{name}")
            for name in ("lock_pb2", "lease_pb2", "lock_pb2_grpc")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--seconds", type=float, default=10, help="how long to hold it")
    parser.add_argument("--server", default="127.0.0.1:7420")
    parser.add_argument("--wait", type=float, help="give up after so many seconds; default: never")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lock_pb2, lease_pb2, lock_pb2_grpc = make_stubs(folder)
    service = lock_pb2_grpc.LockServiceStub(grpc.insecure_channel(options.server))

    lease = service.LeaseGrant(lease_pb2.LeaseGrantRequest(ttl_ms=9000, client="hold.py"))
    over = threading.Event()

    def renewals():
        # Every third of the time to live: two may get lost.
        while not over.wait(lease.ttl_ms / 3000):
            yield lease_pb2.LeaseKeepAliveRequest(id=lease.id)

    def keep_alive():
        try:
            for answer in service.LeaseKeepAlive(renewals()):
                if answer.ttl_ms == 0:
                    print("the lease is lost, and the lock with it", file=sys.stderr)
                    os._exit(79)
        except grpc.RpcError as error:
            print(f"no renewal any more: {error.details()}", file=sys.stderr)

    threading.Thread(target=keep_alive, daemon=True).start()
    request = lock_pb2.LockRequest(name=options.name, lease_id=lease.id, owner=f"pid {os.getpid()}")
    if options.wait is not None:
        request.timeout_ms = int(options.wait * 1000)
    held = service.Lock(request)
    if not held.acquired:
        print(f"{options.name}: {held.detail}")
        return 75
    print(f"{options.name} is held, fencing token {held.fencing_token}", flush=True)
    over.wait(options.seconds)
    service.Unlock(lock_pb2.UnlockRequest(lease_id=lease.id, fencing_token=held.fencing_token))
    over.set()
    service.LeaseRevoke(lease_pb2.LeaseRevokeRequest(id=lease.id))
    print(f"{options.name} is free again")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except grpc.RpcError as problem:
        print(f"{problem.code().name}: {problem.details()}", file=sys.stderr)
        sys.exit(69)
