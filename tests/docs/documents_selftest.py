#!/usr/bin/env python3
"""The checks of documents find planted errors, and no others."""
import pathlib
import sys
import tempfile
import unittest

import blocks
import cited_paths
import guarantees
import links
import log_events

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import doxygen_filter  # noqa: E402

CMAKE = '''
tenure_script("docs: a" tests/docs/compile_page.py docs/programs.md --build x)
add_test(NAME "docs: b"
  COMMAND /usr/bin/python3 tests/docs/run_page.py
          docs/commands.md --tenured y)
'''


class Blocks(unittest.TestCase):
    def errors_in(self, name, markdown):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for place in ("tests", "docs"):
                (root / place).mkdir()
            (root / "tests/CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
            for document in ("docs/programs.md", "docs/commands.md", name):
                (root / document).write_text("", encoding="utf-8")
            (root / name).write_text(markdown, encoding="utf-8")
            return list(blocks.check(root))

    def test_tested_and_explained_blocks_pass(self):
        self.assertEqual(self.errors_in("docs/commands.md", """
<!-- run -->
```sh
echo a
```
```text
a
```

<!-- file: a.cpp -->
```cpp
int main() {}
```
Text with a mark at its end. <!-- fragment: needs two machines -->
```sh
ssh other
```
<!-- start on: one, two -->
```toml
a = 1
```
<!-- run on: one -->
```sh
true
```
"""), [])
        self.assertEqual(self.errors_in("docs/programs.md", "```cpp\nint main() {}\n```\n"), [])

    def test_unmarked_shell_is_found_with_every_fence(self):
        for fence in ("```sh", "```bash", "```console", "~~~sh", "````shell", "  ```sh"):
            with self.subTest(fence):
                end = fence.strip().rstrip("bashconle")
                found = self.errors_in("docs/commands.md", f"{fence}\nrm x\n{end}\n")
                self.assertEqual(len(found), 1, found)
                self.assertIn("docs/commands.md:1: shell", found[0])

    def test_an_unmarked_configuration_is_found(self):
        found = self.errors_in("docs/commands.md", "```toml\na = 1\n```\n")
        self.assertEqual(len(found), 1)
        self.assertIn("TOML that no test executes", found[0])

    def test_unmarked_code_is_found_where_no_test_compiles_it(self):
        self.assertEqual(len(self.errors_in("docs/commands.md", "```cpp\nint a;\n```\n")), 1)
        self.assertEqual(len(self.errors_in("docs/other.md", "```cpp\nint a;\n```\n")), 1)

    def test_a_mark_in_a_document_that_no_test_runs_is_found(self):
        found = self.errors_in("docs/other.md", "<!-- run -->\n```sh\necho\n```\n")
        self.assertEqual(len(found), 1)
        self.assertIn("no test runs this document", found[0])

    def test_a_mark_counts_for_its_own_block_only(self):
        text = "<!-- run -->\n```sh\necho\n```\n```sh\necho again\n```\n"
        self.assertEqual(len(self.errors_in("docs/commands.md", text)), 1)
        text = "<!-- run -->\nWords.\n```sh\necho\n```\n"
        self.assertEqual(len(self.errors_in("docs/commands.md", text)), 1)

    def test_a_fragment_needs_a_reason_and_a_fence_a_language(self):
        self.assertEqual(
            len(self.errors_in("docs/other.md", "<!-- fragment: -->\n```sh\necho\n```\n")), 1)
        self.assertEqual(len(self.errors_in("docs/other.md", "```\nwhat is it\n```\n")), 1)

    def test_a_registered_document_that_does_not_exist_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tests").mkdir()
            (root / "tests/CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
            self.assertEqual(len(list(blocks.check(root))), 2)


class Tree(unittest.TestCase):
    """A repository of a few files."""

    def errors_in(self, check, **files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                file = root / name.replace("__", "/").replace("_dot_", ".")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            return list(check(root))


class Links(Tree):
    def found(self, text):
        return self.errors_in(links.errors, README_dot_md=text,
                               docs__a_dot_md="# `tenure://`, one node\n\n```sh\n# none\n```\n")

    def test_links_with_a_target_pass(self):
        self.assertEqual(self.found("[a](docs/a.md#tenure-one-node) [b](https://c.d/e) "
                                    "`[x](nowhere)` [me](#me)\n# Me\n"), [])

    def test_a_missing_file_and_a_missing_heading_are_found(self):
        self.assertEqual(len(self.found("[a](docs/b.md)")), 1)
        self.assertEqual(len(self.found("[a](docs/a.md#two-nodes)")), 1)
        self.assertEqual(len(self.found("[a](docs/a.md#none)")), 1)


class CitedPaths(Tree):
    def found(self, text, comment=""):
        return self.errors_in(cited_paths.errors, docs__a_dot_md=text,
                              src__core__a_dot_hpp=f"// {comment}\n",
                              docs__decisions__0007_dot_md="")

    def test_existing_paths_and_placeholders_pass(self):
        self.assertEqual(self.found("`src/core/a.hpp`, `src/core/a`, `src/*/b.hpp`, `make docs/x`"
                                    " src/none.hpp", "See docs/decisions/0007, http://src/none."),
                         [])

    def test_a_missing_path_is_found_in_documents_and_comments(self):
        self.assertEqual(len(self.found("`src/core/b.hpp`")), 1)
        self.assertEqual(len(self.found("", "See docs/b.md.")), 1)


class Guarantees(Tree):
    PAGE = ("| capability | `redis://` |\n|---|---|\n| `fifo` | yes |\n\n## Faults\n"
            "| fault | shown by |\n|---|---|\n| kill | `Loss.is_told` |\n")
    BACKENDS = ("| capability | meaning | `redis://` |\n|---|---|---|\n"
                "| `fifo` | order | yes, fair |\n")

    def found(self, page=PAGE, backends=BACKENDS):
        return self.errors_in(guarantees.errors, docs__guarantees_dot_md=page,
                               docs__reference__backends_dot_md=backends,
                               tests__a_test_dot_cpp="TEST_P(Loss, is_told) {\n",
                               tests__b_test_dot_py="class Run:\n    def test_it_ends(self):\n")

    def test_existing_tests_and_equal_tables_pass(self):
        self.assertEqual(self.found(), [])
        self.assertEqual(self.found(self.PAGE.replace("Loss.is_told", "Run.it_ends")), [])

    def test_a_test_that_does_not_exist_is_found(self):
        self.assertEqual(len(self.found(self.PAGE.replace("is_told", "is_hidden"))), 1)

    def test_a_different_table_is_found(self):
        self.assertEqual(len(self.found(self.PAGE.replace("| yes", "| no"))), 1)
        self.assertEqual(len(self.found(backends=self.BACKENDS.replace("yes, fair", "no"))), 1)

    def test_a_table_without_any_test_is_found(self):
        self.assertEqual(len(self.found(self.PAGE.replace("`Loss.is_told`", "–"))), 1)


class LogEvents(Tree):
    SOURCE = ('void f() {\n  log::info("ready", {{"port", port},\n'
              '                     {"name", name}});\n'
              '  report(log::Level::error, "failed");\n}\n')
    PAGE = "| `ready` | info | `port`, `name` | a |\n| `failed` | error | | b |\n"

    def found(self, page=PAGE, source=SOURCE):
        return self.errors_in(log_events.errors, docs__reference__log_events_dot_md=page,
                              src__server__main_dot_cpp=source, src__sys__log_dot_cpp="")

    def test_documented_events_pass(self):
        self.assertEqual(self.found(), [])

    def test_an_event_or_field_without_documentation_is_found(self):
        self.assertEqual(len(self.found(self.PAGE.replace("`failed`", "`other`"))), 2)
        self.assertEqual(len(self.found(self.PAGE.replace("`port`, ", ""))), 1)

    def test_an_event_that_no_source_logs_is_found(self):
        self.assertEqual(len(self.found(source=self.SOURCE.replace('"failed"', "event"))), 1)


class Reach(unittest.TestCase):
    """tools/doxygen_filter.py: a comment applies to all declarations up to the next empty line."""

    def documented(self, text):
        reach = doxygen_filter.Reach()
        return [line for line in map(reach.line, text.split("\n")) if "/**" in line]

    def test_a_comment_applies_to_all_declarations_right_below(self):
        self.assertEqual(self.documented("/// A.\nvoid a();\nvoid b(int,\n       int);\nvoid c();"),
                         ["/** A. */ void b(int,", "/** A. */ void c();"])
        self.assertEqual(self.documented("  /// A.\n  int a() {\n    return 1;\n  }\n  int b;"),
                         ["  /** A. */ int b;"])

    def test_a_comment_ends_at_empty_lines_other_comments_and_scopes(self):
        for end in ("", "// other", " private:", "};", "class C {"):
            with self.subTest(end):
                self.assertEqual(self.documented(f"/// A.\nvoid a();\n{end}\nvoid b();"), [])

    def test_a_declaration_with_a_comment_of_its_own_keeps_it(self):
        self.assertEqual(self.documented("/// A.\nint a;\nint b;  ///< B."), [])
        self.assertEqual(self.documented("/// A.\nint a;\n/// B.\nint b;"), [])


if __name__ == "__main__":
    unittest.main()
