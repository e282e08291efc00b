#!/usr/bin/python3
"""`tenure run`: a lock for as long as a command runs."""

import os
import pathlib
import signal
import subprocess
import unittest

from command import BUSY, LOST, TIMEOUT, UNREACHABLE, USAGE, WithServer, eventually, is_alive


class Run(WithServer):
    def test_run_returns_the_exit_code_of_its_command(self):
        code, out, _ = self.outcome("run", "exit/a", "--", "sh", "-c", "echo ran; exit 7")

        self.assertEqual((code, out), (7, "ran\n"))
        self.assertEqual(self.held("exit/a"), [])

    def test_the_lock_is_held_while_the_command_runs_and_free_afterwards(self):
        process = self.begin("run", "while/a", "--metadata", "a test", "--", "cat",
                             stdin=subprocess.PIPE)
        holder = self.when_held("while/a")

        process.communicate("", timeout=TIMEOUT)

        self.assertEqual(holder.metadata, b"a test")
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.held("while/a"), [])

    def test_a_command_that_is_killed_by_a_signal_gives_128_plus_its_number(self):
        code, _, _ = self.outcome("run", "died/a", "--", "sh", "-c", "kill -SEGV $$")

        self.assertEqual(code, 128 + signal.SIGSEGV)

    def test_the_environment_contains_name_token_lease_and_url(self):
        show = ('printf "%s|%s|%s|%s" "$TENURE_NAME" "$TENURE_TOKEN" "$TENURE_LEASE_MS" '
                '"$TENURE_URL"')
        first = self.output("run", "env/a", "--ttl", "7s", "--", "sh", "-c", show).split("|")
        second = self.output("run", "env/a", "env/b", "--", "sh", "-c", show).split("|")

        self.assertEqual((first[0], first[2], first[3]), ("env/a", "7000", self.url))
        self.assertEqual((second[0], second[2]), ("env/a\nenv/b", "30000"))
        self.assertGreater(int(second[1]), int(first[1]))

    def test_stdin_stdout_and_other_open_files_are_the_childs(self):
        reading, writing = os.pipe()
        code, out, err = self.outcome(
            "run", "files/a", "--", "sh", "-c", f"cat; echo oops >&2; echo there >&{writing}",
            input="hello", pass_fds=[writing])
        os.close(writing)
        with open(reading, encoding="utf-8") as other:
            passed = other.read()

        self.assertEqual((code, out, err, passed), (0, "hello", "oops\n", "there\n"))

    def test_the_child_inherits_no_descriptor_of_tenure(self):
        listed = self.output("run", "files/b", "--", "sh", "-c", "ls /proc/$$/fd")

        self.assertEqual(sorted(set(map(int, listed.split()))), [0, 1, 2])

    def test_a_lock_that_is_held_gives_75_at_once_or_after_the_wait(self):
        self.begin("run", "busy/a", "--", "cat", stdin=subprocess.PIPE)
        self.when_held("busy/a")

        for words in (["--no-wait"], ["-n"], ["--wait", "50ms"], ["-w", "0.05"]):
            code, out, err = self.outcome("run", *words, "busy/a", "--", "echo", "ran")
            self.assertEqual((code, out), (BUSY, ""), words)
            self.assertIn("not acquired", err)
        self.assertEqual(self.outcome("run", "-n", "-E", "3", "busy/a", "echo", "ran")[:2], (3, ""))

    def test_a_waiter_gets_the_lock_after_the_release(self):
        first = self.begin("run", "turn/a", "--", "cat", stdin=subprocess.PIPE)
        self.when_held("turn/a")
        second = self.begin("run", "turn/a", "--wait", "30s", "--", "echo", "second")
        first.communicate("", timeout=TIMEOUT)

        out, _ = second.communicate(timeout=TIMEOUT)

        self.assertEqual((second.returncode, out), (0, "second\n"))

    def test_readers_share_and_bar_a_writer(self):
        reader = self.begin("run", "-s", "share/a", "share/b", "--", "cat", stdin=subprocess.PIPE)
        self.when_held("share/b")

        self.assertEqual(self.outcome("run", "-sn", "share/a", "--", "true")[0], 0)
        self.assertEqual(self.outcome("run", "-xn", "share/b", "--", "true")[0], BUSY)
        reader.communicate("", timeout=TIMEOUT)
        self.assertEqual(self.outcome("run", "-xn", "share/b", "--", "true")[0], 0)

    def test_a_semaphore_has_as_many_holders_as_its_capacity(self):
        size = ["--capacity", "2"]
        first, second = (self.begin("run", *size, "some/a", "--", "cat", stdin=subprocess.PIPE)
                         for _ in range(2))
        eventually(lambda: len(self.held("some/a")) == 2, "both hold the semaphore")

        self.assertEqual(self.outcome("run", *size, "-n", "some/a", "--", "true")[0], BUSY)
        third = self.begin("run", *size, "some/a", "--", "echo", "third")
        first.communicate("", timeout=TIMEOUT)

        self.assertEqual(third.communicate(timeout=TIMEOUT)[0], "third\n")
        self.assertEqual((first.returncode, third.returncode), (0, 0))
        self.assertIn("1 of 2", self.output("show", "some/a"))
        second.communicate("", timeout=TIMEOUT)
        self.assertEqual(self.held("some/a"), [])

    def test_a_holder_may_acquire_several_permits(self):
        holder = self.begin("lock", "--capacity", "3", "--permits", "2", "more/a", "--json")
        self.assertIn('"permits":2', self.line_of(holder))

        two = self.outcome("run", "-n", "--capacity", "3", "--permits", "2", "more/a", "true")[0]
        one = self.outcome("try", "--capacity", "4", "more/a")
        rest = self.outcome("run", "-n", "--capacity", "3", "more/a", "true")[0]

        self.assertEqual((two, one[0], rest), (BUSY, USAGE, 0))
        self.assertIn("a semaphore of 3", one[2])

    def test_a_semaphore_has_one_name_a_capacity_and_no_mode(self):
        for words in (["--permits", "2", "a"], ["--capacity", "2", "a", "b"],
                      ["--capacity", "2", "-s", "a"], ["--capacity", "0", "a"],
                      ["--capacity", "2", "--permits", "3", "a"], ["--capacity", "many", "a"]):
            code, out, err = self.outcome("run", *words, "--", "echo", "ran")
            self.assertEqual((code, out), (USAGE, ""), words)
            self.assertTrue(err.startswith("tenure: "), words)

    def test_several_names_are_acquired_atomically(self):
        self.begin("run", "all/b", "--", "cat", stdin=subprocess.PIPE)
        self.when_held("all/b")

        code, _, _ = self.outcome("run", "-n", "all/a", "all/b", "all/c", "--", "true")

        self.assertEqual(code, BUSY)
        self.assertEqual(self.held("all/a") + self.held("all/c"), [])

    def test_run_accepts_the_syntax_of_flock(self):
        self.assertEqual(self.output("run", "flock/a", "echo", "-n", "x"), "x")
        shell = ["-c", "echo $((1 + 1))"]
        self.assertEqual(self.output("run", "-x", "-w", "5", "flock/a", *shell), "2\n")
        self.assertEqual(self.output("run", "-n", "flock/a", "sh", "-c", "echo a"), "a\n")

    def test_a_missing_command_gives_127_and_a_file_that_is_not_executable_126(self):
        self.assertEqual(self.outcome("run", "exec/a", "--", "/no/such/command")[0], 127)
        self.assertEqual(self.outcome("run", "exec/a", "--", "/etc/passwd")[0], 126)
        self.assertEqual(self.held("exec/a"), [])

    def test_a_usage_error_gives_64_and_an_unreachable_server_69(self):
        self.assertEqual(self.outcome("run")[0], USAGE)
        self.assertEqual(self.outcome("run", "a", "--nonsense", "--", "true")[0], USAGE)
        self.assertEqual(self.outcome("run", "a", "--wait", "soon", "--", "true")[0], USAGE)
        self.assertEqual(self.outcome("run", "a", "a", "--", "true")[0], USAGE)
        self.assertEqual(self.outcome("run", "a", "--url", "gopher://x", "--", "true")[0], USAGE)
        code, _, err = self.outcome("run", "a", "--url", "tenure://127.0.0.1:1", "--timeout",
                                    "200ms", "--", "true")
        self.assertEqual(code, UNREACHABLE)
        self.assertIn("127.0.0.1:1", err)


