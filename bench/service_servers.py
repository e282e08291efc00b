"""The servers that bench/run_service.py compares, and the programs that put load on them."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

ZOOKEEPER_JAR = pathlib.Path("/usr/share/java/zookeeper.jar")


def progress(text):
    """Prints a progress line that the next one overwrites; prints nothing in a pipe."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text)
        sys.stderr.flush()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def answers_http(url):
    """Returns a readiness check for Server."""
    def ask():
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False
    return ask


def answers_zookeeper(port):
    """The same by a four-letter command of ZooKeeper."""
    def ask():
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                connection.sendall(b"srvr")
                return b"Mode: standalone" in connection.recv(4096, socket.MSG_WAITALL)
        except OSError:
            return False
    return ask


class Server:
    """A server process with its own folder. It stops at the end of the `with` block."""

    def __init__(self, name, command, address, is_ready):
        self.name, self.address, self.http = name, address, None
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        began = time.monotonic()
        while not is_ready():
            if self.process.poll() is not None or time.monotonic() > began + 120:
                self.stop(signal.SIGKILL)
                self.log.seek(0)
                sys.exit(f"{name} does not start:\n{self.log.read().decode(errors='replace')}")
            time.sleep(0.002)
        self.start_seconds = time.monotonic() - began

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    def cpu_seconds(self):
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = stat.rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(re.search(r"^VmRSS:\s+(\d+) kB$", status, re.M).group(1))

    def metric(self, name):
        """Value of a metric of tenured without labels."""
        with urllib.request.urlopen(f"{self.http}/metrics") as answer:
            text = answer.read().decode()
        return float(re.search(rf"^{name} (\S+)$", text, re.M).group(1))

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()


def start_etcd(folder):
    client, peer = free_port(), free_port()
    urls = {"client": f"http://127.0.0.1:{client}", "peer": f"http://127.0.0.1:{peer}"}
    return Server("etcd", [
        "etcd", "--data-dir", str(folder / "etcd"), "--name", "bench",
        "--listen-client-urls", urls["client"], "--advertise-client-urls", urls["client"],
        "--listen-peer-urls", urls["peer"], "--initial-advertise-peer-urls", urls["peer"],
        "--initial-cluster", f"bench={urls['peer']}", "--log-level", "error",
    ], f"127.0.0.1:{client}", answers_http(f"{urls['client']}/health"))


def start_zookeeper(folder):
    """Debian's default configuration, except port, folder and the limit of connections."""
    port, files = free_port(), folder / "zookeeper"
    files.mkdir()
    config = files / "zoo.cfg"
    config.write_text(f"tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={files}\n"
                      f"clientPort={port}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n"
                      f"admin.enableServer=false\n", encoding="utf-8")
    if not ZOOKEEPER_JAR.exists():
        sys.exit(f"{ZOOKEEPER_JAR} is not there: run tools/setup.sh bench")
    return Server("zookeeper", [
        "java", "-cp", str(ZOOKEEPER_JAR), f"-Dzookeeper.log.dir={files}",
        "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config),
    ], f"127.0.0.1:{port}", answers_zookeeper(port))


def start_tenured(folder, options, name="tenure"):
    grpc, http = free_port(), free_port()
    url = f"http://127.0.0.1:{http}"
    server = Server("tenure", [
        str(options.build / "tenured"), "--data-dir", str(folder / name),
        "--listen-grpc", f"127.0.0.1:{grpc}", "--listen-http", f"127.0.0.1:{http}",
        "--log-level", "warning",
    ], f"127.0.0.1:{grpc}", answers_http(f"{url}/readyz"))
    server.http = url
    return server


def command_of(options, name, verb, server, *more):
    """Command of the load generator: library, tenure, etcd, zookeeper."""
    program = {"library": "library_load", "zookeeper": "zookeeper_load"}.get(name, "service_load")
    address = f"tenure://{server.address}" if name == "library" else server.address
    prefix = [name] if program == "service_load" else []
    return [str(options.build / "bench" / program), *prefix, verb, address, *map(str, more)]


def run(command):
    """Runs a load program to its end and returns its JSON output."""
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def begin(command):
    """Starts a load program that prints several JSON lines, which next_line() reads."""
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def next_line(process):
    line = process.stdout.readline()
    if not line:
        sys.exit(f"{' '.join(process.args)} printed nothing")
    return json.loads(line)
