#!/usr/bin/python3
"""Reload of certificates in a running tenured, by SIGHUP and by the Admin service, for clients and
between members; metrics of the certificates."""

import json
import pathlib
import re
import shutil
import signal
import socket
import ssl
import tempfile
import unittest

import grpc

from cluster_test import Cluster
from daemon import TIMEOUT, Client, Daemon, admin_pb, eventually
from tls_test import Authority

YEAR = 365 * 24 * 3600


def shown(address):
    """The server certificate of a new connection to this port, as PEM."""
    host, port = address.rsplit("/", 1)[-1].rsplit(":", 1)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    with socket.create_connection((host, int(port)), timeout=TIMEOUT) as plain:
        with context.wrap_socket(plain) as connection:
            return ssl.DER_cert_to_PEM_cert(connection.getpeercert(binary_form=True))


def certificate_of(authority, subject="server"):
    """The PEM block alone, without the text that openssl may print before it."""
    text = authority.read(f"{subject}.pem").decode()
    return text[text.index("-----BEGIN"):]


class Certificates(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.old, self.new = (Authority(folder.name, name) for name in ("old", "new"))
        for authority in (self.old, self.new):
            authority.sign("server")
        self.use(self.old)

    def use(self, authority):
        """Copies the certificate of this authority to the files that tenured reads."""
        for kind in ("pem", "key"):
            shutil.copy(authority.path(f"server.{kind}"), self.folder / f"tls.{kind}")

    def start(self):
        daemon = Daemon(self.folder / "store", "--tls-cert", str(self.folder / "tls.pem"),
                        "--tls-key", str(self.folder / "tls.key")).start()
        self.addCleanup(lambda: daemon.process.poll() is None and daemon.kill())
        return daemon

    def client(self, daemon, authority):
        credentials = grpc.ssl_channel_credentials(authority.read("ca.pem"))
        channel = grpc.secure_channel(daemon.grpc_address, credentials,
                                      options=[("grpc.use_local_subchannel_pool", 1)])
        self.addCleanup(channel.close)
        return Client(channel)

    def metric(self, daemon, series):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(("127.0.0.1", int(daemon.http_address.rsplit(":", 1)[1])),
                                      timeout=TIMEOUT) as plain:
            with context.wrap_socket(plain) as connection:
                connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
                                   b"Connection: close\r\n\r\n")
                text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        return float(re.search(rf"^{re.escape(series)} (\S+)", text, re.M)[1])

    def test_sighup_renews_both_ports_and_open_connections_stay(self):
        daemon = self.start()
        before = self.client(daemon, self.old)
        lease = before.lease()
        self.assertTrue(before.lock("a", lease).acquired)
        self.use(self.new)
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for_event("certificates_reloaded")

        self.assertEqual(shown(daemon.grpc_address), certificate_of(self.new))
        self.assertEqual(shown(daemon.http_address), certificate_of(self.new))
        self.assertTrue(before.lock("b", lease).acquired)
        self.assertTrue(self.client(daemon, self.new).lock("c", lease).acquired)
        self.assertEqual(daemon.stop(), 0)

    def test_a_failed_reload_keeps_the_old_certificates_and_is_counted(self):
        daemon = self.start()
        failures = 'tenure_reload_failed_total{what="certificates"}'
        self.assertEqual(self.metric(daemon, failures), 0)
        # The certificate of one authority with the key of the other.
        shutil.copy(self.new.path("server.pem"), self.folder / "tls.pem")
        daemon.process.send_signal(signal.SIGHUP)
        self.assertIn("tls.key", daemon.wait_for_event("certificate_reload_failed")["error"])

        self.assertEqual(shown(daemon.grpc_address), certificate_of(self.old))
        self.assertEqual(shown(daemon.http_address), certificate_of(self.old))
        self.assertEqual(self.metric(daemon, failures), 1)

        client = self.client(daemon, self.old)
        with self.assertRaises(grpc.RpcError) as caught:
            client.admin.ReloadUsers(admin_pb.ReloadUsersRequest(), timeout=TIMEOUT)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
        self.assertEqual(self.metric(daemon, failures), 2)

    def test_the_reload_command_renews_certificates_and_the_expiry_is_a_metric(self):
        daemon = self.start()
        expiry = 'tenure_certificate_expiry_seconds{kind="server"}'
        before = self.metric(daemon, expiry)
        self.new.openssl("x509", "-req", "-in", self.new.path("server.csr"), "-CA",
                         self.new.path("ca.pem"), "-CAkey", self.new.path("ca.key"),
                         "-CAcreateserial", "-days", "400", "-extfile",
                         self.new.path("server.ext"), "-out", self.new.path("server.pem"))
        self.use(self.new)
        client = self.client(daemon, self.old)
        client.admin.ReloadUsers(admin_pb.ReloadUsersRequest(), timeout=TIMEOUT)

        self.assertEqual(shown(daemon.grpc_address), certificate_of(self.new))
        self.assertGreater(self.metric(daemon, expiry), before + YEAR)