class Signals(WithServer):
    def test_signals_are_forwarded_to_the_process_group(self):
        script = ('trap "echo hup" HUP; trap "echo usr1" USR1; trap "echo term; exit 5" TERM; '
                  'echo ready; while :; do sleep 0.05; done')
        process = self.begin("run", "signal/a", "--", "sh", "-c", script)
        self.assertEqual(self.line_of(process), "ready")

        for number, word in ((signal.SIGHUP, "hup"), (signal.SIGUSR1, "usr1"),
                             (signal.SIGTERM, "term")):
            process.send_signal(number)
            self.assertEqual(self.line_of(process), word)

        self.assertEqual(process.wait(TIMEOUT), 5)
        self.assertEqual(self.held("signal/a"), [])

    def test_a_signal_removes_a_waiter_from_the_queue(self):
        self.begin("run", "leave/a", "--", "cat", stdin=subprocess.PIPE)
        self.when_held("leave/a")
        waiting = self.begin("run", "leave/a", "--", "echo", "ran")
        eventually(lambda: "1 waits" in self.explained("leave/a"), "the waiter is queued")

        waiting.send_signal(signal.SIGINT)
        out, _ = waiting.communicate(timeout=TIMEOUT)

        self.assertEqual((waiting.returncode, out), (128 + signal.SIGINT, ""))
        eventually(lambda: "1 waits" not in self.explained("leave/a"), "the waiter has left")

    def explained(self, name):
        from daemon import admin_pb
        answer = self.client().admin.Explain(admin_pb.ExplainRequest(name=name), timeout=TIMEOUT)
        return f"{len(answer.queue)} waits"

    def test_the_child_dies_with_a_tenure_that_is_killed(self):
        process = self.begin("run", "killed/a", "--", "sh", "-c",
                             "sleep 1000 & echo $$ $!; wait")
        child, grandchild = map(int, self.line_of(process).split())

        process.kill()

        eventually(lambda: not is_alive(child) and not is_alive(grandchild), "both are dead")


