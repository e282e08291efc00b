#!/usr/bin/python3
"""Modes, paths, key ranges and existing leases of `tenure lock` and `run`; `tenure wait`."""

import json
import os
import signal
import unittest

from command import BUSY, LOST, TIMEOUT, USAGE, WithServer, eventually, is_alive
from freezing_relay import FreezingRelay


class Modes(WithServer):
    def holding(self, *words):
        process = self.begin("lock", *words)
        self.line_of(process)
        return process

    def is_granted(self, *words):
        code, _, err = self.outcome("run", "-n", *words, "--", "true")
        self.assertIn(code, (0, BUSY), err)
        return code == 0

    def test_modes_are_compatible_as_in_the_literature(self):
        for held, granted in (("IS", "IS IX S U SIX"), ("IX", "IS IX"), ("S", "IS S U"),
                              ("U", "IS S"), ("SIX", "IS"), ("X", "")):
            name = f"mode/{held}"
            holder = self.holding("--mode", held, name)

            self.assertEqual([mode for mode in "IS IX S U SIX X".split()
                              if self.is_granted("--mode", mode, name)], granted.split(), held)
            self.assertIn(f"\t{held}\t", self.output("show", name))
            holder.send_signal(signal.SIGTERM)
            self.assertEqual(holder.wait(TIMEOUT), 0)
            self.assertEqual(self.held(name), [])

    def test_a_path_locks_its_ancestors_in_the_matching_intention_mode(self):
        holder = self.begin("lock", "--path", "db/users/42", "--json")
        shown = json.loads(self.line_of(holder))

        self.assertEqual((shown["names"], shown["mode"]), (["db/users/42"], "X"))
        self.assertEqual([self.output("ls", name).split("\t")[2]
                          for name in ("db/users/42", "db/users")], ["X", "IX"])
        self.assertFalse(self.is_granted("--path", "db/users", "--mode", "S"))
        self.assertTrue(self.is_granted("--path", "db/users/43"))
        self.assertTrue(self.is_granted("--path=db/orders", "-s"))
        self.assertTrue(self.is_granted("--mode", "IS", "db/users"))

    def test_ranges_of_a_space_exclude_each_other_where_they_overlap(self):
        self.holding("--space", "orders", "--range", "b..d")

        for keys, expected in (("a..b", True), ("a..c", False), ("c..", False), ("d..", True),
                               ("..b", True), ("..", False)):
            self.assertEqual(self.is_granted("--space", "orders", "--range", keys), expected, keys)
        self.assertFalse(self.is_granted("--space", "orders", "--mode", "S"))
        self.assertIn("X on [b, d)", self.output("show", "--space", "orders"))

    def test_a_command_follows_the_options_that_name_the_lock(self):
        self.assertEqual(self.output("run", "--path", "tree/a", "echo", "-n", "x"), "x")
        self.assertEqual(self.output("run", "--space", "s", "--range=a..b", "--", "sh", "-c",
                                     'echo "$TENURE_NAME"'), "s\n")

    def test_a_waiter_in_another_mode_gets_the_lock_after_the_release(self):
        holder = self.holding("-s", "turn/mode")
        waiting = self.begin("run", "--mode", "IX", "--wait", "30s", "turn/mode", "--", "sh", "-c",
                             "echo $TENURE_TOKEN")
        eventually(lambda: "waits 1" in self.output("show", "turn/mode"), "it waits")
        holder.send_signal(signal.SIGTERM)

        out, _ = waiting.communicate(timeout=TIMEOUT)

        self.assertEqual(waiting.returncode, 0)
        self.assertGreater(int(out), 0)
        self.assertEqual(self.outcome("run", "--mode", "U", "--wait", "50ms", "turn/mode", "true")
                         [0], 0)

    def test_ctrl_c_ends_the_wait_in_another_mode_and_leaves_the_queue(self):
        self.holding("leave/mode")
        waiting = self.begin("run", "--mode", "IX", "leave/mode", "--", "echo", "ran")
        eventually(lambda: "waits 1" in self.output("show", "leave/mode"), "it waits")

        waiting.send_signal(signal.SIGINT)

        self.assertEqual(waiting.communicate(timeout=TIMEOUT)[0], "")
        self.assertEqual(waiting.returncode, 128 + signal.SIGINT)
        eventually(lambda: "waits 1" not in self.output("show", "leave/mode"), "it has left")

    # The wait was in a connection of its own that nothing checked: the lock was granted, renewed by
    # the client library, and held without a command.
    def test_a_wait_in_another_mode_survives_a_server_that_falls_silent(self):
        relay = FreezingRelay(self.daemon.grpc_address)
        self.addCleanup(relay.close)
        holder = self.holding("-s", "silent/mode")
        waiting = self.begin("run", "--mode", "IX", "--ttl", "60s", "silent/mode", "--", "echo",
                             "ran", environment={"TENURE_URL": relay.url})
        eventually(lambda: "waits 1" in self.output("show", "silent/mode"), "it waits")

        relay.freeze()
        holder.send_signal(signal.SIGTERM)

        # A silent connection counts as dead after 15 s.
        self.assertEqual((waiting.communicate(timeout=2 * TIMEOUT)[0], waiting.returncode),
                         ("ran\n", 0))

    # The client library does not see such a hold, so its loss needs a check of its own.
    def test_a_forced_release_of_any_mode_kills_the_command(self):
        process = self.begin("run", "--mode", "U", "forced/mode", "--", "sh", "-c",
                             "trap '' TERM; echo $$; while :; do sleep 0.02; done")
        child = int(self.line_of(process))
        self.output("unlock", "--force", "--yes", "forced/mode")

        self.assertEqual(process.wait(TIMEOUT), LOST)
        self.assertFalse(is_alive(child))

    def test_contradicting_options_are_usage_errors(self):
        for words in (["--mode", "Y", "a"], ["--mode", "S", "-s", "a"], ["--range", "a..b", "a"],
                      ["--space", "s", "a"], ["--path", "a", "b"], ["--path", "a//b"],
                      ["--path", "/a"], ["--space", "s", "--range", "a"], ["--barging", "a", "b"],
                      ["--barging", "-s", "a"], ["--mode", "X", "--capacity", "2", "a"], []):
            self.assertEqual(self.outcome("lock", *words)[0], USAGE, words)
        self.assertEqual(self.outcome("lock", "--barging", "a")[0], USAGE, "not on tenure://")


