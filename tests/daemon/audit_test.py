#!/usr/bin/python3
"""Authorization and audit trail of a forced release: the HTTP secret without users, the log of the
leader, the event that names the operator, and the user of a lock."""

import hashlib
import json
import os
import pathlib
import select
import socket
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

import grpc

import cluster
from daemon import TIMEOUT, Daemon, admin_pb, eventually, watch_pb


class Relay:
    """A TCP relay on loopback. Like nginx and HAProxy by default, it adds no header to a request,
    and the server sees the address of the relay instead of that of the client."""

    def __init__(self, address):
        self.target = address
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                inbound, _ = self.server.accept()
            except OSError:
                return  # closed
            upstream = socket.create_connection(self.target, timeout=TIMEOUT)
            threading.Thread(target=self.pass_on, args=(inbound, upstream), daemon=True).start()

    @staticmethod
    def pass_on(*pair):
        with pair[0], pair[1]:
            while True:
                ready, _, _ = select.select(pair, (), (), TIMEOUT)
                for one in ready:
                    data = one.recv(65536)
                    if not data:
                        return
                    pair[1 - pair.index(one)].sendall(data)
                if not ready:
                    return

    def close(self):
        self.server.close()


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *flags):
        daemon = Daemon(self.folder / "store", *flags).start()
        self.addCleanup(lambda: daemon.process.poll() is not None or daemon.kill())
        return daemon.wait_for_version(2, "tenure_ops" if "--auth-file" in flags else None)

    def client(self, daemon, token=None):
        made = daemon.client(token)
        self.addCleanup(made.close)
        return made


class HttpSecret(InFolder):
    def relay(self, daemon):
        host, port = daemon.http_address.removeprefix("http://").rsplit(":", 1)
        made = Relay((host, int(port)))
        self.addCleanup(made.close)
        return f"http://127.0.0.1:{made.port}"

    @staticmethod
    def post(address, path, secret=None):
        fields = {"Tenure-Intent": "test"}
        if secret:
            fields["Authorization"] = f"Bearer {secret}"
        request = urllib.request.Request(address + path, b"{}", fields)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def test_a_request_through_a_plain_relay_changes_nothing_without_the_secret(self):
        daemon = self.start()
        client = self.client(daemon)
        token = client.lock("a", client.lease()).fencing_token
        relay = self.relay(daemon)

        for path in ("/v1/locks/a:force-release", f"/v1/locks/a:force-release?token={token}",
                     "/v1/locks/b:acquire", "/v1/leases", "/v1/login"):
            for secret in (None, "wrong"):
                self.assertIn(self.post(relay, path, secret),
                              (400, 403) if path == "/v1/login" else (403,), path)

        status, body = daemon.get("/v1/locks/a")
        self.assertEqual((status, json.loads(body)["holders"][0]["token"]), (200, str(token)))
        self.assertFalse([line for line in daemon.lines if line["event"] == "lock_forced"])
        self.assertEqual(self.post(relay, "/v1/locks/a:force-release", daemon.secret()), 200)

    def test_the_secret_is_readable_by_its_owner_only_and_is_kept(self):
        daemon = self.start()
        file = self.folder / "store/http_secret"

        self.assertEqual(file.stat().st_mode & 0o7777, 0o600)
        secret = daemon.secret()
        self.assertRegex(secret, "^tenure_[0-9a-f]{64}$")
        self.assertNotIn(secret, json.dumps(daemon.lines))
        self.assertEqual(daemon.stop(), 0)
        daemon.start()
        self.assertEqual(daemon.secret(), secret)
        self.assertEqual(daemon.post("/v1/locks/a:acquire", body="{}")[0], 200)

    def test_a_secret_readable_by_other_users_is_rejected(self):
        daemon = self.start()
        self.assertEqual(daemon.stop(), 0)
        os.chmod(self.folder / "store/http_secret", 0o644)

        daemon.spawn()
        line = daemon.wait_for_event("cannot_start")

        self.assertIn("0600", line["error"])
        self.assertNotEqual(daemon.reap(), 0)

    def test_no_secret_is_created_where_no_setting_needs_it(self):
        daemon = self.start("--listen-http-force", "off", "--listen-http-lock", "open")

        self.assertIsNone(daemon.secret())
        self.assertEqual(daemon.post("/v1/locks/a:acquire", body="{}")[0], 200)
        self.assertEqual(daemon.post("/v1/locks/a:force-release", body="{}")[0], 403)


