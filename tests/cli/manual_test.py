#!/usr/bin/python3
"""The manual pages that packages install: `make man` writes them by tools/man_pages.sh."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from command import HOME, TIMEOUT, tenure_path

from daemon import run, tenured_path


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tenure_man.")
        cls.pages = pathlib.Path(cls.folder.name) / "man"
        programs = pathlib.Path(cls.folder.name) / "bin"
        programs.mkdir()
        for name, path in (("tenure", tenure_path()), ("tenured", tenured_path())):
            (programs / name).symlink_to(pathlib.Path(path).resolve())
        subprocess.run([HOME / "tools/man_pages.sh", programs, cls.pages], timeout=TIMEOUT,
                       check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def page(self, name):
        return (self.pages / name).read_text(encoding="utf-8")

    def test_every_manual_page_exists_and_has_no_warnings(self):
        names = {path.name for path in self.pages.iterdir()}
        self.assertLessEqual({"tenure.1", "tenure-run.1", "tenure-bench.1", "tenure-top.1",
                              "tenure-snapshot-save.1", "tenure-fence-check.1", "tenured.8",
                              "tenure.toml.5", "libtenure.3"}, names)
        for name in sorted(names):
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-Z", self.pages / name],
                                  capture_output=True, text=True, timeout=TIMEOUT, check=True)
            self.assertEqual(done.stderr, "", name)
            stem, section = name.rsplit(".", 1)
            self.assertTrue(self.page(name).startswith(f".TH {stem.upper()} {section} "), name)

    def test_the_manual_pages_of_tenured_have_every_setting(self):
        config = run("--print-config").stdout
        keys, section = [], ""
        for line in config.splitlines():
            if found := re.match(r"\[(.*)\]", line):
                section = found.group(1)
            elif found := re.match(r"#? ?([a-z_]+) = ", line):
                keys.append(f"{section}.{found.group(1)}")
        flags = set(re.findall(r"--[a-z-]+", run("--help").stdout)) - {"--from", "--members",
                                                                        "--print-config"}
        self.assertGreater(len(keys), 30)

        for key in keys:
            self.assertIn(f"\n.B {key}\n", self.page("tenure.toml.5"))
        for flag in flags:
            self.assertIn(flag.replace("-", "\\-"), self.page("tenured.8"), flag)

    def test_an_unknown_page_is_a_usage_error(self):
        self.assertEqual(run("--print-man", "nonsense").returncode, 64)

    def test_the_example_of_the_library_compiles(self):
        text = self.page("libtenure.3")
        example = text[text.index(".SH EXAMPLES\n.nf\n"):text.rindex(".fi")].split(".nf\n", 1)[1]
        source = pathlib.Path(self.folder.name) / "example.cpp"
        source.write_text(example.replace("\\-", "-").replace("\\e", "\\"), encoding="utf-8")

        subprocess.run([os.environ.get("CXX", "g++"), "-std=c++23", "-fsyntax-only", "-Wall",
                        "-Werror", f"-I{HOME}/include", source], timeout=4 * TIMEOUT, check=True)

    def test_referenced_pages_exist(self):
        names = {path.name for path in self.pages.iterdir()}
        for name in names:
            for page, section in re.findall(r"^\.BR (\S+) \((\d)\)", self.page(name), re.M):
                self.assertIn(page.replace("\\-", "-") + "." + section, names, name)


if __name__ == "__main__":
    unittest.main()