class Steps(WithServer):
    """Acquire in one step of a job, release in another one."""

    def setUp(self):
        self.lease = self.output("lease", "grant", "--ttl", "60s", "--owner", "ci").strip()

    def test_a_hold_under_a_lease_outlives_the_command_until_its_token_releases_it(self):
        token = self.output("lock", "step/a", "--lease", self.lease, "-o", "quiet").strip()
        holder = self.held("step/a")[0]

        self.assertEqual((str(holder.lease_id), str(holder.fencing_token)), (self.lease, token))
        self.assertEqual(self.outcome("try", "step/a")[0], BUSY)
        self.assertEqual(self.outcome("unlock", "step/a", "--token", str(int(token) + 1))[0], 1)
        self.assertEqual(self.output("unlock", "step/a", "--token", token), "released 1\n")
        self.assertEqual(self.held("step/a"), [])
        self.assertEqual(self.outcome("unlock", "step/a", "--token", token)[0], 1)

    def test_a_lease_releases_by_its_id_and_ends_all_its_holds(self):
        shown = json.loads(self.output("lock", "step/b", "step/c", "--lease", self.lease, "--json"))
        self.assertEqual((shown["lease"], shown["names"]), (self.lease, ["step/b", "step/c"]))
        self.output("lock", "step/d", "-s", "--lease", self.lease)
        self.output("lock", "step/e", "--capacity", "2", "--lease", self.lease)

        self.output("unlock", "step/d", "--lease", self.lease)
        self.assertEqual(self.held("step/d"), [])
        self.output("lease", "revoke", self.lease)
        self.assertEqual(self.held("step/b") + self.held("step/e"), [])

    def test_a_held_lock_or_an_ended_lease_is_reported(self):
        self.output("lock", "step/f", "--lease", self.lease)
        other = self.output("lease", "grant").strip()

        self.assertEqual(self.outcome("lock", "-n", "step/f", "--lease", other)[0], BUSY)
        self.assertEqual(self.outcome("lock", "-n", "-E", "5", "step/f", "--lease", other)[0], 5)
        self.output("lease", "revoke", other)
        self.assertEqual(self.outcome("lock", "step/g", "--lease", other)[0], LOST)
        self.assertEqual(self.outcome("lock", "step/g", "--lease", "x")[0], USAGE)


