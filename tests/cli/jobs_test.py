#!/usr/bin/python3
"""`tenure run` for scheduled jobs: its grammar, time limits, servers that restart, conflicts."""

import os
import signal
import subprocess
import tempfile
import time
import unittest

from command import (BUSY, LOST, TIMEOUT, UNREACHABLE, USAGE, Daemon, WithServer, eventually,
                     is_alive, tenure_path)

from cluster import free_ports


class Grammar(WithServer):
    # `tenure run a -n true` held the lock forever and ran nothing.
    def test_options_may_follow_the_first_name_and_the_next_word_starts_the_command(self):
        for words, expected in ((["-n", "echo", "ran"], "ran\n"), (["echo", "-n", "x"], "x"),
                                (["-w", "5", "echo", "-w", "6"], "-w 6\n"),
                                (["-nE", "9", "echo", "ran"], "ran\n"),
                                (["--ttl=9s", "sh", "-c", "echo $TENURE_LEASE_MS"], "9000\n"),
                                (["-n", "-c", "echo shell"], "shell\n")):
            self.assertEqual(self.output("run", "grammar/a", *words), expected, words)
            self.assertEqual(self.output("run", *words[:1], "grammar/a", *words[1:])
                             if words[0] == "-n" else expected, expected, words)

    # `-- $EMPTY` held the lock forever and ran nothing.
    def test_a_missing_or_empty_command_is_a_usage_error(self):
        for words in (["run", "missing/a"], ["run", "missing/a", "-n"], ["run", "missing/a", "--"],
                      ["run", "missing/a", "missing/b", "--"], ["run", "missing/a", "--", ""],
                      ["run", "missing/a", ""], ["elect", "missing/a", "--value", "x", "--"]):
            code, out, err = self.outcome(*words)
            self.assertEqual((code, out), (USAGE, ""), words)
            self.assertIn("there is no command to run", err, words)
            self.assertIn("tenure lock NAME", err, words)

    def test_several_names_need_dashes_before_the_command(self):
        show = ["sh", "-c", 'printf "%s" "$TENURE_NAME"']

        self.assertEqual(self.output("run", "several/a", "several/b", "-n", "--", *show),
                         "several/a\nseveral/b")
        self.assertEqual(self.output("run", "several/a", *show), "several/a")

    def test_dashes_may_be_the_value_of_an_option(self):
        holder = self.begin("run", "dashes/a", "--metadata", "--", "cat", stdin=subprocess.PIPE)

        self.assertEqual(self.when_held("dashes/a").metadata, b"--")
        holder.communicate("", timeout=TIMEOUT)
        self.assertEqual(holder.returncode, 0)


class TimeLimit(WithServer):
    # A job that hangs kept its lock forever.
    def test_a_command_over_its_time_gets_sigterm_and_the_exit_code_is_79(self):
        script = "trap 'echo term; exit 0' TERM; echo ready; while :; do sleep 0.02; done"
        code, out, err = self.outcome("run", "most/a", "--at-most", "300ms", "--", "sh", "-c",
                                      script)

        self.assertEqual((code, out), (LOST, "ready\nterm\n"))
        self.assertIn("--at-most", err)
        self.assertEqual(self.held("most/a"), [])

    def test_a_command_that_ignores_sigterm_is_killed_after_the_grace_time(self):
        process = self.begin("run", "most/b", "--at-most", "100ms", "--grace", "400ms", "--", "sh",
                             "-c", "trap 'echo term' TERM; echo $$; while :; do sleep 0.02; done")
        child = int(self.line_of(process))
        self.assertEqual(self.line_of(process), "term")
        holders = self.held("most/b")

        self.assertEqual(process.wait(TIMEOUT), LOST)

        self.assertEqual(len(holders), 1, "the lock is held during the grace time")
        self.assertFalse(is_alive(child))
        self.assertEqual(self.held("most/b"), [])

    def test_a_command_within_its_time_keeps_its_exit_code(self):
        self.assertEqual(self.outcome("run", "most/c", "--at-most", "1h", "sh", "-c", "exit 5")[0],
                         5)
        self.assertEqual(self.outcome("run", "most/c", "--at-most", "0", "true")[0], USAGE)
        self.assertEqual(self.outcome("run", "most/c", "--grace", "soon", "true")[0], USAGE)


