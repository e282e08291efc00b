"""Test fixture: a real tenured on free loopback ports with its files in a temporary folder, and a
Python client with gRPC stubs generated from proto/."""

import atexit
import contextlib
import importlib
import json
import os
import pathlib
import queue
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import grpc

HOME = pathlib.Path(__file__).resolve().parent.parent.parent
TIMEOUT = 30  # seconds, for every blocking step of a test


def make_stubs():
    """Generates the Python modules once per process and returns them by name."""
    out = tempfile.mkdtemp(prefix="tenure_stubs.")
    atexit.register(shutil.rmtree, out)
    protos = sorted((HOME / "proto/tenure/v1").glob("*.proto"))
    subprocess.run(["protoc", "-I", str(HOME / "proto"), f"--python_out={out}", f"--grpc_out={out}",
                    "--plugin=protoc-gen-grpc=/usr/bin/grpc_python_plugin", *map(str, protos)],
                   check=True)
    sys.path.insert(0, out)
    return {proto.stem: importlib.import_module(f"tenure.v1.{proto.stem}_pb2") for proto in protos
            } | {f"{name}_grpc": importlib.import_module(f"tenure.v1.{name}_pb2_grpc")
                 for name in ("lock", "admin")}


STUBS = make_stubs()
lock_pb, lease_pb, watch_pb = STUBS["lock"], STUBS["lease"], STUBS["watch"]
item_pb, session_pb, admin_pb = STUBS["item"], STUBS["session"], STUBS["admin"]


def tenured_path():
    """Path of the binary: the environment variable TENURED, else the dev build."""
    return os.environ.get("TENURED", str(HOME / "build/dev/tenured"))


def run(*flags):
    """Runs tenured until it exits by itself."""
    return subprocess.run([tenured_path(), *flags], capture_output=True, text=True,
                          timeout=TIMEOUT, check=False)


class Bearer(grpc.UnaryUnaryClientInterceptor):
    """Adds a bearer token to every unary call."""

    def __init__(self, token):
        self.line = ("authorization", f"Bearer {token}")

    def intercept_unary_unary(self, continuation, client_call_details, request):
        lines = [*(client_call_details.metadata or ()), self.line]
        return continuation(Details(client_call_details, lines), request)


class Details(grpc.ClientCallDetails):
    """Details of a call, with other metadata."""

    def __init__(self, before, metadata):
        self.method, self.timeout, self.metadata = before.method, before.timeout, metadata
        self.credentials, self.wait_for_ready = before.credentials, before.wait_for_ready
        self.compression = before.compression


