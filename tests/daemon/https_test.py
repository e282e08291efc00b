#!/usr/bin/python3
"""The HTTP port with TLS: the dashboard, JSON and events, with real certificates."""

import hashlib
import http.client
import json
import pathlib
import socket
import ssl
import subprocess
import tempfile
import unittest

import grpc

from daemon import Client, Daemon, TIMEOUT, eventually, run
from tls_test import Authority

INTENT = {"Tenure-Intent": "test"}


def trusted(daemon):
    """Headers that a changing request requires without users."""
    return INTENT | {"Authorization": f"Bearer {daemon.secret()}"}


class Https(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.ours, self.theirs = (Authority(folder.name, name) for name in ("ours", "theirs"))
        for authority, subject in ((self.ours, "server"), (self.ours, "client"),
                                   (self.theirs, "client")):
            authority.sign(subject)

    def users(self):
        """User ann with a token, and user worker with the certificate "client"."""
        digest = hashlib.sha256(b"secret").hexdigest()
        file = self.folder / "users.toml"
        file.write_text(f'[users.ann]\ntokens = ["sha256:{digest}"]\nrights = {{ "" = "lock" }}\n'
                        '[users.worker]\ncertificates = ["client"]\nrights = { "" = "read" }\n',
                        encoding="utf-8")
        return "--auth-file", str(file)

    def mutual(self):
        return "--tls-client-ca", self.ours.path("ca.pem")

    def start(self, *flags):
        daemon = Daemon(self.folder / "store", "--tls-cert", self.ours.path("server.pem"),
                        "--tls-key", self.ours.path("server.key"), *flags).start()
        self.addCleanup(daemon.kill)
        self.port = int(daemon.http_address.rsplit(":", 1)[1])
        return daemon

    def context(self, certificate=None, trusted=None):
        made = ssl.create_default_context(cafile=(trusted or self.ours).path("ca.pem"))
        if certificate:
            made.load_cert_chain(certificate.path("client.pem"), certificate.path("client.key"))
        return made

    def connection(self, **words):
        made = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=TIMEOUT,
                                           context=self.context(**words))
        self.addCleanup(made.close)
        return made

    @staticmethod
    def ask(connection, method, path, fields=None, body=None):
        """(status, headers, body) of the response, on a connection that stays open."""
        connection.request(method, path, body, fields or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()

    def test_a_tls_connection_serves_every_route_that_a_plain_one_does(self):
        daemon = self.start()
        connection = self.connection()

        self.assertEqual(self.ask(connection, "GET", "/readyz")[::2], (200, "ready\n"))
        page = self.ask(connection, "GET", "/", {"Accept": "text/html"})
        self.assertIn("<title>", page[2])
        # Larger than a TLS record.
        self.assertGreater(len(self.ask(connection, "GET", "/v1/openapi.json")[2]), 20_000)
        grant = self.ask(connection, "POST", "/v1/locks/a:acquire", trusted(daemon), "{}")
        self.assertEqual(grant[0], 200, grant)
        self.assertIn('"a"', self.ask(connection, "GET", "/v1/locks")[2])

    def test_curl_verifies_the_certificate_against_the_authority(self):
        self.start()
        url = f"https://127.0.0.1:{self.port}/healthz"

        good = subprocess.run(["curl", "-sS", "--http1.1", "--cacert", self.ours.path("ca.pem"),
                               url], capture_output=True, text=True, timeout=TIMEOUT, check=False)
        as_h2 = subprocess.run(["curl", "-sS", "--cacert", self.ours.path("ca.pem"), url],
                               capture_output=True, text=True, timeout=TIMEOUT, check=False)
        bad = subprocess.run(["curl", "-sS", url], capture_output=True, text=True,
                             timeout=TIMEOUT, check=False)

        self.assertEqual((good.stdout, as_h2.stdout), ("ok\n", "ok\n"), good.stderr + as_h2.stderr)
        self.assertEqual((bad.stdout, bad.returncode), ("", 60))

    def test_plain_http_on_the_tls_port_is_reported(self):
        self.start()
        plain = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        self.addCleanup(plain.close)

        status, _, body = self.ask(plain, "GET", "/v1/locks")

        self.assertEqual(status, 400)
        self.assertIn("https://", body)

    def test_events_are_delivered_and_a_disconnected_client_leaves_the_queue(self):
        daemon = self.start()
        stream = self.connection()
        stream.request("GET", "/v1/watch?prefix=q/")
        events = stream.getresponse()
        client = daemon_client(daemon, self.ours)
        self.addCleanup(client.close)
        client.lock("q/a", client.lease())
        seen = ""
        while "q/a" not in seen:
            seen += events.readline().decode()

        waiting = self.connection()
        waiting.request("POST", "/v1/locks/q/a:acquire", '{"wait_ms": 60000}',
                        trusted(daemon))
        looking = self.connection()
        queue = lambda: json.loads(self.ask(looking, "GET", "/v1/locks/q/a")[2])["waiter_count"]
        eventually(lambda: queue() == 1, "it waits")
        waiting.sock.unwrap()
        waiting.close()

        eventually(lambda: queue() == 0, "it has left")

    def test_a_login_sets_a_secure_cookie(self):
        self.start(*self.users())
        connection = self.connection()

        self.assertEqual(self.ask(connection, "GET", "/v1/locks")[0], 401)
        status, fields, _ = self.ask(connection, "POST", "/v1/login",
                                     INTENT | {"Authorization": "Bearer secret"})
        cookie = fields["Set-Cookie"]

        self.assertEqual(status, 200)
        self.assertIn("; Secure", cookie)
        self.assertIn("; HttpOnly", cookie)
        session = {"Cookie": cookie.split(";")[0]}
        self.assertEqual(self.ask(connection, "GET", "/v1/locks", session)[0], 200)

    def test_with_users_a_certificate_or_a_token_authenticates(self):
        self.start(*self.users(), *self.mutual())
        known, unknown = self.connection(certificate=self.ours), self.connection()
        user = lambda fields, connection: json.loads(
            self.ask(connection, "GET", "/v1/rights", fields)[2])["user"]

        self.assertEqual(user({}, known), "worker")
        self.assertEqual(user({"Authorization": "Bearer secret"}, known), "ann")
        self.assertEqual(user({"Authorization": "Bearer secret"}, unknown), "ann")
        self.assertEqual(user({}, unknown), "")
        self.assertEqual(self.ask(known, "GET", "/v1/locks")[0], 200)
        # A cookie of an expired login does not override the certificate.
        self.assertEqual(user({"Cookie": "tenure_session=old"}, known), "worker")
        self.assertEqual(self.ask(known, "POST", "/v1/locks/a:acquire", INTENT, "{}")[0], 403)
        self.assertEqual(self.ask(unknown, "GET", "/v1/locks")[0], 401)
        with self.assertRaises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            self.ask(self.connection(certificate=self.theirs), "GET", "/healthz")

    def test_without_users_a_client_certificate_is_required(self):
        self.start(*self.mutual())

        self.assertEqual(self.ask(self.connection(certificate=self.ours), "GET", "/v1/locks")[0],
                         200)
        with self.assertRaises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            self.ask(self.connection(), "GET", "/healthz")

    def test_a_client_with_a_certificate_may_resume_its_session(self):
        daemon = self.start(*self.mutual())
        for port, protocol in ((self.port, "http/1.1"),
                               (int(daemon.grpc_address.rsplit(":", 1)[1]), "h2")):
            context = self.context(certificate=self.ours)
            context.set_alpn_protocols([protocol])
            # In TLS 1.2 the session is known at the end of the handshake.
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            session, resumed = None, []
            for _ in range(2):
                with socket.create_connection(("127.0.0.1", port), TIMEOUT) as raw, \
                        context.wrap_socket(raw, server_hostname="127.0.0.1",
                                            session=session) as stream:
                    session = stream.session
                    resumed.append(stream.session_reused)
                    self.assertEqual(stream.selected_alpn_protocol(), protocol)
            self.assertEqual(resumed, [False, True], protocol)

    def test_plain_http_can_be_configured_for_a_local_proxy(self):
        daemon = self.start("--listen-http-tls", "off")

        self.assertEqual(daemon.get("/healthz"), (200, "ok\n"))

    def test_an_unusable_certificate_is_refused_by_setting(self):
        wrong = run("--data-dir", str(self.folder / "store"), "--listen-grpc", "127.0.0.1:0",
                    "--listen-http", "127.0.0.1:0", "--tls-cert", self.ours.path("server.pem"),
                    "--tls-key", self.ours.path("client.key"))

        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("tls.key", wrong.stderr)


def daemon_client(daemon, authority):
    """Client of the gRPC port, which uses the same certificates."""
    credentials = grpc.ssl_channel_credentials(authority.read("ca.pem"))
    return Client(grpc.secure_channel(daemon.grpc_address, credentials))


if __name__ == "__main__":
    unittest.main()
