#!/usr/bin/python3
"""The gRPC port with TLS, with real certificates made by openssl."""

import pathlib
import subprocess
import tempfile
import unittest

import grpc

from daemon import Client, Daemon, TIMEOUT, run


class Authority:
    """Certificate authority with its files in a folder."""

    def __init__(self, folder, name):
        self.folder, self.name = pathlib.Path(folder), name
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                     "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", self.path("ca.key"),
                     "-out", self.path("ca.pem"))

    def sign(self, subject, member=None):
        """Creates subject.pem and subject.key; with a member id, a certificate of that member."""
        names = "IP:127.0.0.1,DNS:localhost" + (f",URI:tenure:member/{member}" if member else "")
        request, extensions = self.path(f"{subject}.csr"), self.path(f"{subject}.ext")
        pathlib.Path(extensions).write_text(f"subjectAltName={names}\n", encoding="utf-8")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                     "-subj", f"/CN={subject}", "-keyout", self.path(f"{subject}.key"),
                     "-out", request)
        self.openssl("x509", "-req", "-in", request, "-CA", self.path("ca.pem"), "-CAkey",
                     self.path("ca.key"), "-CAcreateserial", "-days", "2", "-extfile", extensions,
                     "-out", self.path(f"{subject}.pem"))

    def path(self, file):
        return str(self.folder / f"{self.name}.{file}")

    def read(self, file):
        return pathlib.Path(self.path(file)).read_bytes()

    @staticmethod
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=TIMEOUT)


class Tls(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.ours, self.theirs = (Authority(folder.name, name) for name in ("ours", "theirs"))
        self.ours.sign("server")
        self.ours.sign("client")
        self.theirs.sign("client")

    def start(self):
        daemon = Daemon(self.folder / "store", "--tls-cert", self.ours.path("server.pem"),
                        "--tls-key", self.ours.path("server.key"),
                        "--tls-client-ca", self.ours.path("ca.pem")).start()
        self.addCleanup(daemon.kill)
        return daemon

    def client(self, daemon, certificate=None, trusted=None):
        key = certificate.read("client.key") if certificate else None
        chain = certificate.read("client.pem") if certificate else None
        root = (trusted or self.ours).read("ca.pem")
        credentials = grpc.ssl_channel_credentials(root, key, chain)
        channel = grpc.secure_channel(daemon.grpc_address, credentials)
        self.addCleanup(channel.close)
        return Client(channel)

    def refused(self, client):
        with self.assertRaises(grpc.RpcError) as caught:
            client.status()
        return caught.exception.code()

    def test_only_clients_with_a_certificate_of_the_authority_get_locks(self):
        daemon = self.start()
        client = self.client(daemon, self.ours)

        self.assertTrue(client.lock("a", client.lease()).acquired)
        # Many large requests, so that messages span several TLS records.
        held = [client.lock(f"{n}", client.lease(), metadata=b"m" * 4000) for n in range(100)]
        self.assertTrue(all(one.acquired for one in held))
        self.assertEqual(client.status().holds, 101)

        unavailable = grpc.StatusCode.UNAVAILABLE
        self.assertEqual(self.refused(self.client(daemon)), unavailable)
        self.assertEqual(self.refused(self.client(daemon, self.theirs)), unavailable)
        self.assertEqual(self.refused(self.client(daemon, self.ours, self.theirs)), unavailable)
        self.assertEqual(self.refused(daemon.client()), unavailable)
        self.assertEqual(client.status().holds, 101)

    def test_a_key_of_another_certificate_is_refused_by_name(self):
        wrong = run("--data-dir", str(self.folder / "store"), "--listen-grpc", "127.0.0.1:0",
                    "--listen-http", "off", "--tls-cert", self.ours.path("server.pem"),
                    "--tls-key", self.ours.path("client.key"),
                    "--tls-client-ca", self.ours.path("ca.pem"))

        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("tls.key", wrong.stderr)


if __name__ == "__main__":
    unittest.main()