class Daemon:
    """One tenured. It can be started and stopped repeatedly; its folder is kept."""

    def __init__(self, folder, *flags):
        self.folder, self.flags = pathlib.Path(folder), flags
        self.switches = ()  # flags without a value
        self.prefix = ()    # prefix of the command: `env A=B`, `ip netns exec C`
        self.program = None  # binary instead of tenured_path()
        self.process = None
        self.lines = []  # parsed log lines
        self.token = None   # default bearer token of its clients
        self.authority = None  # file of the authority that signed its certificate, for HTTPS

    def start(self):
        """Returns when the server is ready; otherwise raises an error with its log."""
        self.spawn()
        ready = self.wait_for_event("ready")
        self.grpc_address = f"127.0.0.1:{ready['grpc_port']}"
        scheme = "https" if ready.get("https") else "http"
        self.http_address = f"{scheme}://127.0.0.1:{ready['http_port']}"
        return self

    def spawn(self):
        flags = {"--data-dir": str(self.folder), "--listen-grpc": "127.0.0.1:0",
                 "--listen-http": "127.0.0.1:0", "--log-format": "json"}
        flags |= dict(zip(self.flags[::2], self.flags[1::2]))
        command = [*self.prefix, self.program or tenured_path(),
                   *(word for flag in flags.items() for word in flag), *self.switches]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True, errors="replace")
        self.arrived = queue.Queue()
        self.reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self.reader.start()

    def _read(self, process):
        for line in process.stderr:
            try:
                entry = json.loads(line)
            except ValueError:
                entry = {"event": "text", "text": line}
            self.lines.append(entry)
            self.arrived.put(entry)
        self.arrived.put(None)

    def wait_for_event(self, event):
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                entry = self.arrived.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                entry = None
            if entry is None:
                self.kill()
                raise AssertionError(f"no event {event!r} in the log: {self.lines}")
            if entry["event"] == event:
                return entry

    def kill(self):
        """kill -9."""
        self.process.kill()
        self.reap()

    def stop(self):
        """Sends SIGTERM and returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.reap()

    def reap(self):
        """Waits for the process to exit and returns the exit code."""
        code = self.process.wait(TIMEOUT)
        self.reader.join(TIMEOUT)
        self.process.stderr.close()
        return code

    def channel(self):
        return grpc.insecure_channel(self.grpc_address,
                                     options=[("grpc.use_local_subchannel_pool", 1)])

    def client(self, token=None):
        token = token or self.token
        return Client(grpc.intercept_channel(self.channel(), Bearer(token)) if token
                      else self.channel())

    def get(self, path, token=None):
        """(status, body) of a GET."""
        return self.ask(path, token)

    def post(self, path, token=None, body=""):
        """(status, body) of a POST with the Tenure-Intent header."""
        return self.ask(path, token, body.encode())

    def wait_for_version(self, version, token=None):
        """Waits for this cluster version, which the leader raises after its election."""
        eventually(lambda: json.loads(self.get("/v1/cluster", token or self.token)[1]).get(
            "cluster_version") == str(version), f"cluster version {version}")
        return self

    def secret(self):
        """The secret that HTTP requires for changes without users; None with users."""
        file = self.folder / "http_secret"
        return file.read_text(encoding="utf-8").strip() if file.exists() else None

    def ask(self, path, token=None, body=None):
        if body is not None:
            token = token or self.secret()
        fields = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            fields["Tenure-Intent"] = "test"
        request = urllib.request.Request(self.http_address + path, body, fields)
        context = ssl.create_default_context(cafile=self.authority) if self.authority else None
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT, context=context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


class Client:
    """Short forms of the gRPC calls that tests make."""

    def __init__(self, channel):
        self.channel = channel
        self.locks = STUBS["lock_grpc"].LockServiceStub(channel)
        self.admin = STUBS["admin_grpc"].AdminStub(channel)

    def close(self):
        self.channel.close()

    def lease(self, ttl_ms=600_000, **fields):
        request = lease_pb.LeaseGrantRequest(ttl_ms=ttl_ms, **fields)
        return self.locks.LeaseGrant(request, timeout=TIMEOUT).id

    def lock(self, name, lease, timeout=TIMEOUT, **fields):
        request = lock_pb.LockRequest(name=name, lease_id=lease, **fields)
        return self.locks.Lock(request, timeout=timeout)

    def try_lock(self, name, lease, **fields):
        request = lock_pb.TryLockRequest(name=name, lease_id=lease, **fields)
        return self.locks.TryLock(request, timeout=TIMEOUT)

    def unlock(self, lease, token, **fields):
        request = lock_pb.UnlockRequest(lease_id=lease, fencing_token=token, **fields)
        return self.locks.Unlock(request, timeout=TIMEOUT)

    def status(self):
        return self.admin.Status(admin_pb.StatusRequest(), timeout=TIMEOUT)


@contextlib.contextmanager
def running(*flags):
    """A daemon in a temporary folder, killed at the end if it still runs."""
    with tempfile.TemporaryDirectory(prefix="tenured.") as folder:
        daemon = Daemon(folder, *flags).start()
        try:
            yield daemon
        finally:
            if daemon.process.poll() is None:
                daemon.kill()


class OneDaemon(unittest.TestCase):
    """Tests of one class share a server: self.daemon."""

    @classmethod
    def setUpClass(cls):
        cls.context = running()
        cls.daemon = cls.context.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.context.__exit__(None, None, None)


def eventually(is_so, what):
    """Polls the condition is_so until it is true; fails after TIMEOUT."""
    deadline = time.monotonic() + TIMEOUT
    while not is_so():
        if time.monotonic() > deadline:
            raise AssertionError(f"never: {what}")
        time.sleep(0.005)
