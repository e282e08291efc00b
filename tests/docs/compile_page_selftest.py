#!/usr/bin/env python3
"""compile_page.py finds planted errors in a page, and none in a correct page."""
import os
import pathlib
import tempfile
import unittest

import compile_page

RIGHT = '''
<!-- run -->
```sh
echo hello
```

```text
hello
```

<!-- from: lines.cpp -->
```cpp
if (a) {
  b();
}
```

```sh
exit 1  # not marked, so not run
```
'''


class CompilePage(unittest.TestCase):
    def errors_in(self, markdown):
        with tempfile.TemporaryDirectory() as temporary:
            root = pathlib.Path(temporary)
            (root / "lines.cpp").write_text("void f() {\n  if (a) {\n    b();\n  }\n}\n")
            reader = compile_page.Reader(root, "g++", root, dict(os.environ))
            return list(reader.errors(compile_page.blocks_of(markdown)))

    def test_a_correct_page_passes(self):
        self.assertEqual(self.errors_in(RIGHT), [])

    def test_different_output_is_found(self):
        found = self.errors_in(RIGHT.replace("echo hello", "echo goodbye"))
        self.assertEqual(len(found), 1)
        self.assertIn("goodbye", found[0])

    def test_lines_that_no_longer_occur_in_their_file_are_found(self):
        found = self.errors_in(RIGHT.replace("  b();", "  c();"))
        self.assertEqual(len(found), 1)
        self.assertIn("lines.cpp", found[0])

    def test_a_failing_command_is_found(self):
        found = self.errors_in("<!-- run -->\n```sh\nfalse\n```\n")
        self.assertEqual(len(found), 1)


if __name__ == "__main__":
    unittest.main()
