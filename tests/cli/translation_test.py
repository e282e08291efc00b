#!/usr/bin/python3
"""The tables of docs/reference/cli.md and README.md that translate flock(1), `etcdctl lock` and
`consul lock`: the test runs every line and compares it with the other program where that is
installed (Debian has no consul package)."""

import pathlib
import re
import shlex
import signal
import subprocess
import tempfile
import unittest

import servers
from command import HOME, TIMEOUT, WithServer, tenure_path

CELL = re.compile(r"`([^`]+)`")


def translations(path):
    """(original, tenure) of each row of a table with the header `instead of | write`."""
    found, is_inside = [], False
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("| instead of | write |"):
            is_inside = True
        elif is_inside and not line.startswith("|"):
            is_inside = False
        elif is_inside and (cells := CELL.findall(line)):
            assert len(cells) == 2, f"{path}: one command on each side: {line}"
            found.append(tuple(cells))
    return found


class Translations(WithServer):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.job = pathlib.Path(cls.folder.name) / "job"
        cls.job.write_text("#!/bin/sh\necho ran\nexit 3\n", encoding="utf-8")
        cls.job.chmod(0o755)
        cls.etcd = servers.etcd(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.etcd.end()
        super().tearDownClass()

    def words(self, line, name):
        """The command with values for the words in capitals."""
        places = {"FILE": f"{self.folder.name}/{name}.lock", "NAME": name, "PREFIX": name,
                  "VALUE": "me", "CMD": str(self.job)}
        words = [places.get(word, word) for word in shlex.split(line)]
        if words[0] == "tenure":
            words[0] = tenure_path()
        if words[0] == "etcdctl":
            words[1:1] = ["--endpoints", f"127.0.0.1:{self.etcd.port}"]
        return words

    def result(self, line, name):
        # pylint: disable-next=consider-using-with
        process = subprocess.Popen(self.words(line, name), text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment(ETCDCTL_API="3"))
        self.addCleanup(self.end, process)
        if not any(word in line for word in ("CMD", "-c ")):
            # The command runs until Ctrl-C; its first line shows that it holds the lock.
            if "listen" not in line and "-l " not in line:
                self.assertTrue(process.stdout.readline(), line)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=TIMEOUT)
            return ""
        out, err = process.communicate(timeout=TIMEOUT)
        # etcdctl has its own exit code for a command that fails.
        code = process.returncode if "etcdctl" not in line else "failed" * (process.returncode != 0)
        return out, code, err if process.returncode not in (0, 3) else ""

    def test_each_translation_behaves_like_the_original(self):
        pages = [HOME / "docs/reference/cli.md", HOME / "README.md"]
        lines = [pair for page in pages for pair in translations(page)]
        programs = {there.split()[0] for there, _ in lines}
        self.assertEqual(programs, {"flock", "etcdctl", "consul"})

        for number, (there, here) in enumerate(lines):
            with self.subTest(there=there, here=here):
                ours = self.result(here, f"ours{number}")
                if "CMD" in here:
                    self.assertEqual(ours[:2], ("ran\n", 3))
                if there.startswith("flock"):
                    self.assertEqual(ours, self.result(there, f"theirs{number}"))
                if there.startswith("etcdctl") and "CMD" in there:
                    self.assertEqual(self.result(there, f"theirs{number}")[:2], ("ran\n", "failed"))

    def test_a_held_lock_gives_the_conflict_exit_code_like_flock(self):
        with tempfile.NamedTemporaryFile() as file:
            holders = [self.begin("run", "held", "--", "cat", stdin=subprocess.PIPE),
                       subprocess.Popen(["flock", file.name, "sh", "-c", "echo held; cat"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)]
            self.addCleanup(self.end, holders[1])
            self.when_held("held")
            holders[1].stdout.readline()

            for options in (["-n", "-E", "9"], ["-w", "0.1", "-E", "9"], ["-s", "-n", "-E", "9"]):
                theirs = subprocess.run(["flock", *options, file.name, "echo", "ran"],
                                        capture_output=True, timeout=TIMEOUT, check=False)
                ours = self.outcome("run", *options, "held", "echo", "ran")
                self.assertEqual(ours[:2], (theirs.returncode, theirs.stdout.decode()), options)


if __name__ == "__main__":
    unittest.main()
