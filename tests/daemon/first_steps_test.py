#!/usr/bin/python3
"""What `make run` prints works when it is pasted."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

from daemon import HOME, PATIENCE, eventually, tenured_path


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
            self.server.wait(PATIENCE)
        self.server.stdout.close()

    def printed_commands(self):
        """Those that stand in lines of their own, up to the last line of the text."""
        text = ""
        while "the settings." not in text:
            line = self.server.stdout.readline()
            self.assertTrue(line, f"it ended after {text!r}")
            text += line
        return re.findall(r"^  ((?:curl|/usr/bin/python3) .*)$", text, re.M)

    def paste(self, command):
        return subprocess.Popen(["bash", "-c", command], cwd=self.folder.name, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def outcome(self, command):
        process = self.paste(command)
        output, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0, output)
        return output

    def test_the_printed_commands_work_when_pasted(self):
        hold, locks, events, wait, status, metrics = self.printed_commands()
        # Half a minute less of holding; nothing else is changed.
        holding = self.paste(hold.replace("--seconds 60", "--seconds 3"))
        eventually(lambda: '"db/users"' in self.outcome(locks), "the lock is listed")
        watching = self.paste(events)
        waited = self.outcome(wait)

        self.assertIn("is held, fencing token", waited)
        self.assertIn("is free again", holding.communicate(timeout=PATIENCE)[0])
        seen = ""
        while "released" not in seen:
            seen += watching.stdout.readline()
        watching.kill()
        watching.communicate()
        self.assertIn('"role":"leader"', self.outcome(status))
        self.assertIn("tenure_leases", self.outcome(metrics))

        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(PATIENCE), 0)


if __name__ == "__main__":
    unittest.main()
