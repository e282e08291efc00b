#!/usr/bin/python3
"""`make demo`, shortened: the late write is rejected, and a wrong total is reported."""

import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

HOME = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(sys.argv.pop(1))


class Demo(unittest.TestCase):
    def run_demo(self, *flags):
        """(exit code, output, accepted writes as (worker, token, total))"""
        with tempfile.TemporaryDirectory(prefix="tenure_demo_test.") as folder:
            output = subprocess.run(
                [HOME / "tools/demo.py", BUILD, "--folder", folder, "--think-ms", "5", "--ttl-ms",
                 "1000", "--rounds", "1", *flags], text=True, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=250, check=False,
                env=os.environ | {"BASE_PORT": "0"})
            file = pathlib.Path(folder) / "account.db"
            self.assertTrue(file.exists(), output.stdout)
            database = sqlite3.connect(file)
            writes = database.execute(
                "SELECT who, token, total FROM writes ORDER BY number").fetchall()
            database.close()
        return output.returncode, output.stdout, writes

    def test_the_late_write_of_a_paused_holder_is_fenced_and_the_total_is_correct(self):
        code, output, writes = self.run_demo()

        self.assertEqual(code, 0, output)
        stopped = re.search(r"dora holds the lock with token (\d+), has read (\d+), and is paused",
                            output)
        self.assertTrue(stopped, output)
        token, read = map(int, stopped.groups())
        self.assertRegex(output, f"service +the lease of dora has expired, and token {token} ")
        self.assertRegex(output, f"storage +rejects dora's {read + 1}: token {token} is stale")
        self.assertRegex(output, "dora +is notified: lease_lost")
        self.assertRegex(output, "waited .* holds it with token")
        self.assertIn("Dashboard: http://127.0.0.1:", output)
        tokens = [accepted for _, accepted, _ in writes]
        self.assertNotIn(token, tokens)
        self.assertEqual(tokens, sorted(tokens))
        self.assertEqual([total for *_, total in writes], list(range(1, len(writes) + 1)))
        self.assertIn(f"{len(writes)} writes of +1 were accepted, and the account has "
                      f"{len(writes)}: correct.", output)

    def test_without_a_fence_the_late_write_is_accepted_and_reported(self):
        code, output, writes = self.run_demo("--no-fence")

        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"the account has \d+: \d+ are lost")
        self.assertRegex(output, "Late writes accepted: [1-9]")
        tokens = [accepted for _, accepted, _ in writes]
        self.assertNotEqual(tokens, sorted(tokens))


if __name__ == "__main__":
    unittest.main()