class PeerCertificates(unittest.TestCase):
    MEMBERS = (1, 2, 3)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.old, self.new = (Authority(folder.name, name) for name in ("old", "new"))
        for authority in (self.old, self.new):
            for member in self.MEMBERS:
                authority.sign(f"member{member}", member)

    def use(self, authority, *trusted):
        """Copies certificates of this authority, and a bundle of the trusted authorities, to the
        files that the members read."""
        for member in self.MEMBERS:
            for kind in ("pem", "key"):
                shutil.copy(authority.path(f"member{member}.{kind}"), self.file(member, kind))
        (self.folder / "bundle.pem").write_bytes(b"".join(one.read("ca.pem") for one in trusted))

    def file(self, member, kind):
        return str(self.folder / f"peer{member}.{kind}")

    def start(self):
        cluster = Cluster(self.folder, self.MEMBERS, lambda member: (
            "--peer-tls-cert", self.file(member, "pem"), "--peer-tls-key", self.file(member, "key"),
            "--peer-tls-ca", str(self.folder / "bundle.pem")))
        self.addCleanup(cluster.kill)
        return cluster.start()

    @staticmethod
    def reload(cluster):
        for daemon in cluster.daemons.values():
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for_event("certificates_reloaded")

    @staticmethod
    def term(cluster, member):
        return json.loads(cluster.daemons[member].get("/v1/cluster")[1])["term"]

    def test_members_move_to_another_authority_and_the_leader_stays(self):
        self.use(self.old, self.old)
        cluster = self.start()
        leader = cluster.leader()
        term = self.term(cluster, leader)
        client = cluster.daemons[leader].client()
        self.addCleanup(client.close)
        lease = client.lease()
        self.assertEqual(shown(cluster.peers[1]), certificate_of(self.old, "member1"))

        # First all members trust both authorities, then all use the new certificates, then all
        # trust the new authority alone.
        for name, authority, *trusted in (("both", self.old, self.old, self.new),
                                          ("shown", self.new, self.old, self.new),
                                          ("alone", self.new, self.new)):
            self.use(authority, *trusted)
            self.reload(cluster)
            self.assertTrue(client.lock(name, lease).acquired)

        for member in self.MEMBERS:
            # The event loop of the member installs them shortly after the log event.
            eventually(lambda one=member: shown(cluster.peers[one]) ==
                       certificate_of(self.new, f"member{one}"), "it shows the new certificate")
        self.assertEqual((cluster.leader(), self.term(cluster, leader)), (leader, term))

        # It trusts the new authority alone, so the others must use new certificates to connect.
        follower = cluster.daemons[next(one for one in self.MEMBERS if one != leader)]
        follower.kill()
        follower.start()
        eventually(lambda: follower.get("/readyz")[0] == 200, "the restarted member follows")
        self.assertTrue(client.lock("after", lease).acquired)


if __name__ == "__main__":
    unittest.main()
