#!/usr/bin/python3
"""`make run` and `make cluster` after the build: the printed commands work, and a server that does
not start, or that ends, is reported with its reason and its exit code."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from cluster import free_port_range
from daemon import HOME, TIMEOUT, Daemon, eventually, tenured_path


class Script(unittest.TestCase):
    """A script of tools/ in a folder and with ports of its own."""

    PORTS = 23  # consecutive ports that run_cluster.sh uses

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.base = free_port_range(self.PORTS)

    def start(self, script):
        process = subprocess.Popen(
            [HOME / "tools" / script, os.path.abspath(tenured_path())], cwd=self.folder,
            env=os.environ | {"BASE_PORT": str(self.base)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def other_server(self, port):
        """A tenured of another user of this machine, with HTTP on this port."""
        daemon = Daemon(self.folder / "other", "--listen-http", f"127.0.0.1:{port}").start()
        self.addCleanup(daemon.kill)
        return daemon

    def refused(self, script, port):
        """Starts the script while a tenured has this port; returns what it prints to stderr."""
        other = self.other_server(port)
        output, errors = self.start(script).communicate(timeout=TIMEOUT)
        self.assertEqual(output, "")
        self.assertIn(f"port {port} is in use by process {other.process.pid}: "
                      f"{tenured_path()} --data-dir", errors)
        return errors


class FirstSteps(Script):
    def printed_commands(self, server):
        """The commands that the script prints at its end, on lines of their own."""
        text = ""
        while not text.endswith("exit code $?\"\n"):
            line = server.stdout.readline()
            self.assertTrue(line, f"it ended after {text!r}")
            text += line
        self.assertIn("tenured runs", text)
        return re.findall(r"^  (\S.*)$", text, re.M)

    def paste(self, command, **options):
        return subprocess.Popen(["bash", "-c", command], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)

    def outcome(self, command):
        process = self.paste(command)
        output, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 0, output)
        return output

    def server_of(self, script):
        """Id of the tenured that the script has started."""
        children = pathlib.Path(f"/proc/{script.pid}/task/{script.pid}/children").read_text(
            encoding="utf-8").split()
        return next(int(child) for child in children
                    if "tenured" in pathlib.Path(f"/proc/{child}/comm").read_text(encoding="utf-8"))

    def test_the_three_printed_commands_work_when_pasted(self):
        script = self.start("run_server.sh")
        run, listing, no_wait = self.printed_commands(script)

        # A command that ends at the end of its input instead of after a minute.
        running = self.paste(run.replace("sleep 60", "cat"), stdin=subprocess.PIPE)
        eventually(lambda: "backup" in self.outcome(listing), "the lock is listed")
        self.assertIn("exit code 75", self.outcome(no_wait))
        running.communicate("", timeout=TIMEOUT)
        self.assertEqual(running.returncode, 0)

        script.send_signal(signal.SIGTERM)
        self.assertEqual(script.wait(TIMEOUT), 0)
        self.assertTrue((self.folder / "var/identity").exists())

    # Catches a script that takes the reply of another server for the reply of its own.
    def test_a_port_in_use_is_reported_with_its_process_and_the_exit_code_of_the_server(self):
        errors = self.refused("run_server.sh", self.base + 1)

        self.assertIn("tenured ended with exit code 69", errors)

    def test_the_end_of_a_running_server_ends_the_script_with_its_exit_code(self):
        script = self.start("run_server.sh")
        self.printed_commands(script)

        os.kill(self.server_of(script), signal.SIGKILL)

        _, errors = script.communicate(timeout=TIMEOUT)
        self.assertEqual(script.returncode, 128 + signal.SIGKILL)
        self.assertIn("tenured ended with exit code 137", errors)

    def test_a_cluster_reports_a_port_in_use_with_its_process(self):
        errors = self.refused("run_cluster.sh", self.base + 11)

        self.assertIn("member 2 ended with exit code 69", errors)

    # Catches a `tenure` without redis://, because a package is not there when it is built.
    def test_make_run_builds_every_scheme_and_make_install_the_server(self):
        planned = {target: subprocess.run(["make", "--dry-run", target], cwd=HOME, check=True,
                                          capture_output=True, text=True, timeout=TIMEOUT).stdout
                   for target in ("run", "cluster", "install")}
        for target, commands in planned.items():
            for group in ("server", "cluster", "redis", "etcd", "zookeeper", "cli"):
                self.assertRegex(commands, rf"setup\.sh .*\b{group}\b", target)
        for target in ("run", "cluster"):
            self.assertIn("--target tenured tenure_cli", planned[target])
        self.assertNotIn("TENURE_SERVER=OFF", planned["install"])

    def test_the_command_knows_every_scheme(self):
        tenure = pathlib.Path(tenured_path()).parent / "tenure"
        for scheme in ("redis", "redlock", "etcd", "zookeeper"):
            tried = subprocess.run([tenure, "ls", "--timeout", "1ms", "--url",
                                    f"{scheme}://127.0.0.1:{self.base}"],
                                   capture_output=True, text=True, timeout=TIMEOUT, check=False)
            self.assertNotIn("scheme", tried.stderr)


if __name__ == "__main__":
    unittest.main()