class LeaseLoss(WithServer):
    """The command is dead before the next holder starts."""

    def setUp(self):
        self.log = pathlib.Path(self.folder.name) / f"{self.id()}.log"

    def worker(self, name, *traps):
        """Command that prints its process id, then appends its token to the log until it ends."""
        script = (f'{"; ".join(traps)}\necho $$; while :; do echo "$TENURE_TOKEN" >>{self.log}; '
                  "sleep 0.02; done")
        process = self.begin("run", name, "--ttl", "1s", "--", "sh", "-c", script)
        return process, int(self.line_of(process))

    def assert_no_line_after_the_next_holder(self, name):
        """Asserts that the first holder writes nothing after the next one has started."""
        self.output("run", name, "--wait", "20s", "--", "sh", "-c", f'echo next >>{self.log}')
        lines = self.log.read_text(encoding="utf-8").splitlines()
        self.assertEqual(lines[-1], "next")
        self.assertEqual(lines.count("next"), 1)

    def test_a_revoked_lease_kills_the_command_at_once(self):
        process, child = self.worker("loss/revoked", "trap '' TERM")
        lease = self.when_held("loss/revoked").lease_id
        from daemon import lease_pb
        self.client().locks.LeaseRevoke(lease_pb.LeaseRevokeRequest(id=lease), timeout=TIMEOUT)

        _, err = process.communicate(timeout=TIMEOUT)

        self.assertEqual(process.returncode, LOST)
        self.assertFalse(is_alive(child))
        self.assertIn("lost", err)

    def test_a_forced_release_kills_the_command_at_once(self):
        process, child = self.worker("loss/forced", "trap '' TERM")
        from daemon import admin_pb
        self.when_held("loss/forced")
        self.client().admin.ForceRelease(admin_pb.ForceReleaseRequest(name="loss/forced"),
                                         timeout=TIMEOUT)

        self.assertEqual(process.wait(TIMEOUT), LOST)
        self.assertFalse(is_alive(child))

    def test_sigterm_ends_the_command_when_the_server_is_silent(self):
        process, _ = self.worker("loss/silent", f"trap 'echo term >>{self.log}; exit 0' TERM")
        self.when_held("loss/silent")

        self.daemon.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)
        self.assertEqual(process.wait(TIMEOUT), LOST)
        self.daemon.process.send_signal(signal.SIGCONT)

        self.assertIn("term", self.log.read_text(encoding="utf-8"))
        self.assert_no_line_after_the_next_holder("loss/silent")

    def test_a_command_that_ignores_sigterm_or_is_stopped_is_dead_before_the_next_holder(self):
        ignoring, ignoring_child = self.worker("loss/ignoring", "trap '' TERM")
        stopped, stopped_child = self.worker("loss/stopped", "trap '' TERM")
        os.kill(stopped_child, signal.SIGSTOP)
        self.when_held("loss/stopped")

        self.daemon.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)
        codes = ignoring.wait(TIMEOUT), stopped.wait(TIMEOUT)
        alive = is_alive(ignoring_child), is_alive(stopped_child)
        self.daemon.process.send_signal(signal.SIGCONT)

        self.assertEqual((codes, alive), ((LOST, LOST), (False, False)))
        self.assert_no_line_after_the_next_holder("loss/ignoring")

    def test_a_tenure_that_is_stopped_does_not_let_its_command_outlive_the_lease(self):
        process, child = self.worker("loss/paused", "trap '' TERM")
        process.send_signal(signal.SIGSTOP)

        # tenure can neither renew nor kill, so the watchdog kills. The next holder waits.
        self.assert_no_line_after_the_next_holder("loss/paused")

        self.assertFalse(is_alive(child))
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(TIMEOUT), LOST)

    def test_a_command_that_stops_tenure_at_once_does_not_outlive_the_lease(self):
        process, child = self.worker("loss/parricide", "trap '' TERM; kill -STOP $PPID")

        self.assert_no_line_after_the_next_holder("loss/parricide")

        self.assertFalse(is_alive(child))
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(TIMEOUT), LOST)


if __name__ == "__main__":
    unittest.main()
