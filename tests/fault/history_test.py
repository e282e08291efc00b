#!/usr/bin/python3
"""Preparation of a history for the checker: abandoned waits and unobserved grants are removed."""

import json
import unittest

from run import Run
from harness import remove_folder, temporary_folder


class HistoryFilter(unittest.TestCase):
    def setUp(self):
        self.run_ = Run.__new__(Run)  # only its folder is read
        self.run_.folder = temporary_folder()
        self.addCleanup(remove_folder, self.run_.folder)

    def filtered(self, events, ended):
        (self.run_.folder / "workload0.jsonl.ended").write_text(ended, encoding="utf-8")
        return self.run_.without_abandoned_requests(json.loads(json.dumps(events)))

    # Found by pause_leader twice in a row: 3 s without a reply, and a read just before the client
    # abandoned a request that had been granted in between.
    def test_a_read_does_not_show_a_grant_that_no_client_observed(self):
        read = {"at": 5, "since": 4, "kind": "read", "holders": [155, 160]}
        again = {"at": 9, "kind": "granted", "request": "workload0.rw-3", "token": 301}

        events = self.filtered([read, again], "7 revoked workload0.rw-3 155\n")

        self.assertEqual(events, [{**read, "holders": [160]}, again])

    def test_a_read_of_an_observed_grant_stays(self):
        read = {"at": 5, "since": 4, "kind": "read", "holders": [155]}
        heard = {"at": 4, "kind": "granted", "request": "workload0.rw-3", "token": 155}

        self.assertEqual(self.filtered([heard, read], "7 revoked workload0.rw-3 155\n"),
                         [heard, read])


if __name__ == "__main__":
    unittest.main()
