#!/usr/bin/env python3
"""tidy.py finds each violation that is planted, and nothing in a tree that keeps the rules."""
import pathlib
import tempfile
import unittest

import tidy

HEADER = "#pragma once\n"
RIGHT = {
    "include/tenure/lock_manager/lock_manager.hpp":
        HEADER + "#include <map>\n#include <tenure/ids.hpp>\n"
        "class LockManager;\nstruct LockManagerOptions {};\n",
    "src/sys/clock.hpp": HEADER + "#include <thread>\n",
    "src/core/queue.hpp": HEADER + "// No double grants, prints \"steady_clock::now\".\n",
    "src/server/http/a.hpp": HEADER,
    "src/server/main.cpp": '#include "server/http/a.hpp"\n#include "server/rpc/a.hpp"\n',
    "src/server/rpc/a.hpp": HEADER,
    "src/net/table.cpp": '#include <tenure/ids.hpp>\n#include "sys/clock.hpp"\n'
                         "#include <absl/hash/hash.h>\n// TODO(#12): later\n",
    "tests/unit/table_test.cpp": '#include "support/clock.hpp"\n',
}


def findings(changes):
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        for name, text in {**RIGHT, **changes}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return list(tidy.check_tree(root))


PLANTED = {
    "core includes sys": ("src/core/a.cpp", '#include "sys/clock.hpp"\n', ":1: src/core may not"),
    "sys includes net": ("src/sys/a.cpp", '#include "net/table.cpp"\n', ":1: src/sys may not"),
    "an include that is not from src": ("src/net/a.cpp", '#include "table.cpp"\n', "from src/"),
    "a third party in a public header": ("include/tenure/a.hpp", HEADER + "#include <absl/x.h>\n",
                                         ":2: public headers"),
    "an unknown layer": ("src/extra/a.cpp", "\n", "no known layer"),
    "an unknown folder of a known layer": ("src/server/extra/a.cpp", "\n", "no known layer"),
    "http includes rpc": ("src/server/http/a.cpp", '#include "server/rpc/a.hpp"\n',
                          ":1: src/server/http may not"),
    "rpc includes http": ("src/server/rpc/a.cpp", '#include "server/http/a.hpp"\n',
                          ":1: src/server/rpc may not"),
    "a folder of the server includes main's": ("src/server/rpc/a.cpp",
                                               '#include "server/main.cpp"\n',
                                               ":1: src/server/rpc may not"),
    "a clock in core": ("src/core/a.cpp", "auto t = steady_clock::now();\n", ":1: core"),
    "a hash map in core": ("src/core/a.cpp", "\nstd::unordered_map<int, int> m;\n", ":2: core"),
    "floating point in core": ("src/core/a.cpp", "double ratio = 1;\n", ":1: core"),
    "a long file": ("bench/a.cpp", "\n" * 601, "601 lines"),
    "a long line": ("examples/a.cpp", "\n//" + "x" * 99 + "\n", ":2: the line has 101"),
    "a file name without a purpose": ("src/net/lock_utils.cpp", "\n", "'util'"),
    "a type name without a purpose": ("src/net/a.cpp", "class [[nodiscard]] LeaseUtils {\n",
                                      "'util'"),
    "an open end": ("tests/unit/a.cpp", "// TODO: later\n", ":1: TODO without"),
    "an idiom in a build file": ("tests/CMakeLists.txt", "# Wherever it lies\n", ":1: 'Wherever'"),
    "an idiom in a CMake script": ("cmake/a.cmake", "\n# for want of it\n", ":2: 'for want of'"),
    "an idiom in a script": ("tools/a.sh", "# nobody\n", ":1: 'nobody'"),
    "an idiom in a hook": ("tools/hooks/commit-msg", "# nobody\n", ":1: 'nobody'"),
    "an idiom in a unit": ("packaging/a.service", "# nobody\n", ":1: 'nobody'"),
    "a default port": ("tests/daemon/a_test.py", "PORT = 7420\n", "the default port 7420"),
    "no pragma once": ("src/net/a.hpp", "// nothing\n", "#pragma once"),
}


class TidyCheck(unittest.TestCase):
    def test_a_tree_that_keeps_the_rules_passes(self):
        self.assertEqual(findings({}), [])

    def test_each_planted_violation_is_found_once_where_it_stands(self):
        for what, (name, text, expected) in PLANTED.items():
            with self.subTest(what):
                found = findings({name: text})
                self.assertEqual(len(found), 1, found)
                self.assertTrue(found[0].startswith(name + ":"))
                self.assertIn(expected, found[0])

    def test_a_cycle_of_layers_is_found(self):
        found = list(tidy.check_relation({"a": (), "b": ("a", "d"), "c": ("b",), "d": ("c",)}))
        self.assertEqual(len(found), 1, found)
        self.assertIn("a cycle of folders", found[0])
        for folder in ("b", "c", "d"):
            self.assertIn(folder, found[0])

    def test_a_layer_that_includes_itself_is_a_cycle(self):
        self.assertEqual(len(list(tidy.check_relation({"a": ("a",)}))), 1)

    def test_a_folder_that_the_table_lacks_is_found(self):
        self.assertEqual(list(tidy.check_relation({"a": ("b",)})),
                         ["a may include b, which the table does not have"])


if __name__ == "__main__":
    unittest.main()
