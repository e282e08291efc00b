"""Contract of `tenure` that every backend passes."""

import json
import signal
import subprocess
import tempfile

from command import BUSY, TIMEOUT, USAGE, eventually


class BackendContract:
    """Tests that every scheme of connect() shares. `url` selects the backend."""

    MAY_SHARE = True

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tenure_cli.")
        cls.started = []
        try:
            cls.url = cls.start(cls.folder.name)
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        for server in cls.started:
            server.end()
        cls.folder.cleanup()

    @classmethod
    def add(cls, server):
        cls.started.append(server)
        return f"127.0.0.1:{server.port}"

    # Only `tenure show` works on every backend.
    def owners(self, name):
        shown = json.loads(self.output("show", name, "--json"))
        return [holder["owner"] for holder in shown["holders"]]

    def holding(self, name, owner):
        """Starts `tenure run`, which holds the lock until its stdin is closed."""
        process = self.begin("run", name, "--owner", owner, "--", "cat", stdin=subprocess.PIPE)
        eventually(lambda: owner in self.owners(name), f"{owner} holds {name}")
        return process

    def test_run_excludes_others_and_returns_the_exit_code(self):
        self.assertEqual(self.outcome("run", "exit", "--", "sh", "-c", "exit 7")[0], 7)
        holder = self.holding("held", "ann")

        code, out, err = self.outcome("run", "-n", "held", "--", "echo", "ran")
        waiting = self.begin("run", "held", "--wait", "60s", "--", "echo", "second")
        holder.communicate("", timeout=TIMEOUT)
        out_of_second, _ = waiting.communicate(timeout=TIMEOUT)

        self.assertEqual((code, out), (BUSY, ""))
        self.assertIn("not acquired", err)
        self.assertEqual((holder.returncode, waiting.returncode, out_of_second), (0, 0, "second\n"))

    def test_the_token_of_the_next_holder_is_greater(self):
        show = ["--", "sh", "-c", "echo $TENURE_TOKEN"]
        first, second = (int(self.output("run", "token", *show)) for _ in range(2))

        self.assertGreater(second, first)

    def test_lock_and_try_hold_until_ctrl_c(self):
        for command in ("lock", "try"):
            process = self.begin(command, "until", "--json")
            token = json.loads(self.line_of(process))["token"]
            self.assertEqual(self.outcome("try", "until")[0], BUSY)
            self.assertEqual(self.outcome("fence", "check", "until", token)[0], 0)

            process.send_signal(signal.SIGINT)

            self.assertEqual(process.wait(TIMEOUT), 0)
            eventually(lambda: not self.owners("until"), "the lock is released")
            verdict = json.loads(self.outcome("fence", "check", "until", token, "--json")[1])
            self.assertEqual(verdict["verdict"], "ended")

    def test_elect_prints_the_leader(self):
        self.assertEqual(self.outcome("elect", "leader")[0], 1)
        process = self.begin("elect", "leader", "--value", "me", "--owner", "ann", "--", "cat",
                             stdin=subprocess.PIPE)
        eventually(lambda: self.outcome("elect", "leader")[0] == 0, "there is a leader")

        led = json.loads(self.output("elect", "leader", "--json"))
        process.communicate("", timeout=TIMEOUT)

        self.assertEqual((led["owner"], led["value"], process.returncode), ("ann", "me", 0))

    def test_bench_measures_the_backend_and_doctor_passes(self):
        figures = json.loads(self.output("bench", "--count", "20", "--clients", "2", "--time",
                                         "30s", "--json"))[0]
        checks = json.loads(self.output("doctor", "--json"))

        self.assertEqual((figures["lock"]["count"], figures["errors"]), (20, {}))
        findings = {check["check"].split(" of ")[0]: check["finding"] for check in checks}
        self.assertNotIn("bad", findings.values(), checks)
        self.assertEqual((findings["lock"], findings["version"]), ("good", "good"), checks)
        self.assertLessEqual({"eviction", "persistence", "replication", "clock", "permissions"},
                             set(findings))
        # No check is skipped without a reason.
        self.assertTrue(all(check["detail"] for check in checks), checks)

    def test_unsupported_operations_are_usage_errors_with_a_reason(self):
        refused = [["ls"], ["explain", "a"], ["top", "--once"], ["snapshot", "save", "x"],
                   ["cluster", "status"], ["lease", "ls"], ["unlock", "--force", "-y", "a"],
                   ["watch", "a"], ["elect", "a", "--listen"], ["run", "a", "b", "--", "true"]]
        if not self.MAY_SHARE:
            refused += [["run", "-s", "a", "--", "true"], ["bench", "-m", "shared", "-t", "5s"]]
        for words in refused:
            code, out, err = self.outcome(*words, "--timeout", "5s")
            self.assertEqual((code, out.startswith("Traceback")), (USAGE, False), (words, err))
            self.assertTrue(err.startswith("tenure: "), (words, err))
            self.assertGreater(len(err), len("tenure: \n") + 10, words)

    def test_a_semaphore_has_as_many_holders_as_permits(self):
        size = ["--capacity", "2"]
        if not self.MAY_SHARE:
            self.assertEqual(self.outcome("run", *size, "some", "--", "true")[0], USAGE)
            return
        holders = [self.begin("run", *size, "some", "--", "sh", "-c", "echo held; cat",
                              stdin=subprocess.PIPE) for _ in range(2)]
        self.assertEqual([self.line_of(holder) for holder in holders], ["held", "held"])

        third = self.outcome("run", *size, "-n", "some", "--", "true")[0]
        holders[0].communicate("", timeout=TIMEOUT)
        after = self.outcome("run", *size, "--wait", "30s", "some", "--", "true")[0]

        self.assertEqual((third, after), (BUSY, 0))

    def test_readers_share_a_lock_if_the_backend_supports_it(self):
        if not self.MAY_SHARE:
            self.assertEqual(self.outcome("run", "-s", "read", "--", "true")[0], USAGE)
            return
        reader = self.begin("run", "-s", "read", "--owner", "ann", "--", "cat",
                            stdin=subprocess.PIPE)
        eventually(lambda: self.owners("read"), "a reader holds the lock")

        beside = self.outcome("run", "-s", "-n", "read", "--", "true")[0]
        writer = self.outcome("run", "-n", "read", "--", "true")[0]
        reader.communicate("", timeout=TIMEOUT)

        self.assertEqual((beside, writer, reader.returncode), (0, BUSY, 0))
