#!/usr/bin/python3
"""`tenure top` in a terminal emulated by tmux, with a real tenured."""

import json
import unittest

from command import TIMEOUT, UNREACHABLE, WithServer, eventually
from screen import Screen

from daemon import lease_pb


class Top(WithServer):
    def setUp(self):
        """`hot` has two waiters; `cold` has none and is held longer."""
        client = self.client()
        self.lease = client.lease(client="ann-client")
        self.addCleanup(lambda: client.locks.LeaseRevoke(
            lease_pb.LeaseRevokeRequest(id=self.lease), timeout=TIMEOUT))
        client.lock("top/cold", self.lease, owner="ann")
        client.lock("top/hot", self.lease, owner="ann", metadata=b"busy")
        for owner in ("bob", "cyd"):
            self.begin("lock", "top/hot", "--owner", owner)
            eventually(lambda who=owner: who in self.output("show", "top/hot"), f"{owner} waits")

    def screen(self, *words, **size):
        made = Screen(self.folder.name, self.environment(LANG="C.UTF-8"), "top", *words, **size)
        self.addCleanup(made.end)
        return made

    def sees(self, screen, *texts):
        eventually(lambda: all(text in screen.text() for text in texts), f"{texts} on the screen")

    def rows(self, screen):
        """Names in the list of locks, from top to bottom."""
        lines = screen.text().splitlines()
        begin = next(at for at, line in enumerate(lines) if line.startswith("LOCK"))
        return [line.split()[0] for line in lines[begin + 1:] if line.startswith("top/")]

    def test_top_shows_locks_waits_leases_rates_and_the_leader_until_q(self):
        screen = self.screen("--interval", "300ms")

        self.sees(screen, "leader ", "locks 2", "waits 2", "granted ", "acquire p50", "top/hot",
                  "top/cold", "bob", "cyd", "LONGEST WAITS", "LEASES", str(self.lease))
        line = next(line for line in screen.text().splitlines() if line.startswith("top/hot"))
        self.assertEqual(line.split()[1:4], ["ann", "X", "2"])
        screen.press("q")

        self.sees(screen, "left with 0")

    def test_keys_sort_filter_select_and_pause(self):
        screen = self.screen("--interval", "300ms")
        self.sees(screen, "top/hot", "top/cold")
        screen.press("1")
        eventually(lambda: "LEASES" not in screen.text(), "only locks are shown")

        self.assertEqual(self.rows(screen), ["top/hot", "top/cold"])
        screen.press("n")
        eventually(lambda: self.rows(screen) == ["top/cold", "top/hot"], "sorted by name")
        screen.press("h")
        eventually(lambda: self.rows(screen) == ["top/cold", "top/hot"], "sorted by time held")
        screen.press("w")
        eventually(lambda: self.rows(screen) == ["top/hot", "top/cold"], "sorted by waiters")
        screen.press("/", "c", "o", "l", "Enter")
        eventually(lambda: self.rows(screen) == ["top/cold"], "filtered")
        screen.press("Escape")
        eventually(lambda: len(self.rows(screen)) == 2, "the filter is cleared")
        screen.press("2")
        self.sees(screen, "LONGEST WAITS")
        screen.press("?")
        self.sees(screen, "sort by waiters")
        screen.press("?", "p")
        self.sees(screen, "paused")
        screen.press("p")
        eventually(lambda: "paused" not in screen.text(), "top resumes")

    def test_top_adapts_to_the_size_of_the_terminal(self):
        screen = self.screen("--interval", "300ms")
        self.sees(screen, "top/hot")

        for columns, lines in ((60, 12), (20, 5), (10, 2), (160, 50)):
            screen.resize(columns, lines)
            eventually(lambda wide=columns: len(screen.text().splitlines()[0]) <= wide and
                       screen.text().startswith("tenure to"[:wide]), f"{columns} columns")
        self.sees(screen, "top/hot", "LEASES", "q quit")
        screen.press("q")

        self.sees(screen, "left with 0")

    def test_ctrl_c_quits_and_restores_the_terminal(self):
        screen = self.screen()
        self.sees(screen, "top/hot")

        screen.press("C-c")

        self.sees(screen, "left with 0")
        screen.press("echoed", "Enter")
        self.sees(screen, "echoed")

    def test_top_reports_an_unreachable_server_and_can_be_quit(self):
        screen = self.screen("--url", "tenure://127.0.0.1:1", "--timeout", "300ms")
        self.sees(screen, "127.0.0.1:1")

        screen.press("q")

        self.sees(screen, "left with 0")

    def test_metadata_cannot_control_the_terminal(self):
        self.client().lock("top/evil", self.lease, owner="eve", metadata=b"\x1b[2J\x07")
        screen = self.screen("--interval", "300ms")

        self.sees(screen, "top/hot", "top/cold", "top/evil", "[2J")

    def test_once_and_json_print_one_report(self):
        report = self.output("top", "--interval", "300ms")
        lines = [line.split("\t") for line in report.splitlines()]
        found = json.loads(self.output("top", "top/h", "--json", "--interval", "300ms"))
        by_name = json.loads(self.output("top", "--json", "--sort", "name", "--interval", "300ms"))

        self.assertEqual([line[1:5] for line in lines if line[0] == "lock"],
                         [["top/hot", "ann", "X", "2"], ["top/cold", "ann", "X", "0"]])
        self.assertEqual([line[2] for line in lines if line[0] == "wait"], ["bob", "cyd"])
        self.assertLessEqual({"leader", "number", "rate", "latency", "lease"},
                             {line[0] for line in lines})
        self.assertEqual([lock["name"] for lock in found["locks"]], ["top/hot"])
        self.assertEqual((found["locks"][0]["waiter_count"], found["locks"][0]["metadata"]),
                         (2, "busy"))
        self.assertEqual([wait["owner"] for wait in found["long_waits"]], ["bob", "cyd"])
        self.assertIn("granted", found["rates"])
        self.assertEqual([lock["name"] for lock in by_name["locks"]], ["top/cold", "top/hot"])
        self.assertIn(str(self.lease), [lease["lease"] for lease in found["lease_ends"]])

    def test_a_missing_server_gives_69(self):
        code, _, err = self.outcome("top", "--once", "--url", "tenure://127.0.0.1:1", "--timeout",
                                    "200ms")
        self.assertEqual(code, UNREACHABLE)
        self.assertIn("127.0.0.1:1", err)


if __name__ == "__main__":
    unittest.main()