class LossActions(WithServer):
    def lost(self, name, *options):
        """Runs a command that prints its signals; revokes its lease. (process, lines)"""
        script = ("trap 'echo term' TERM; echo $$; i=0; "
                  "while [ $i -lt 60 ]; do sleep 0.02; i=$((i+1)); done; exit 4")
        process = self.begin("run", name, *options, "--", "sh", "-c", script)
        self.line_of(process)
        self.output("lease", "revoke", str(self.when_held(name).lease_id))
        out, err = process.communicate(timeout=TIMEOUT)
        return process.returncode, out, err

    def test_ignore_lets_the_command_continue_and_reports_the_loss(self):
        code, out, err = self.lost("ignore/a", "--on-lost", "ignore")

        self.assertEqual((code, out), (LOST, ""))
        self.assertIn("continues without it", err)
        self.assertNotIn("SIGKILL", err)

    def test_kill_sends_no_sigterm_to_the_command_of_a_silent_server(self):
        for number, (action, expected) in enumerate((("kill", ""), ("term", "term\n"))):
            name = f"action/{number}"
            process = self.begin("run", name, "--ttl", "1s", "--on-lost", action, "--", "sh", "-c",
                                 "trap 'echo term' TERM; echo $$; while :; do sleep 0.02; done")
            child = int(self.line_of(process))
            self.when_held(name)
            self.daemon.process.send_signal(signal.SIGSTOP)
            out, _ = process.communicate(timeout=TIMEOUT)
            self.daemon.process.send_signal(signal.SIGCONT)

            self.assertEqual((process.returncode, out), (LOST, expected), action)
            self.assertFalse(is_alive(child))

    def test_an_unknown_action_is_a_usage_error(self):
        self.assertEqual(self.outcome("run", "a", "--on-lost", "hope", "true")[0], USAGE)


class Conflict(WithServer):
    # "would_block" named no holder.
    def test_a_conflict_names_the_holder_the_time_and_its_metadata(self):
        holder = self.begin("lock", "busy/b", "--owner", "ann", "--metadata", "schema change")
        self.line_of(holder)

        for words in (["-n"], ["--wait", "50ms"]):
            code, _, err = self.outcome("run", *words, "busy/a", "busy/b", "--", "true")
            self.assertEqual(code, BUSY)
            self.assertRegex(err, r"^tenure: not acquired: busy/b is held by ann since "
                                  r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(for [\d.]+ m?s\): "
                                  r'"schema change"\n$')
        self.assertEqual(self.outcome("run", "-n", "-o", "quiet", "busy/b", "true"), (BUSY, "", ""))

    def test_the_holders_of_a_shared_lock_are_counted(self):
        for name in ("ann", "bob", "cyd"):
            self.line_of(self.begin("lock", "-s", "busy/c", "--owner", name))

        _, _, err = self.outcome("try", "busy/c")

        self.assertIn("busy/c is held by ann and 2 more since ", err)


class Interval(WithServer):
    # A short job ran on every machine whose cron fired a moment after the first run had ended.
    def test_at_least_keeps_the_lock_after_a_short_command(self):
        machines = [self.outcome("run", "-n", "--at-least", "60s", "least/a", "--", "echo", "ran")
                    for _ in range(3)]

        self.assertEqual([(code, out) for code, out, _ in machines],
                         [(0, "ran\n"), (BUSY, ""), (BUSY, "")])
        self.assertIn("least/a is held by", machines[1][2])

    def test_the_lock_is_free_after_the_minimum_time(self):
        began = time.monotonic()
        self.output("run", "--at-least", "700ms", "--ttl", "60s", "least/b", "true")

        self.assertEqual(self.output("run", "--wait", "20s", "least/b", "echo", "ran"), "ran\n")
        self.assertGreaterEqual(time.monotonic() - began, 0.7)

    def test_at_least_holds_when_the_process_dies(self):
        process = self.begin("run", "--at-least", "60s", "--ttl", "1s", "least/c", "--", "sh", "-c",
                             "echo ready; cat", stdin=subprocess.PIPE)
        self.line_of(process)
        process.kill()
        process.communicate()

        # Longer than the TTL: without the option the lock would be free.
        code, _, _ = self.outcome("run", "--wait", "1500ms", "least/c", "true")
        self.assertEqual(code, BUSY)

    def test_every_starts_a_job_once_per_period_and_keeps_its_lock_free(self):
        self.assertEqual(self.output("run", "--every", "60s", "every/a", "echo", "ran"), "ran\n")
        code, out, err = self.outcome("run", "--every", "60s", "every/a", "echo", "never")

        self.assertEqual((code, out), (BUSY, ""))
        self.assertIn("the last start was less than --every ago: every/a/started is held by", err)
        self.assertEqual(self.held("every/a"), [])
        self.assertEqual(self.outcome("run", "-E", "9", "--every", "60s", "every/a", "true")[0], 9)
        self.assertEqual(self.output("run", "-n", "every/a", "echo", "ran"), "ran\n")

    def test_every_allows_a_start_after_the_period(self):
        self.output("run", "--every", "300ms", "every/b", "true")
        self.output("wait", "every/b/started")

        self.assertEqual(self.output("run", "--every", "300ms", "every/b", "echo", "ran"), "ran\n")

    def test_invalid_intervals_are_usage_errors(self):
        for options in (["--at-least", "0"], ["--every", "0"], ["--at-least", "x"],
                        ["--at-least", "1s", "--every", "1s"], ["--every", "25h"],
                        ["--mode", "U", "--every", "1s"]):
            code, out, err = self.outcome("run", "interval/a", *options, "--", "echo", "ran")
            self.assertEqual((code, out), (USAGE, ""), f"{options} {err}")


