#!/usr/bin/python3
"""`tenure run` for scheduled jobs: its grammar, time limits, servers that restart, conflicts."""

import subprocess
import unittest

from command import TIMEOUT, USAGE, WithServer


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


if __name__ == "__main__":
    unittest.main()
