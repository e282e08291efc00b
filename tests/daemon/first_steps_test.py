#!/usr/bin/python3
"""The commands that `make run` prints succeed when a user pastes them into a shell."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from daemon import HOME, TIMEOUT, eventually, tenured_path


class FirstSteps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tenured.")
        self.addCleanup(self.folder.cleanup)
        for name in ("examples", "proto", "tools"):
            (pathlib.Path(self.folder.name) / name).symlink_to(HOME / name)
        self.server = subprocess.Popen(
            ["tools/run_server.sh", os.path.abspath(tenured_path())], cwd=self.folder.name,
            stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(self.stop)

    def stop(self):
        if self.server.poll() is None:
            os.killpg(self.server.pid, signal.SIGKILL)
            self.server.wait(TIMEOUT)
        self.server.stdout.close()

    def printed_commands(self):
        """Commands on lines of their own, up to the last line of the text."""
        text = ""
        while "docs/reference/settings.md" not in text:
            line = self.server.stdout.readline()
            self.assertTrue(line, f"it ended after {text!r}")
            text += line
        return re.findall(r"^  ((?:curl|/usr/bin/python3|\S+/tenure) .*)$", text, re.M)

    def paste(self, command, **options):
        return subprocess.Popen(["bash", "-c", command], cwd=self.folder.name, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)

    def outcome(self, command):
        process = self.paste(command)
        output, _ = process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 0, output)
        return output

    def try_the_command(self, run, listing, no_wait, doctor):
        """Runs the printed `tenure` commands."""
        running = self.paste(run.replace("sleep 60", "cat"), stdin=subprocess.PIPE)
        eventually(lambda: "backup" in self.outcome(listing), "the lock is listed")
        self.assertIn("exit code 75", self.outcome(no_wait))
        running.communicate("", timeout=TIMEOUT)
        self.assertEqual(running.returncode, 0)
        self.assertNotIn("bad", self.outcome(doctor))

    def test_the_printed_commands_work_when_pasted(self):
        *tenure, hold, locks, events, wait, status, metrics = self.printed_commands()
        self.try_the_command(*tenure)
        # A shorter hold; otherwise the command is unchanged.
        holding = self.paste(hold.replace("--seconds 60", "--seconds 3"))
        eventually(lambda: '"db/users"' in self.outcome(locks), "the lock is listed")
        watching = self.paste(events)
        waited = self.outcome(wait)

        self.assertIn("is held, fencing token", waited)
        self.assertIn("is released", holding.communicate(timeout=TIMEOUT)[0])
        seen = ""
        while "released" not in seen:
            seen += watching.stdout.readline()
        watching.kill()
        watching.communicate()
        self.assertIn('"role":"leader"', self.outcome(status))
        self.assertIn("tenure_leases", self.outcome(metrics))

        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(TIMEOUT), 0)


if __name__ == "__main__":
    unittest.main()
