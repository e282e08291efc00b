"""Real servers of other kinds for the tests of `tenure`: Redis, etcd, ZooKeeper. Each is started on
a free port of loopback, with its files in a folder of the test, and killed at the end."""

import pathlib
import socket
import subprocess

from command import TIMEOUT, eventually

from cluster import free_ports


def answers(port, question=b"", expected=b""):
    """Whether a server on this port sends the expected reply."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as line:
            line.sendall(question)
            return not expected or expected in line.recv(4096)
    except OSError:
        return False


class Server:
    """One process. `ports` are those that it listens on."""

    def __init__(self, words, ports, question=b"", expected=b""):
        self.port = ports[0]
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        try:
            eventually(lambda: self.process.poll() is not None or
                       answers(self.port, question, expected), f"{words[0]} answers")
            assert self.process.poll() is None, f"{words} ended"
        except BaseException:
            self.end()
            raise

    def end(self):
        self.process.kill()
        self.process.wait(TIMEOUT)


def redis(folder, *flags):
    port = free_ports(1)[0]
    return Server(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                   "--dir", str(folder), *flags], [port], b"PING\r\n", b"\r\n")


def etcd(folder):
    ports = free_ports(2)
    clients, peers = (f"http://127.0.0.1:{port}" for port in ports)
    return Server(["etcd", "--data-dir", f"{folder}/etcd", "--listen-client-urls", clients,
                   "--advertise-client-urls", clients, "--listen-peer-urls", peers,
                   "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}",
                   "--log-level", "error", "--unsafe-no-fsync"], ports,
                  b"GET /health HTTP/1.0\r\n\r\n", b"true")


def zookeeper(folder):
    port = free_ports(1)[0]
    home = pathlib.Path(folder) / "zookeeper"
    home.mkdir()
    (home / "zoo.cfg").write_text(
        f"tickTime=2000\ninitLimit=50\nsyncLimit=25\ndataDir={home}\nclientPort={port}\n"
        "clientPortAddress=127.0.0.1\nmaxClientCnxns=0\nadmin.enableServer=false\n"
        "4lw.commands.whitelist=*\n", encoding="utf-8")
    return Server(["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m",
                   "-Dzookeeper.forceSync=no", f"-Dzookeeper.log.dir={home}", "-cp",
                   "/usr/share/java/zookeeper.jar",
                   "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(home / "zoo.cfg")],
                  [port], b"srvr", b"Mode: ")
