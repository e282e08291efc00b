#!/usr/bin/python3
"""`tenure bench`, `snapshot` and `fence check`, with a real tenured."""

import json
import pathlib
import re
import signal
import unittest

from command import TIMEOUT, UNREACHABLE, USAGE, WithServer, eventually
from screen import Screen

import daemon


class Bench(WithServer):
    def nothing_is_left(self):
        return (self.output("ls", "tenure-bench/") == "" and
                json.loads(self.output("lease", "ls", "--json")) == [])

    def test_every_mode_counts_its_operations_and_releases_all_locks(self):
        for mode, steps in (("mutex", ["lock", "unlock"]), ("shared", ["lock_shared", "unlock"]),
                            ("handover", ["hand-over"]), ("lease", ["grant", "revoke"])):
            figures = json.loads(self.output("bench", "-m", mode, "-c", "4", "--count", "100",
                                           "--time", "60s", "--json"))[0]

            self.assertEqual((figures["mode"], figures["clients"], figures["errors"]),
                             (mode, 4, {}))
            for step in steps:
                measured = figures[step]
                times = [measured["latency_us"][name]
                         for name in ("p50", "p90", "p99", "p99.9", "max")]
                self.assertIn(measured["count"], (99, 100), step)
                self.assertEqual(times, sorted(times))
                self.assertGreater(times[0], 0)
                self.assertEqual(sum(row["count"] for row in measured["histogram"]),
                                 measured["count"])
            eventually(self.nothing_is_left, "all locks are released")

    def test_a_benchmark_ends_after_its_time(self):
        figures = json.loads(self.output("bench", "--time", "200ms", "--json"))[0]

        self.assertGreater(figures["lock"]["count"], 0)
        self.assertGreaterEqual(figures["seconds"], 0.2)

    def test_ctrl_c_prints_the_results_so_far(self):
        process = self.begin("bench", "--mode", "handover", "--time", "1h", "--json")
        eventually(lambda: self.output("ls", "tenure-bench/", "-o", "quiet"), "the benchmark runs")

        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT)

        self.assertEqual((process.returncode, err), (0, ""))
        self.assertEqual(json.loads(out)[0]["errors"], {})
        eventually(self.nothing_is_left, "all locks are released")

    def test_several_urls_are_compared_in_one_table(self):
        out = self.output("bench", self.url, "memory://", "--count", "50", "--time", "60s")
        rows = [line.split("\t") for line in out.splitlines()]

        self.assertEqual([row[:3] for row in rows[:4]],
                         [[self.url, "lock", "50"], [self.url, "unlock", "50"],
                          ["memory://", "lock", "50"], ["memory://", "unlock", "50"]])
        self.assertTrue(any("%" in row[-1] for row in rows[4:]), "a histogram without bars")

    def test_a_terminal_shows_progress_and_a_histogram(self):
        screen = Screen(self.folder.name, self.environment(LANG="C.UTF-8"), "bench", "--time", "1h")
        self.addCleanup(screen.end)
        going = re.compile(r" of 1 h 0 min  [1-9][\d,]* done, [\d,]+/s, p99 ")
        eventually(lambda: going.search(screen.text()), "progress is shown")

        screen.press("C-c")

        eventually(lambda: "left with 0" in screen.text(), "the benchmark ends")
        self.assertIn("█", screen.text())
        self.assertIn("P99.9", screen.text())
        self.assertNotIn(" done, ", screen.text())

    def test_an_impossible_benchmark_is_an_error(self):
        for words, expected in ((["-m", "handover", "-c", "1"], USAGE), (["-c", "0"], USAGE),
                                (["-m", "nonsense"], USAGE), (["nonsense://"], USAGE),
                                (["tenure://127.0.0.1:1", "--timeout", "200ms", "--time", "1s"],
                                 UNREACHABLE)):
            code, _, err = self.outcome("bench", *words)
            self.assertEqual(code, expected, (words, err))
            self.assertIn("tenure: ", err)


