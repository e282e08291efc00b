#!/usr/bin/env python3
"""vocabulary.py finds each kind of private wording, and accepts the terms of the field."""
import pathlib
import unittest

import vocabulary


def findings(name, *lines):
    return list(vocabulary.check_words(pathlib.Path(name), lines))


class WordsCheck(unittest.TestCase):
    def test_plain_technical_english_is_accepted(self):
        self.assertEqual(findings(
            "src/a.hpp", "/// Releases the lock; the first waiter is notified.",
            "void release(LeaseId lease);  // as long as the lease lives",
            'return error("the request is not valid: who holds what is unknown");',
            "TEST(Queue, a_waiting_writer_bars_later_readers) {"), [])

    def test_phrases_without_a_subject_are_found_in_comments_and_literals(self):
        for text in ("// Nobody waits.", '"somebody else has it"', "// one who waits", "// is told",
                     "// Made anew.", "// gives it back", "/* so many at once */"):
            with self.subTest(text):
                self.assertTrue(findings("src/a.cpp", text))

    def test_a_pronoun_is_found_unless_it_refers_to_a_person(self):
        self.assertEqual(len(findings("cmake/a.cmake", "# who reads JSON links it")), 1)
        self.assertEqual(findings("docs/a.md", "the user who has the lock; operators who are away"),
                         [])

    def test_idioms_are_found_in_build_files_and_scripts(self):
        for name, line in (("CMakeLists.txt", "# Wherever the sources lie"),
                           ("cmake/a.cmake", 'message("left out for want of Boost")'),
                           ("tools/a.sh", "# That is not our business."),
                           ("Makefile", "# Sources of ours.")):
            with self.subTest(line):
                self.assertEqual(len(findings(name, line)), 1)

    def test_phrases_are_not_looked_for_in_names(self):
        self.assertEqual(findings("src/a.cpp", "bool anew;"), [])

    def test_metaphors_are_found_in_names_and_texts(self):
        for line in ("class Errand;", "int errands_in_flight;", "OpenErrands open_;",
                     "// The courier reconnects.", "bool is_told_;", "Desk desk;"):
            with self.subTest(line):
                self.assertTrue(findings("src/a.hpp", line))

    def test_a_word_that_contains_a_metaphor_is_accepted(self):
        self.assertEqual(findings("src/a.hpp", "snapshot_, halls_;", "// desktop")[1:], [])

    def test_a_test_name_needs_a_subject(self):
        for line in ("TEST(Queue, who_waits_first_gets_it) {", "TEST_F(Queue, one_is_granted) {",
                     "    def test_those_with_a_lease_go_on(self):"):
            with self.subTest(line):
                self.assertEqual(len(findings("tests/a_test.py", line)), 1)

    def test_documents_are_checked_as_a_whole(self):
        self.assertEqual(len(findings("docs/a.md", "Nobody", "Each waiter", "is told")), 2)


class CommitMessageCheck(unittest.TestCase):
    def errors(self, message):
        return list(vocabulary.check_commit_message(message))

    def test_imperative_subjects_are_accepted(self):
        for subject in ("redis: wake only the front waiter", "Add the glossary",
                        "docs, cli: embed the table", "Merge branch 'x'", "pass the token on"):
            with self.subTest(subject):
                self.assertEqual(self.errors(subject + "\n\nIt saves one wake-up.\n"), [])

    def test_other_subjects_are_refused(self):
        for message in ("", "redis: a waiter is woken", "redis: wakes one waiter",
                        "redis: waking one waiter", "x" * 73, "core: add a limit\nno blank line",
                        "core: add a limit\n\nNobody needs more.\n"):
            with self.subTest(message):
                self.assertEqual(len(self.errors(message)), 1)

    def test_comments_of_git_are_ignored(self):
        self.assertEqual(self.errors("core: add a limit\n# nobody\n"), [])


if __name__ == "__main__":
    unittest.main()