class Wait(WithServer):
    def test_wait_returns_when_the_lock_is_free(self):
        self.assertEqual(self.outcome("wait", "wait/free"), (0, "", ""))
        holder = self.begin("lock", "wait/a", "--owner", "ann")
        self.line_of(holder)
        waiting = self.begin("wait", "wait/a")

        self.assertEqual(self.outcome("wait", "-n", "wait/a")[0], BUSY)
        code, _, err = self.outcome("wait", "--wait", "50ms", "-E", "9", "wait/a")
        self.assertEqual(code, 9)
        self.assertIn("not free: wait/a is held by ann", err)
        self.assertIsNone(waiting.poll())
        holder.send_signal(signal.SIGTERM)

        self.assertEqual(waiting.wait(TIMEOUT), 0)
        self.assertEqual(self.held("wait/a"), [])

    def test_ctrl_c_ends_the_wait(self):
        holder = self.begin("lock", "wait/b")
        self.line_of(holder)
        waiting = self.begin("wait", "wait/b")
        # The thread that reads the signals is the second one of the process.
        eventually(lambda: len(os.listdir(f"/proc/{waiting.pid}/task")) > 1, "it handles signals")

        waiting.send_signal(signal.SIGINT)

        self.assertEqual(waiting.wait(TIMEOUT), 128 + signal.SIGINT)


class Report(WithServer):
    """`tenure run --json`"""

    def test_json_has_the_token_the_wait_and_the_exit_codes(self):
        out = self.output("run", "--json", "report/a", "--", "sh", "-c", "echo $TENURE_TOKEN")
        token, line = out.splitlines()
        shown = json.loads(line)

        self.assertEqual((shown["names"], shown["mode"], shown["token"]),
                         (["report/a"], "X", token))
        self.assertEqual((shown["exit_code"], shown["command_exit_code"], shown["is_lost"],
                          shown["is_over_time"], shown["is_acquired"]), (0, 0, False, False, True))
        self.assertGreaterEqual(shown["waited_ms"], 0)

    def test_json_shows_why_there_is_no_exit_code_of_the_command(self):
        self.line_of(self.begin("lock", "report/b"))
        code, out, _ = self.outcome("run", "--json", "--wait", "200ms", "report/b", "--", "true")
        busy = json.loads(out)
        late = json.loads(self.outcome("run", "--json", "--at-most", "100ms", "report/c", "--",
                                       "sleep", "60")[1])
        failed = json.loads(self.outcome("run", "--json", "report/c", "--", "sh", "-c",
                                         "exit 79")[1])

        self.assertEqual((code, busy["exit_code"], busy["is_acquired"]), (BUSY, BUSY, False))
        self.assertGreaterEqual(busy["waited_ms"], 200)
        self.assertNotIn("command_exit_code", busy)
        self.assertEqual((late["exit_code"], late["is_over_time"], late["command_exit_code"]),
                         (LOST, True, 128 + signal.SIGTERM))
        self.assertEqual((failed["exit_code"], failed["is_lost"]), (79, False))


if __name__ == "__main__":
    unittest.main()