class Snapshot(WithServer):
    def file(self, name):
        return pathlib.Path(self.folder.name) / name

    def lease(self, client):
        """Grants a lease that is revoked at the end of the test."""
        lease = client.lease()
        self.addCleanup(lambda: self.output("lease", "revoke", str(lease)))
        return lease

    def with_locks(self):
        """Acquires three locks with two prefixes, and adds a waiter. Returns the lease."""
        client = self.client()
        lease = self.lease(client)
        for name in ("db/users", "db/orders", "reports"):
            client.lock(name, lease, owner="ann")
        self.begin("lock", "db/users", "--owner", "bob")
        eventually(lambda: "bob" in self.output("show", "db/users"), "bob waits")
        return lease

    def test_a_snapshot_is_inspected_and_seeds_a_server_that_continues(self):
        lease = self.with_locks()
        path = self.file("state.snapshot")

        saved = json.loads(self.output("snapshot", "save", str(path), "--json"))
        shown = json.loads(self.output("snapshot", "inspect", str(path), "--json"))

        self.assertEqual((saved["locks"], saved["holds"], saved["waits"]), (3, 3, 1))
        self.assertEqual({name: shown[name] for name in saved if name != "prefixes"},
                         {name: saved[name] for name in saved if name != "prefixes"})
        self.assertEqual(shown["prefixes"],
                         [{"prefix": "db/", "locks": 2, "holds": 2, "waits": 1},
                          {"prefix": "reports", "locks": 1, "holds": 1, "waits": 0}])
        self.assertEqual(shown["bytes"], path.stat().st_size)
        self.assertIn("revision\t" + shown["revision"],
                      self.output("snapshot", "inspect", str(path)))
        self.assertFalse(self.file("state.snapshot.part").exists())

        seeded = self.file("seeded")
        done = daemon.run("seed", "--current", "--from", str(path), "--data-dir", str(seeded))
        self.assertEqual(done.returncode, 0, done.stderr)
        other = daemon.Daemon(seeded).start()
        self.addCleanup(other.kill)
        url = "tenure://" + other.grpc_address
        held = json.loads(self.output("ls", "--json", "--url", url))

        self.assertEqual([lock["name"] for lock in held], ["db/orders", "db/users", "reports"])
        self.assertTrue(all(lock["holders"][0]["lease"] == str(lease) for lock in held))
        token = self.output("run", "new", "--url", url, "--", "sh", "-c", "echo $TENURE_TOKEN")
        self.assertGreater(int(token), int(shown["revision"]) + 2**40)

    def test_an_existing_file_is_kept_without_force(self):
        path = self.file("kept")
        path.write_text("mine", encoding="utf-8")

        code, _, err = self.outcome("snapshot", "save", str(path))
        self.assertEqual((code, path.read_text(encoding="utf-8")), (USAGE, "mine"))
        self.assertIn("--force", err)

        self.output("snapshot", "save", str(path), "--force")
        self.output("snapshot", "inspect", str(path))

    def test_damage_is_reported_with_its_position(self):
        whole = self.file("whole")
        self.output("snapshot", "save", str(whole))
        content = whole.read_bytes()

        def flipped(at):
            return content[:at] + bytes([content[at] ^ 1]) + content[at + 1:]

        for name, written, expected in (("flipped", flipped(100), "bytes 68 to "),
                                    ("cut", content[:-1], "it is cut off"),
                                    ("longer", content + b"x", "something was appended"),
                                    ("head", flipped(20), "the head"),
                                    ("other", b"something else", "byte 0: "),
                                    ("empty", b"", "byte 0: ")):
            path = self.file(name)
            path.write_bytes(written)
            code, out, err = self.outcome("snapshot", "inspect", str(path))
            self.assertEqual((code, out), (1, ""), name)
            self.assertIn(expected, err)
            seeded = daemon.run("seed", "--from", str(path), "--data-dir", str(self.file("no")))
            self.assertNotEqual(seeded.returncode, 0, name)
            self.assertFalse(self.file("no").exists(), name)
        self.assertEqual(self.outcome("snapshot", "inspect", "/no/such/file")[0], 1)

    def test_a_large_snapshot_is_complete_while_the_server_is_busy(self):
        client = self.client()
        lease = self.lease(client)
        for number in range(60):
            client.lock(f"large/{number:05}/" + "x" * 200, lease, owner="o" * 100,
                        metadata=b"m" * 4000)
        path = self.file("large.snapshot")

        bench = self.begin("bench", "--time", "1h", "-c", "2", "-o", "quiet")
        eventually(lambda: self.output("ls", "tenure-bench/", "-o", "quiet"), "the benchmark runs")
        saved = json.loads(self.output("snapshot", "save", str(path), "--json"))
        bench.send_signal(signal.SIGINT)

        self.assertEqual(bench.wait(TIMEOUT), 0)
        self.assertGreaterEqual(saved["locks"], 60)
        self.assertGreater(saved["bytes"], 4 * 65536)

    def test_a_failed_save_leaves_no_file(self):
        path = self.file("failed")

        code, _, _ = self.outcome("snapshot", "save", str(path), "--url", "tenure://127.0.0.1:1",
                                  "--timeout", "200ms")

        self.assertEqual(code, UNREACHABLE)
        self.assertFalse(path.exists() or self.file("failed.part").exists())


