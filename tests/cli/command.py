"""Runs the command `tenure` with a real tenured."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

HOME = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(HOME / "tests/daemon"))

from daemon import TIMEOUT, Daemon, eventually  # noqa: E402

BUSY, LOST, USAGE, UNREACHABLE = 75, 79, 64, 69


def tenure_path():
    """Path of the binary: TENURE in the environment, else the dev build."""
    return os.environ.get("TENURE", str(HOME / "build/dev/tenure"))


def is_alive(process):
    """Whether the process runs, sleeps or is stopped; a zombie is dead."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return False
    return "State:\tZ" not in status and "State:\tX" not in status


class WithServer(unittest.TestCase):
    """One tenured for all tests of a class; each test uses its own lock names."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tenure_cli.")
        cls.daemon = Daemon(cls.folder.name + "/store").start()
        cls.url = "tenure://" + cls.daemon.grpc_address

    @classmethod
    def tearDownClass(cls):
        cls.daemon.kill()
        cls.folder.cleanup()

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TENURE")}
        # Without the configuration file of the user who runs the tests.
        return kept | {"TENURE_URL": self.url, "TENURE_CONFIG": "/dev/null"} | more

    def begin(self, *words, **options):
        """Starts the command; kills it at the end of the test if it is still running."""
        more = options.pop("environment", {})
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                   "stderr": subprocess.PIPE, "text": True} | options
        process = subprocess.Popen([tenure_path(), *words], env=self.environment(**more), **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.communicate()

    def outcome(self, *words, **options):
        """Runs the command to its end: (exit code, stdout, stderr)."""
        text = options.pop("input", None)
        if text is not None:
            options["stdin"] = subprocess.PIPE
        process = self.begin(*words, **options)
        out, err = process.communicate(text, timeout=TIMEOUT)
        return process.returncode, out, err

    def output(self, *words, **options):
        """Output of a command that must succeed."""
        code, out, err = self.outcome(*words, **options)
        self.assertEqual(code, 0, out + err)
        return out

    def client(self):
        made = self.daemon.client()
        self.addCleanup(made.close)
        return made

    def held(self, name):
        """Holders of the lock according to the server."""
        from daemon import admin_pb
        client = self.client()
        locks = client.admin.List(admin_pb.ListRequest(prefix=name), timeout=TIMEOUT).locks
        return [holder for lock in locks if lock.name == name for holder in lock.holders]

    def when_held(self, name):
        """Waits for a holder and returns it."""
        eventually(lambda: self.held(name), f"{name} is held")
        return self.held(name)[0]

    def line_of(self, process):
        """Next line of output."""
        line = process.stdout.readline()
        self.assertTrue(line, "it ended without a line")
        return line.rstrip("\n")