class Restart(unittest.TestCase):
    """A server that is not running yet, or restarts."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenure_cli.")
        self.addCleanup(folder.cleanup)
        port = free_ports(1)[0]
        self.daemon = Daemon(folder.name + "/store", "--listen-grpc", f"127.0.0.1:{port}")
        self.addCleanup(lambda: self.daemon.process and self.daemon.kill())
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("TENURE")}
        self.environment["TENURE_URL"] = f"tenure://127.0.0.1:{port}"

    def begin(self, *words):
        # pylint: disable-next=consider-using-with
        process = subprocess.Popen([tenure_path(), *words], env=self.environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(WithServer.end, process)
        return process

    # A job that cron started while the server restarted failed after 14 ms.
    def test_a_wait_includes_the_time_until_the_server_is_reachable(self):
        waiting = [self.begin("run", "--wait", "25s", "restart/a", "--", "echo", "ran"),
                   self.begin("run", "--retry", "25s", "restart/a", "--", "echo", "ran"),
                   self.begin("ls", "--retry", "25s"),
                   self.begin("watch", "--retry", "25s", "--from", "1", "--count", "1")]
        # The port refuses connections: every attempt of a command without a retry has failed.
        failing = self.begin("ls", "--timeout", "100ms")
        self.assertEqual(failing.wait(TIMEOUT), UNREACHABLE)
        self.daemon.start()

        outcomes = [(process.communicate(timeout=TIMEOUT), process.returncode)
                    for process in waiting]

        self.assertEqual([(out, code) for (out, _), code in outcomes[:2]], [("ran\n", 0)] * 2,
                         outcomes)
        self.assertEqual([code for _, code in outcomes[2:]], [0, 0], outcomes)

    def test_a_waiter_survives_a_restart_of_the_server(self):
        self.daemon.start()
        holder = self.begin("lock", "restart/b", "--ttl", "60s")
        self.assertIn("held", holder.stdout.readline())
        waiting = self.begin("run", "--wait", "30s", "restart/b", "--", "echo", "second")
        eventually(lambda: self.begin("explain", "restart/b").communicate(timeout=TIMEOUT)[0]
                   .count("waits for") == 1, "it waits")
        self.daemon.kill()
        self.daemon.start()
        holder.send_signal(signal.SIGTERM)

        self.assertEqual((waiting.communicate(timeout=TIMEOUT)[0], waiting.returncode),
                         ("second\n", 0))

    # The server remembers the start of a period.
    def test_the_start_of_a_period_survives_a_crash_of_the_server(self):
        self.daemon.start()
        first = self.begin("run", "--every", "60s", "restart/c", "--", "echo", "ran")
        self.assertEqual(first.communicate(timeout=TIMEOUT)[0], "ran\n")
        self.daemon.kill()
        self.daemon.start()

        second = self.begin("run", "--wait", "25s", "--every", "60s", "restart/c", "--", "echo",
                            "never")
        out, err = second.communicate(timeout=TIMEOUT)
        self.assertEqual((second.returncode, out), (BUSY, ""), err)

    def test_an_unreachable_server_gives_69_after_the_wait(self):
        for words in (["run", "--wait", "300ms", "a", "--", "true"],
                      ["lock", "--retry", "300ms", "-n", "a"], ["ls", "--retry", "300ms",
                                                                "--timeout", "100ms"]):
            process = self.begin(*words)
            process.communicate(timeout=TIMEOUT)
            self.assertEqual(process.returncode, UNREACHABLE, words)


if __name__ == "__main__":
    unittest.main()
