#!/usr/bin/python3
"""examples/cron/never_overlap.sh, on a real tenured."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

HOME = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(HOME / "tests/cli"))

from command import TIMEOUT, WithServer, eventually, is_alive, tenure_path  # noqa: E402

SCRIPT = HOME / "examples/cron/never_overlap.sh"


class Cron(WithServer):
    def start(self, lock, *command, **more):
        """Starts the script like cron on one machine."""
        paths = f"{pathlib.Path(tenure_path()).resolve().parent}:{os.environ['PATH']}"
        process = subprocess.Popen(
            [SCRIPT, lock, *command], env=self.environment(PATH=paths, **more), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        return process

    def outcome_of(self, process):
        out, err = process.communicate("", timeout=TIMEOUT)
        return process.returncode, out, err

    def running(self, lock):
        """Starts a job that prints its process id and runs until its stdin is closed."""
        process = self.start(lock, "sh", "-c", "echo $$; cat; echo done")
        return process, int(process.stdout.readline())

    def test_a_second_job_is_skipped_while_the_first_runs(self):
        first, _ = self.running("cron/overlap")

        code, out, err = self.outcome_of(self.start("cron/overlap", "echo", "ran"))
        self.assertEqual((code, out), (0, ""), err)
        self.assertIn("cron/overlap: skipped: it runs, or has just run, on another machine", err)

        code, out, err = self.outcome_of(first)
        self.assertEqual((code, out), (0, "done\n"), err)
        code, out, err = self.outcome_of(self.start("cron/overlap", "echo", "ran"))
        self.assertEqual((code, out, err), (0, "ran\n", ""))

    # The job ends before the next machine starts it, 400 ms later.
    def test_three_machines_with_late_clocks_run_a_short_job_once(self):
        outcomes = []
        for _ in range(3):
            began = time.monotonic()
            machine = self.start("cron/short", "echo", "ran", AT_LEAST="30s")
            outcomes.append(self.outcome_of(machine))
            eventually(lambda began=began: time.monotonic() - began > 0.4, "400 ms have passed")

        self.assertEqual([(code, out) for code, out, _ in outcomes],
                         [(0, "ran\n"), (0, ""), (0, "")])
        self.assertIn("skipped", outcomes[1][2])

    def test_a_lost_lock_terminates_the_command_with_79(self):
        losing, child = self.running("cron/lost")

        self.output("unlock", "--force", "--yes", "cron/lost")
        losing.wait(TIMEOUT)
        code, out, err = self.outcome_of(losing)
        self.assertEqual((code, out), (79, ""), err)
        self.assertIn("the lock was lost", err)
        eventually(lambda: not is_alive(child), "the command is dead")

    def test_the_exit_code_is_that_of_the_command_or_69_without_a_server(self):
        code, _, _ = self.outcome_of(self.start("cron/code", "sh", "-c", "exit 7"))
        self.assertEqual(code, 7)
        code, out, err = self.outcome_of(
            self.start("cron/code", "echo", "ran", TENURE_URL="tenure://127.0.0.1:1"))
        self.assertEqual((code, out), (69, ""), err)
        self.assertIn("the command did not run", err)

    def test_a_disconnected_command_is_dead_before_the_next_job_starts(self):
        disconnected = self.start("cron/cut", "sh", "-c", "echo $$; cat", TTL="3s")
        child = int(disconnected.stdout.readline())
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)
        self.daemon.process.send_signal(signal.SIGSTOP)  # No reply, as after a network failure.

        eventually(lambda: not is_alive(child), "the command is dead")
        self.daemon.process.send_signal(signal.SIGCONT)
        code, _, err = self.outcome_of(disconnected)
        self.assertEqual(code, 79, err)
        eventually(lambda: self.outcome_of(self.start("cron/cut", "echo", "ran"))[1] == "ran\n",
                   "the next job runs")


if __name__ == "__main__":
    unittest.main()
