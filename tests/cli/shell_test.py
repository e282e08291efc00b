#!/usr/bin/python3
"""Help, manual pages and shell completion of `tenure`; the cluster commands on three members."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from command import TIMEOUT, UNREACHABLE, USAGE, WithServer, eventually, tenure_path

import cluster


def printed(*words, check=0):
    done = subprocess.run([tenure_path(), *words], capture_output=True, text=True, timeout=TIMEOUT,
                          check=False)
    assert done.returncode == check, (words, done)
    return done.stdout


def pages():
    """(name of the page, words of its command) of all manual pages."""
    for line in printed("man", "--list").splitlines():
        name, *command = line.split()
        yield name, command


class Help(unittest.TestCase):
    def test_every_command_has_help_that_names_its_options(self):
        for _, command in pages():
            text = printed(*command, "--help")
            self.assertIn("Usage: tenure", text)
            self.assertTrue(all(len(line) <= 100 for line in text.splitlines()), text)
            for option in re.findall(r"^\.B ((?:\\-)\S+)", printed("man", *command), re.M):
                self.assertIn(option.replace("\\-", "-").rstrip(","), text)

    def test_without_a_command_help_is_printed_with_a_usage_error(self):
        self.assertIn("tenure", printed("--version"))
        self.assertIn("Exit codes", printed("--help"))
        self.assertIn("cluster add", printed("cluster", "--help"))
        for words in ([], ["cluster"], ["nonsense"], ["cluster", "nonsense"], ["ls", "a", "b"],
                      ["ls", "--output", "xml"]):
            self.assertEqual(printed(*words, check=USAGE), "")

    def test_common_options_may_precede_the_command(self):
        url = "tenure://127.0.0.1:1?nonsense=1"
        self.assertEqual(printed("--url", url, "--json", "ls", check=USAGE), "")

    def test_manual_pages_have_no_groff_warnings(self):
        for name, command in pages():
            page = printed("man", *command)
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-Z"], input=page, text=True,
                                  capture_output=True, timeout=TIMEOUT, check=True)
            self.assertEqual(done.stderr, "", name)
            self.assertIn(f".TH {name.upper()} 1", page)


class Completion(WithServer):
    def script(self, shell):
        path = pathlib.Path(self.folder.name) / f"completion.{shell}"
        path.write_text(printed("completion", shell), encoding="utf-8")
        return str(path)

    def completed_by_bash(self, *words):
        """Completions of the last word in bash."""
        quoted = " ".join(f"'{word}'" for word in words)
        code = (f"PATH={pathlib.Path(tenure_path()).parent}:$PATH; source {self.script('bash')}; "
                f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _tenure; "
                'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True,
                              env=self.environment(), timeout=TIMEOUT, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_options_and_the_names_of_locks(self):
        holder = self.begin("lock", "complete/me")
        self.line_of(holder)

        self.assertEqual(self.completed_by_bash("tenure", "cl"), ["cluster"])
        self.assertEqual(self.completed_by_bash("tenure", "cluster", "tr"), ["transfer"])
        self.assertEqual(self.completed_by_bash("tenure", "run", "--no"), ["--no-wait"])
        self.assertEqual(self.completed_by_bash("tenure", "ls", "-o", "j"), ["json"])
        self.assertEqual(self.completed_by_bash("tenure", "show", "compl"), ["complete/me"])
        self.assertEqual(self.completed_by_bash("tenure", "bench", "--mode", "h"), ["handover"])
        self.assertEqual(self.completed_by_bash("tenure", "top", "--sort", "g"), ["grants"])
        self.assertEqual(self.completed_by_bash("tenure", "snapshot", "save", self.folder.name +
                                                "/stor"), [self.folder.name + "/store"])

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes_commands_and_options(self):
        def completed(line):
            code = (f"set -x PATH {pathlib.Path(tenure_path()).parent} $PATH; "
                    f"source {self.script('fish')}; complete -C '{line}'")
            done = subprocess.run(["fish", "-c", code], capture_output=True, text=True,
                                  env=self.environment(), timeout=TIMEOUT, check=True)
            self.assertEqual(done.stderr, "")
            return [entry.split("\t")[0] for entry in done.stdout.splitlines()]

        self.assertEqual(completed("tenure cl"), ["cluster"])
        self.assertEqual(completed("tenure cluster tr"), ["transfer"])
        self.assertEqual(set(completed("tenure run --no")), {"--no-wait"})

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_reads_its_script(self):
        subprocess.run(["zsh", "-n", self.script("zsh")], timeout=TIMEOUT, check=True)
        # A compadd that prints shows the completions.
        code = ('compadd() { shift; print -l -- "$@"; }; words=(tenure cluster ""); CURRENT=3; '
                f"PREFIX=; source {self.script('zsh')}")
        done = subprocess.run(["zsh", "-c", code], capture_output=True, text=True, timeout=TIMEOUT,
                              check=True)
        self.assertEqual(done.stdout.split(), ["add", "reload", "remove", "status", "transfer"])


class Members(unittest.TestCase):
    """Cluster commands on three real members."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenure_cli.")
        self.addCleanup(folder.cleanup)
        self.nodes = cluster.Cluster(folder.name)
        self.addCleanup(self.nodes.end)
        self.nodes.start()

    def tenure(self, *words, check=0):
        return printed(*words, "--url", self.nodes.url(), check=check)

    def members(self, check=0):
        listed = json.loads(self.tenure("cluster", "status", "--json", check=check))
        return {int(member["member"]): member for member in listed}

    # An operator decides by these two numbers whether the next program can be installed.
    def test_cluster_status_shows_the_cluster_version_and_that_of_each_program(self):
        def versions():
            return [(member.get("cluster_version"), member.get("newest_version"))
                    for member in self.members().values()]
        eventually(lambda: versions() == [("2", "2")] * 3, "all use version 2")

        rows = [line.split("\t") for line in self.tenure("cluster", "status").splitlines()]
        self.assertEqual([row[-2:] for row in rows], [["2", "2"]] * 3)

        gone = self.nodes.followers()[0]
        self.nodes.node(gone).kill()
        eventually(lambda: "newest_version" not in self.members(check=1)[gone],
                   "the leader has noticed it")
        self.assertNotIn("cluster_version", self.members(check=1)[gone])

    def test_an_operator_lists_transfers_adds_and_removes_members(self):
        leader = self.nodes.leader()
        seen = self.members()
        self.assertEqual(sorted(seen), [1, 2, 3])
        self.assertEqual([one for one in seen if seen[one]["role"] == "leader"], [leader])
        self.assertTrue(all(member["is_reached"] for member in seen.values()))

        successor = self.nodes.followers()[0]
        self.tenure("cluster", "transfer", str(successor))
        eventually(lambda: self.nodes.leader() == successor, "the new leader leads")
        # A follower redirects to the leader.
        away = "tenure://" + self.nodes.node(leader).grpc_address
        self.assertEqual(printed("run", "a", "--url", away, "--", "echo", "ran"), "ran\n")
        self.assertEqual(printed("ls", "--url", away), "")

        node = self.nodes.make(4)
        node.flags += ("--members", self.nodes.founders)
        node.switches += ("--join",)
        node.begin()
        self.tenure("cluster", "add", "4", node.peer_address, node.grpc_address)
        self.assertEqual(self.members()[4]["role"], "voter")

        # Without --yes and without a terminal there can be no confirmation.
        self.tenure("cluster", "remove", "4", check=USAGE)
        self.tenure("cluster", "remove", "4", "--yes")
        self.assertNotIn(4, self.members())

        self.nodes.kill(self.nodes.followers()[0])
        silent = [one for one, member in self.members(check=1).items() if not member["is_reached"]]
        self.assertEqual(len(silent), 1)

    # The list came from the leader only, so an outage hid which members were up.
    def test_without_a_leader_each_member_is_shown_and_errors_name_the_cause(self):
        kept, *gone = list(self.nodes.nodes)
        for member in gone:
            self.nodes.kill(member)

        def roles():
            listed = self.members(check=1)
            return {one: (member["role"], member["is_reached"]) for one, member in listed.items()}
        expected = {member: ("voter", member == kept) for member in self.nodes.nodes}
        eventually(lambda: roles() == expected, "the last member knows no leader")
        for words in (["ls"], ["run", "a", "--", "true"]):
            done = subprocess.run([tenure_path(), "--url", self.nodes.url(), "--timeout", "1s",
                                   *words], capture_output=True, text=True, timeout=TIMEOUT,
                                  check=False)
            self.assertEqual(done.returncode, UNREACHABLE, words)
            self.assertIn("1 of 3 members answers, no leader; no answer from ", done.stderr)
        # The members that the answering one names are counted, too.
        alone = "tenure://" + self.nodes.node(kept).grpc_address
        done = subprocess.run([tenure_path(), "ls", "--url", alone, "--timeout", "1s"],
                              capture_output=True, text=True, timeout=TIMEOUT, check=False)
        self.assertIn("1 of 3 members answers, no leader", done.stderr)

    # The clock of a follower stands still between two messages of the leader.
    def test_doctor_reads_the_clock_of_the_leader_when_a_follower_comes_first(self):
        leader = self.nodes.leader()
        order = [*self.nodes.followers(), leader]
        url = "tenure://" + ",".join(self.nodes.node(member).grpc_address for member in order)

        for address in (url, "tenure://" + self.nodes.node(order[0]).grpc_address):
            checks = {check["check"]: check for check in json.loads(
                printed("doctor", "--json", "--url", address))}
            self.assertEqual(checks["clock"]["finding"], "good", checks)

    def test_doctor_shows_a_clock_that_cannot_be_checked_as_skipped(self):
        checks = {check["check"]: check for check in json.loads(
            printed("doctor", "--json", "--timeout", "1s", "--url", "tenure://127.0.0.1:1",
                    check=1))}

        self.assertEqual(checks["clock"]["finding"], "skipped")
        self.assertIn("no leader", checks["clock"]["detail"])


if __name__ == "__main__":
    unittest.main()
