#!/usr/bin/python3
"""Administers a cluster of tenured over gRPC: members, leadership, snapshots.

    admin.py [--server 127.0.0.1:7420,...] members
    admin.py ... add ID PEER_ADDRESS CLIENT_ADDRESS    REQUIRES: it runs, with --join
    admin.py ... remove ID
    admin.py ... transfer [ID]                         leadership; default: most complete log
    admin.py ... snapshot                              on each server of --server, in turn

Each command goes to the leader, found through the servers of --server, and returns when the change
is complete.
"""

import argparse
import importlib
import sys
import tempfile

import grpc

import hold


def members(admin, leader, _):
    answer = leader.ask(lambda service: service.MemberList(admin.MemberListRequest(), timeout=10))
    for member in answer.members:
        role = "leader" if member.is_leader else "voter" if member.is_voter else "learner"
        print(f"member {member.id} {role}, peer address {member.peer_address}, "
              f"client address {member.client_address}")


def add(admin, leader, words):
    request = admin.MemberAddRequest(id=int(words[0]), peer_address=words[1],
                                     client_address=words[2])
    leader.ask(lambda service: service.MemberAdd(request, timeout=600))
    print(f"member {words[0]} is a voter")


def remove(admin, leader, words):
    request = admin.MemberRemoveRequest(id=int(words[0]))
    leader.ask(lambda service: service.MemberRemove(request, timeout=60))
    print(f"member {words[0]} is removed")


def transfer(admin, leader, words):
    request = admin.TransferLeadershipRequest(to=int(words[0]) if words else 0)
    leader.ask(lambda service: service.TransferLeadership(request, timeout=10))
    print("leadership transferred")


def snapshot(admin, leader, _):
    for server in leader.servers:
        leader.go_to(server)
        index = leader.service.Snapshot(admin.SnapshotRequest(), timeout=600).index
        print(f"{server}: snapshot contains the log up to entry {index}")


VERBS = {"members": (members, 0, 0), "add": (add, 3, 3), "remove": (remove, 1, 1),
         "transfer": (transfer, 0, 1), "snapshot": (snapshot, 0, 0)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="127.0.0.1:7420", help="comma-separated addresses")
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    verb, fewest, most = VERBS[options.verb]
    if not fewest <= len(options.words) <= most:
        parser.error(f"{options.verb} takes {fewest} to {most} arguments")
    with tempfile.TemporaryDirectory() as folder:
        hold.make_stubs(folder)
        admin, admin_grpc = (importlib.import_module(f"tenure.v1.{name}")
                             for name in ("admin_pb2", "admin_pb2_grpc"))
    verb(admin, hold.Leader(options.server.split(","), admin_grpc.AdminStub), options.words)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except grpc.RpcError as problem:
        print(f"{problem.code().name}: {problem.details()}", file=sys.stderr)
        sys.exit(69)