class ForcedRelease(InFolder):
    def users(self):
        digest = {name: hashlib.sha256(f"tenure_{name}".encode()).hexdigest()
                  for name in ("ann", "ops")}
        file = self.folder / "users.toml"
        file.write_text(f'[users.ann]\ntokens = ["sha256:{digest["ann"]}"]\n'
                        f'rights = {{ "" = "lock" }}\n'
                        f'[users.ops]\ntokens = ["sha256:{digest["ops"]}"]\n'
                        f'rights = {{ "" = "admin" }}\n', encoding="utf-8")
        return "--auth-file", str(file)

    def forced_lines(self, node):
        return [line for line in node.lines if line["event"] == "lock_forced"]

    def forced_event(self, client, revision=1, metadata=()):
        """The first forced event of the history."""
        request = watch_pb.WatchRequest(create=watch_pb.WatchCreate(
            key="", prefix=True, start_revision=revision, previous_record=True))
        stream = client.locks.Watch(iter([request]), timeout=TIMEOUT, metadata=metadata)
        for response in stream:
            for event in response.events:
                if event.cause == watch_pb.EVENT_TYPE_FORCED:
                    stream.cancel()
                    return event
        raise AssertionError("the stream ended")

    def test_the_log_and_the_event_name_operator_holder_and_reason(self):
        daemon = self.start(*self.users())
        ann, ops = self.client(daemon, "tenure_ann"), self.client(daemon, "tenure_ops")
        lease = ann.lease()
        token = ann.lock("app/a", lease, owner="forged: ops").fencing_token

        ops.admin.ForceRelease(admin_pb.ForceReleaseRequest(name="app/a", reason="host is gone"),
                               timeout=TIMEOUT)
        eventually(lambda: self.forced_lines(daemon), "it is logged")

        line, = self.forced_lines(daemon)
        self.assertEqual(
            {key: line[key] for key in ("lock", "lease", "owner", "user", "token", "operator",
                                        "reason")},
            {"lock": "app/a", "lease": str(lease), "owner": "forged: ops", "user": "ann",
             "token": str(token), "operator": "ops", "reason": "host is gone"})
        event = self.forced_event(ops, metadata=[("authorization", "Bearer tenure_ops")])
        self.assertEqual((event.operator_name, event.reason, event.previous.user,
                          event.previous.owner), ("ops", "host is gone", "ann", "forged: ops"))

    def test_without_users_the_operator_is_an_address(self):
        daemon = self.start()
        client = self.client(daemon)
        client.lock("a", client.lease())
        client.lock("b", client.lease())

        client.admin.ForceRelease(admin_pb.ForceReleaseRequest(name="a"), timeout=TIMEOUT)
        self.assertEqual(daemon.post("/v1/locks/b:force-release", body='{"reason": "why"}')[0], 200)
        eventually(lambda: len(self.forced_lines(daemon)) == 2, "both are logged")

        first, second = self.forced_lines(daemon)
        self.assertRegex(first["operator"], r"^127\.0\.0\.1:\d+$")
        self.assertEqual((second["operator"], second["reason"]), ("127.0.0.1", "why"))

    def test_a_restart_does_not_log_a_forced_release_again(self):
        daemon = self.start()
        client = self.client(daemon)
        client.lock("a", client.lease())
        client.admin.ForceRelease(admin_pb.ForceReleaseRequest(name="a"), timeout=TIMEOUT)
        eventually(lambda: self.forced_lines(daemon), "it is logged")
        daemon.kill()
        daemon.lines.clear()

        daemon.start()
        client = self.client(daemon)
        client.lock("a", client.lease())

        self.assertEqual(self.forced_lines(daemon), [])

    def test_the_leader_logs_a_forced_release_and_other_members_do_not(self):
        with cluster.running() as nodes:
            client = nodes.client()
            client.lock("a", client.lease())
            for member in nodes.followers():
                follower = nodes.node(member)
                self.assertEqual(follower.post("/v1/locks/a:force-release", body="{}")[0], 503)
                direct = self.client(follower)
                with self.assertRaises(grpc.RpcError) as refused:
                    direct.admin.ForceRelease(admin_pb.ForceReleaseRequest(name="a"),
                                              timeout=TIMEOUT)
                self.assertEqual(refused.exception.code(), grpc.StatusCode.UNAVAILABLE)
            leader = nodes.leader()

            self.assertEqual(
                nodes.node(leader).post("/v1/locks/a:force-release", body="{}")[0], 200)
            eventually(lambda: self.forced_lines(nodes.node(leader)), "it is logged")
            # Once a follower has applied this later lock, it has applied the forced release, too.
            revision = client.lock("b", client.lease()).fencing_token
            for member in nodes.followers():
                node = nodes.node(member)
                eventually(lambda node=node: int(json.loads(node.get("/v1/status")[1])["revision"])
                           >= revision, "it has applied both")
                self.assertEqual(self.forced_lines(node), [])
            self.assertEqual(len(self.forced_lines(nodes.node(leader))), 1)

    def test_every_page_shows_the_user_beside_the_owner(self):
        daemon = self.start(*self.users())
        ann = self.client(daemon, "tenure_ann")
        lease = ann.lease()
        ann.lock("app/a", lease, owner="root")

        lock = json.loads(daemon.get("/v1/locks/app/a", "tenure_ann")[1])
        shown = json.loads(daemon.get(f"/v1/leases/{lease}", "tenure_ann")[1])
        listed = ann.admin.List(admin_pb.ListRequest(), timeout=TIMEOUT)

        self.assertEqual((lock["holders"][0]["owner"], lock["holders"][0]["user"]),
                         ("root", "ann"))
        self.assertEqual(shown["user"], "ann")
        self.assertEqual((listed.locks[0].holders[0].owner, listed.locks[0].holders[0].user),
                         ("root", "ann"))


if __name__ == "__main__":
    unittest.main()
