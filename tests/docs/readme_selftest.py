#!/usr/bin/env python3
"""readme.py finds what is wrong in a document, and nothing in one that is right."""
import os
import pathlib
import tempfile
import unittest

import readme

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


class ReadmeCheck(unittest.TestCase):
    def complaints(self, markdown):
        with tempfile.TemporaryDirectory() as temporary:
            root = pathlib.Path(temporary)
            (root / "lines.cpp").write_text("void f() {\n  if (a) {\n    b();\n  }\n}\n")
            reader = readme.Reader(root, "g++", root, dict(os.environ))
            return list(reader.complaints(readme.blocks_of(markdown)))

    def test_a_true_document_passes(self):
        self.assertEqual(self.complaints(RIGHT), [])

    def test_other_output_than_printed_is_found(self):
        found = self.complaints(RIGHT.replace("echo hello", "echo goodbye"))
        self.assertEqual(len(found), 1)
        self.assertIn("goodbye", found[0])

    def test_lines_that_no_longer_stand_in_their_file_are_found(self):
        found = self.complaints(RIGHT.replace("  b();", "  c();"))
        self.assertEqual(len(found), 1)
        self.assertIn("lines.cpp", found[0])

    def test_a_failing_command_is_found(self):
        found = self.complaints("<!-- run -->\n```sh\nfalse\n```\n")
        self.assertEqual(len(found), 1)


if __name__ == "__main__":
    unittest.main()