class FenceCheck(WithServer):
    def verdict(self, name, token, code):
        got, out, err = self.outcome("fence", "check", name, str(token), "--json")
        self.assertEqual(got, code, out + err)
        return json.loads(out)

    def test_a_token_is_valid_until_the_lock_has_a_newer_holder(self):
        client = self.client()
        lease = client.lease()
        first = client.lock("checked", lease, owner="ann").fencing_token

        held = self.verdict("checked", first, 0)
        client.unlock(lease, first)
        ended = self.verdict("checked", first, 1)
        second = client.lock("checked", lease, owner="bob").fencing_token
        superseded = self.verdict("checked", first, 1)
        unborn = self.verdict("checked", second + 1_000_000, 1)

        self.assertEqual((held["verdict"], held["owner"]), ("held", "ann"))
        self.assertEqual((ended["verdict"], ended["newest_token"]), ("ended", "0"))
        self.assertEqual((superseded["verdict"], superseded["newest_token"]),
                         ("superseded", str(second)))
        self.assertEqual(unborn["verdict"], "never_given")

    def test_the_tokens_of_all_readers_are_valid(self):
        client = self.client()
        tokens = []
        for _ in range(3):
            lease = client.lease()
            tokens.append(client.lock("read", lease, mode=daemon.item_pb.MODE_SHARED).fencing_token)

        self.assertEqual({self.verdict("read", token, 0)["verdict"] for token in tokens}, {"held"})

    def test_an_invalid_token_is_a_usage_error(self):
        for token in ("0", "-1", "many"):
            self.assertEqual(self.outcome("fence", "check", "a", token)[0], USAGE)


class InJson(WithServer):
    """Every command with output supports `--json`."""

    def test_every_command_with_output_prints_json(self):
        holder = self.begin("lock", "json/a", "--json")
        token = json.loads(self.line_of(holder))["token"]
        lease = json.loads(self.output("lease", "grant", "--json"))["lease"]
        path = str(pathlib.Path(self.folder.name) / "json.snapshot")

        for words in (["ls"], ["show", "json/a"], ["explain", "json/a"], ["top"],
                      ["fence", "check", "json/a", token], ["lease", "ls"],
                      ["lease", "show", lease], ["lease", "keep", "--once", lease],
                      ["lease", "revoke", lease], ["cluster", "status"], ["doctor"],
                      ["snapshot", "save", path], ["snapshot", "inspect", path],
                      ["bench", "--count", "5", "--time", "60s"], ["elect", "json/a"],
                      ["unlock", "--force", "--yes", "json/a"],
                      ["watch", "json/", "--from", "1", "--count", "1"]):
            self.assertIsNotNone(json.loads(self.output(*words, "--json")), words)


if __name__ == "__main__":
    unittest.main()
