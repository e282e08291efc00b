#!/usr/bin/python3
"""A tenured with users: tokens, rights, the users file, and its reload."""

import hashlib
import json
import pathlib
import signal
import subprocess
import tempfile
import unittest

import grpc

from daemon import TIMEOUT, Daemon, admin_pb, run, tenured_path


def digest(token):
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


def user(name, token, rights):
    rules = ", ".join(f'"{prefix}" = "{level}"' for prefix, level in rights.items())
    return f'[users.{name}]\ntokens = ["{digest(token)}"]\nrights = {{ {rules} }}\n'


class Auth(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.users = self.folder / "users.toml"

    def write(self, *users):
        self.users.write_text("".join(users), encoding="utf-8")

    def start(self):
        daemon = Daemon(self.folder / "store", "--auth-file", str(self.users)).start()
        self.addCleanup(daemon.kill)
        return daemon

    def client(self, daemon, token=None):
        made = daemon.client(token)
        self.addCleanup(made.close)
        return made

    def code_of(self, call):
        """Status code of the call; OK if it succeeds."""
        try:
            call()
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    def test_a_generated_token_grants_the_rights_of_its_user(self):
        made = subprocess.run([tenured_path(), "token"], capture_output=True, text=True,
                              timeout=TIMEOUT, check=True)
        token = made.stdout.strip()
        line = made.stderr.splitlines()[-1]
        self.assertRegex(token, "^tenure_[0-9a-f]{64}$")
        self.assertEqual(line, f'tokens = ["{digest(token)}"]')
        self.assertNotIn(token, made.stderr)
        self.users.write_text(f'[users.ann]\n{line}\nrights = {{ "a/" = "lock" }}\n')

        daemon = self.start()
        ann, anonymous = self.client(daemon, token), self.client(daemon)

        lease = ann.lease()
        self.assertTrue(ann.lock("a/x", lease).acquired)
        self.assertEqual(self.code_of(lambda: ann.lock("b/x", lease)),
                         grpc.StatusCode.PERMISSION_DENIED)
        self.assertEqual(self.code_of(anonymous.lease), grpc.StatusCode.UNAUTHENTICATED)
        self.assertEqual(self.code_of(self.client(daemon, "wrong").lease),
                         grpc.StatusCode.UNAUTHENTICATED)
        self.assertEqual(daemon.get("/healthz")[0], 200)
        self.assertEqual(daemon.get("/readyz")[0], 200)
        self.assertEqual(daemon.get("/v1/locks")[0], 401)
        self.assertEqual(daemon.get("/metrics", token)[0], 403)
        self.assertIn("a/x", daemon.get("/v1/locks", token)[1])
        self.assertFalse([line for line in daemon.lines if token in str(line)])

    def test_sighup_reloads_the_users_file_and_an_invalid_one_changes_nothing(self):
        self.write(user("ann", "t", {"a/": "lock"}))
        daemon = self.start()
        ann = self.client(daemon, "t")
        lease = ann.lease()
        self.assertTrue(ann.lock("a/1", lease).acquired)

        self.write(user("ann", "t", {"b/": "lock"}))
        daemon.process.send_signal(signal.SIGHUP)
        self.assertEqual(daemon.wait_for_event("auth_reloaded")["users"], 1)
        self.assertEqual(self.code_of(lambda: ann.lock("a/2", lease)),
                         grpc.StatusCode.PERMISSION_DENIED)
        self.assertTrue(ann.lock("b/1", lease).acquired)

        self.write(user("ann", "t", {"b/": "everything"}))
        daemon.process.send_signal(signal.SIGHUP)
        self.assertIn("users.toml:3:", daemon.wait_for_event("auth_reload_failed")["error"])
        self.assertTrue(ann.lock("b/2", lease).acquired)
        self.assertEqual(daemon.stop(), 0)

    def test_only_an_admin_can_reload_the_users(self):
        self.write(user("ops", "o", {"": "admin"}), user("ann", "t", {"a/": "lock"}))
        daemon = self.start()
        ops, ann = self.client(daemon, "o"), self.client(daemon, "t")
        self.write(user("ops", "o", {"": "admin"}))

        def reload(client):
            return client.admin.ReloadUsers(admin_pb.ReloadUsersRequest(), timeout=TIMEOUT)

        self.assertEqual(self.code_of(lambda: reload(ann)), grpc.StatusCode.PERMISSION_DENIED)
        self.assertEqual(self.code_of(ann.lease), grpc.StatusCode.OK)
        self.assertEqual(reload(ops).users, 1)
        self.assertEqual(self.code_of(ann.lease), grpc.StatusCode.UNAUTHENTICATED)

    def test_a_denied_http_request_is_logged_and_counted(self):
        self.write(user("ann", "secret", {"a/": "lock", "": "none"}),
                   user("ops", "root", {"": "admin"}))
        daemon = self.start()
        foreign = json.loads(daemon.post("/v1/leases", "root")[1])["lease"]

        for path in ("/v1/locks/b", "/v1/locks?prefix=b/", "/v1/watch?prefix=b/"):
            self.assertEqual(daemon.get(path, "secret")[0], 403, path)
        self.assertEqual(daemon.post("/v1/tokens:check", "secret", '{"name":"b","token":1}')[0],
                         403)
        self.assertEqual(daemon.post("/v1/locks/a/x:force-release", "secret")[0], 403)
        self.assertEqual(daemon.post("/v1/locks/b:acquire", "secret")[0], 403)
        self.assertEqual(daemon.post(f"/v1/leases/{foreign}:revoke", "secret")[0], 410)

        logged = [daemon.wait_for_event("denied") for _ in range(4)]
        self.assertEqual([(line["principal"], line["verb"], line["name"]) for line in logged],
                         [("ann", "read", "b"), ("ann", "admin", "a/x"), ("ann", "lock", "b"),
                          ("ann", "lease", foreign)])
        self.assertEqual(logged[0]["address"], "127.0.0.1")
        metrics = daemon.get("/metrics", "root")[1]
        for verb, times in (("read", 4), ("admin", 1), ("lock", 1), ("lease", 1)):
            self.assertIn(f'tenure_denied_total{{verb="{verb}"}} {times}', metrics)

    def test_a_denial_is_logged_once_with_principal_and_action_and_counted(self):
        self.write(user("ops", "o", {"": "admin"}), user("ann", "t", {"a/": "lock"}))
        daemon = self.start()
        ann, anonymous = self.client(daemon, "t"), self.client(daemon)
        lease = ann.lease()

        for _ in range(5):
            self.code_of(lambda: ann.lock("b/secret", lease))
            self.code_of(anonymous.lease)

        logged = daemon.wait_for_event("denied")
        self.assertEqual((logged["principal"], logged["verb"], logged["name"]),
                         ("ann", "lock", "b/secret"))
        anonymous = daemon.wait_for_event("denied")
        self.assertEqual((anonymous["principal"], anonymous["verb"]), ("127.0.0.1", "identify"))
        metrics = daemon.get("/metrics", "o")[1]
        self.assertIn('tenure_denied_total{verb="lock"} 5', metrics)
        self.assertIn('tenure_denied_total{verb="identify"} 5', metrics)
        daemon.stop()
        self.assertEqual(len([line for line in daemon.lines if line["event"] == "denied"]), 2)

    def test_without_users_every_request_is_allowed_and_sighup_is_harmless(self):
        daemon = Daemon(self.folder / "store").start()
        self.addCleanup(daemon.kill)

        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for_event("nothing_to_reload")

        client = self.client(daemon)
        self.assertTrue(client.lock("a", client.lease()).acquired)
        self.assertEqual(self.code_of(lambda: client.admin.ReloadUsers(
            admin_pb.ReloadUsersRequest(), timeout=TIMEOUT)), grpc.StatusCode.FAILED_PRECONDITION)
        self.assertEqual(daemon.stop(), 0)

    def test_an_invalid_or_missing_users_file_prevents_the_start(self):
        self.users.write_text("[users.ann]\nrights = {}\n", encoding="utf-8")
        flags = ("--data-dir", str(self.folder / "store"), "--auth-file", str(self.users),
                 "--listen-grpc", "127.0.0.1:0", "--listen-http", "127.0.0.1:0")

        wrong = run(*flags)
        self.assertEqual(wrong.returncode, 78, wrong.stderr)
        self.assertIn("users.toml:1:", wrong.stderr)
        self.users.unlink()
        self.assertEqual(run(*flags).returncode, 78)
        self.assertFalse((self.folder / "store").exists())

    def test_a_public_address_requires_tls_and_users(self):
        self.write(user("ann", "t", {"": "lock"}))
        flags = ("--data-dir", str(self.folder / "store"), "--listen-grpc", "0.0.0.0:0",
                 "--listen-http", "off")

        for more in ((), ("--auth-file", str(self.users))):
            refused = run(*flags, *more)
            self.assertEqual(refused.returncode, 78, refused.stderr)
            self.assertIn("is reachable from the network", refused.stderr)


if __name__ == "__main__":
    unittest.main()
