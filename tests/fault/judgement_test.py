#!/usr/bin/python3
"""What the judge is shown of a run: without the places and grants that a client gave up unheard."""

import json
import unittest

from run import Run
from fleet import remove_folder, temporary_folder


class Judgement(unittest.TestCase):
    def setUp(self):
        self.run_ = Run.__new__(Run)  # only its folder is read
        self.run_.folder = temporary_folder()
        self.addCleanup(remove_folder, self.run_.folder)

    def judged(self, events, ended):
        (self.run_.folder / "people0.jsonl.ended").write_text(ended, encoding="utf-8")
        return self.run_.without_lost_places(json.loads(json.dumps(events)))

    # Found by pause_leader twice in a row: 3 s without an answer, and a read just before the client
    # gave up what had been granted to it meanwhile.
    def test_a_read_of_a_grant_that_nobody_heard_of_shows_the_others(self):
        read = {"at": 5, "since": 4, "kind": "read", "holders": [155, 160]}
        again = {"at": 9, "kind": "granted", "request": "people0.rw-3", "token": 301}

        events = self.judged([read, again], "7 revoked people0.rw-3 155\n")

        self.assertEqual(events, [{**read, "holders": [160]}, again])

    def test_a_read_of_a_grant_that_was_heard_of_stays(self):
        read = {"at": 5, "since": 4, "kind": "read", "holders": [155]}
        heard = {"at": 4, "kind": "granted", "request": "people0.rw-3", "token": 155}

        self.assertEqual(self.judged([heard, read], "7 revoked people0.rw-3 155\n"), [heard, read])


if __name__ == "__main__":
    unittest.main()
