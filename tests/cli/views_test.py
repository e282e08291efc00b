#!/usr/bin/python3
"""`tenure lock`, `ls`, `show`, `unlock`, `lease`, `elect`, `watch`; terminals; other backends."""

import fcntl
import json
import os
import pathlib
import pty
import signal
import struct
import subprocess
import termios
import unittest

from command import (BUSY, LOST, TIMEOUT, UNREACHABLE, USAGE, WithServer, eventually, is_alive,
                     tenure_path)
from daemon import running


class Locks(WithServer):
    def holding(self, *words):
        """Starts a holder, which the end of the test stops."""
        process = self.begin("lock", *words)
        self.line_of(process)
        return process

    def test_lock_prints_its_token_and_holds_until_a_signal(self):
        process = self.begin("lock", "hold/a", "--json", "--ttl", "5s")
        reply = json.loads(self.line_of(process))
        holder = self.when_held("hold/a")

        process.send_signal(signal.SIGINT)

        self.assertEqual(process.wait(TIMEOUT), 0)
        self.assertEqual(reply, {"names": ["hold/a"], "mode": "X", "ttl_ms": 5000,
                                "token": str(holder.fencing_token)})
        self.assertEqual(self.held("hold/a"), [])

    def test_a_lock_may_have_the_name_of_a_command(self):
        for name in ("ls", "run", "cluster", "status"):
            self.assertEqual(self.output("run", name, "--", "echo", "ls"), "ls\n")
            self.assertEqual(self.output("show", name), f"{name} is free\n")

    def test_try_gives_75_if_the_lock_is_held(self):
        self.holding("try/a")

        self.assertEqual(self.outcome("try", "try/a")[0], BUSY)
        self.assertEqual(self.outcome("try", "-E", "9", "try/a")[0], 9)

    def test_lock_exits_with_79_when_the_lock_is_lost(self):
        process = self.holding("lost/a")

        self.assertEqual(self.outcome("unlock", "--force", "--yes", "lost/a")[0], 0)

        self.assertEqual(process.wait(TIMEOUT), LOST)

    def test_ls_lists_the_locks_below_a_prefix(self):
        self.holding("ls/a", "--owner", "ann", "--metadata", "why not")
        self.holding("ls/b", "-s")
        self.holding("other/c")

        lines = [line.split("\t") for line in self.output("ls", "ls/").splitlines()]
        found = json.loads(self.output("ls", "ls/", "--json"))

        self.assertEqual([line[0] for line in lines], ["ls/a", "ls/b"])
        self.assertEqual((lines[0][1:3], lines[0][6], lines[1][2]),
                         (["ann", "X"], '"why not"', "S"))
        self.assertEqual([lock["name"] for lock in found], ["ls/a", "ls/b"])
        self.assertEqual(found[0]["holders"][0]["metadata"], "why not")
        self.assertEqual(self.output("ls", "ls/", "-o", "quiet"), "ls/a\nls/b\n")
        self.assertEqual(self.output("ls", "ls/", "-o", "quiet", "--limit", "1"), "ls/a\n")

    def test_show_prints_the_holder_and_the_queue_in_order(self):
        self.holding("show/a", "--owner", "ann")
        for owner in ("bob", "cyd"):
            self.begin("lock", "show/a", "--owner", owner)
            eventually(lambda who=owner: who in self.output("show", "show/a"), f"{owner} waits")

        shown = json.loads(self.output("show", "show/a", "--json"))
        lines = [line.split("\t")[:2] for line in self.output("show", "show/a").splitlines()]

        self.assertEqual(lines, [["holds", "ann"], ["waits 1", "bob"], ["waits 2", "cyd"]])
        self.assertEqual([waiter["owner"] for waiter in shown["queue"]], ["bob", "cyd"])
        self.assertEqual(shown["queue"][0]["waits_for"][0]["owner"], "ann")
        self.assertEqual(self.outcome("show", "show/a", "-o", "quiet")[0], 0)
        self.assertEqual(self.outcome("show", "show/free", "-o", "quiet")[0], 1)
        self.assertEqual(self.output("show", "show/free"), "show/free is free\n")

    def test_explain_follows_the_chain_of_blockers(self):
        client = self.client()
        ann, bob = client.lease(), client.lease()
        client.lock("why/b", bob, owner="bob")
        client.lock("why/a", ann, owner="ann")
        waiting = client.locks.Lock.future(
            __import__("daemon").lock_pb.LockRequest(name="why/b", lease_id=ann, owner="ann"))
        self.addCleanup(waiting.cancel)
        eventually(lambda: "ann waits for bob" in self.output("explain", "why/b"), "ann waits")

        text = self.output("explain", "why/a")
        chain = json.loads(self.output("explain", "why/a", "--json"))

        self.assertIn("ann holds it and waits for why/b", text)
        self.assertIn("ann waits for bob", text)
        self.assertEqual([lock["name"] for lock in chain["locks"]], ["why/a", "why/b"])
        self.assertFalse(chain["is_cycle"])

    def test_unlock_needs_a_confirmation_or_yes(self):
        self.daemon.wait_for_version(2)
        process = self.holding("force/a")

        self.assertEqual(self.outcome("unlock", "force/a")[0], USAGE)
        self.assertEqual(self.outcome("unlock", "--force", "force/a")[0], USAGE)
        self.assertIsNone(process.poll())
        wrong = self.outcome("unlock", "-f", "-y", "force/a", "--reason", "a\tb")
        self.assertEqual(wrong[0], USAGE)
        self.assertIsNone(process.poll())
        out = json.loads(self.output("unlock", "-f", "-y", "force/a", "--json", "--reason",
                                   "host is gone"))
        self.assertEqual(out, {"holds": 1})
        events = [json.loads(line) for line in self.output(
            "watch", "force/a", "--from", "1", "--count", "2", "--json").splitlines()]
        self.assertRegex(events[-1]["operator"], r"^127\.0\.0\.1:\d+$")
        self.assertEqual((events[-1]["type"], events[-1]["reason"]), ("forced", "host is gone"))
        line = self.output("watch", "force/a", "--from", "1", "--count", "2").splitlines()[-1]
        self.assertIn("\treason=\"host is gone\"", line)
        self.assertEqual(process.wait(TIMEOUT), LOST)
        self.assertEqual(self.outcome("unlock", "-f", "-y", "force/a")[0], 1)

    def test_watch_prints_events_in_order(self):
        process = self.begin("watch", "watch/", "--count", "4", "--json")
        # The watch may start late, so events are produced until it has enough.
        seen = []
        while not seen:
            self.output("run", "watch/a", "--", "true")
            if process.poll() is not None:
                seen = process.stdout.read().splitlines()
        events = [json.loads(line) for line in seen]

        kinds = [event["type"] for event in events]
        self.assertEqual(len(events), 4)
        self.assertEqual(set(kinds), {"granted", "released"})
        self.assertTrue(all(a != b for a, b in zip(kinds, kinds[1:])))
        revisions = [int(event["revision"]) for event in events]
        self.assertEqual(revisions, sorted(revisions))

    def test_leases_are_granted_shown_renewed_and_revoked(self):
        lease = self.output("lease", "grant", "--ttl", "60s", "--owner", "ann").strip()
        self.client().lock("lease/a", int(lease))

        shown = json.loads(self.output("lease", "show", lease, "--json"))
        listed = json.loads(self.output("lease", "ls", "--json"))

        self.assertEqual((shown["client"], shown["ttl_ms"], shown["held"][0]["name"]),
                         ("ann", 60000, "lease/a"))
        self.assertIn(lease, [entry["lease"] for entry in listed])
        self.assertIn("60.000s", self.output("lease", "keep", "--once", lease))
        self.output("lease", "revoke", lease)
        self.assertEqual(self.held("lease/a"), [])
        self.assertEqual(self.outcome("lease", "revoke", lease)[0], LOST)
        code, _, err = self.outcome("lease", "show", lease)
        self.assertEqual(code, LOST)
        self.assertIn("is unknown: it has ended or never existed", err)
        self.assertEqual(self.outcome("lease", "keep", "--once", lease)[0], LOST)

    def test_a_candidate_leads_while_its_command_runs(self):
        self.assertEqual(self.outcome("elect", "elect/a")[0], 1)
        leading = self.begin("elect", "elect/a", "--value", "10.0.0.1:80", "--", "cat",
                             stdin=subprocess.PIPE)
        self.when_held("elect/a")

        leader = json.loads(self.output("elect", "elect/a", "--json"))
        leading.communicate("", timeout=TIMEOUT)

        self.assertEqual(leader["value"], "10.0.0.1:80")
        self.assertEqual(leading.returncode, 0)
        self.assertEqual(self.outcome("elect", "elect/a")[0], 1)

    def test_metadata_cannot_control_the_terminal(self):
        client = self.client()
        client.lock("escape/a", client.lease(), metadata=b"\x1b]0;x\x07\n\x1b[31mb")

        for words in (["ls", "escape/"], ["show", "escape/a"], ["explain", "escape/a"]):
            out = self.output(*words)
            self.assertNotIn("\x1b", out)
            self.assertNotIn("\x07", out)
        self.assertEqual(len(self.output("ls", "escape/").splitlines()), 1)

    def test_the_key_prefix_of_the_url_is_added_to_names_and_not_shown(self):
        url = self.url + "?key_prefix=team/"
        self.holding("prefix/a", "--url", url)

        self.assertEqual(len(self.held("team/prefix/a")), 1)
        self.assertEqual(self.output("ls", "prefix", "-o", "quiet", "--url", url), "prefix/a\n")


class Terminal(WithServer):
    """At a terminal: colors, headers, confirmations, job control."""

    def at_terminal(self, *words, **environment):
        """Starts `tenure` as session leader on a pseudo terminal."""
        process, terminal = pty.fork()
        if process == 0:
            os.execve(tenure_path(), [tenure_path(), *words],
                      self.environment(TERM="xterm", **environment))
        self.addCleanup(os.close, terminal)
        self.addCleanup(self.reap, process)
        return process, terminal

    @staticmethod
    def reap(process):
        try:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    @staticmethod
    def read_until(terminal, text):
        seen = b""
        while text not in seen:
            seen += os.read(terminal, 4096)
        return seen

    @staticmethod
    def read_all(terminal):
        seen = b""
        try:
            while piece := os.read(terminal, 4096):
                seen += piece
        except OSError:
            pass
        return seen.decode()

    def test_a_table_has_a_header_and_colors_unless_no_color(self):
        holder = self.begin("lock", "table/a")
        self.line_of(holder)

        _, terminal = self.at_terminal("ls", "table/")
        colored = self.read_all(terminal)
        _, terminal = self.at_terminal("ls", "table/", NO_COLOR="1")
        bare = self.read_all(terminal)

        self.assertIn("\x1b[1mNAME", colored)
        self.assertIn("NAME", bare)
        self.assertNotIn("\x1b", bare)

    def test_unlock_asks_for_confirmation_at_a_terminal(self):
        holder = self.begin("lock", "ask/a")
        self.line_of(holder)

        for answer in (b"n\n", b"y\n"):
            process, terminal = self.at_terminal("unlock", "--force", "ask/a")
            self.read_until(terminal, b"[y/N]")
            self.assertIsNone(holder.poll())
            os.write(terminal, answer)
            self.read_all(terminal)
            os.waitpid(process, 0)

        self.assertEqual(holder.wait(TIMEOUT), LOST)

    def test_the_child_has_the_terminal_and_gets_ctrl_c(self):
        process, terminal = self.at_terminal(
            "run", "tty/a", "--", "sh", "-c", "read line; echo got:$line; exec cat")
        self.when_held("tty/a")
        os.write(terminal, b"hello\n")
        self.read_until(terminal, b"got:hello")

        os.write(terminal, b"\x03")
        self.read_all(terminal)

        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]),
                         128 + signal.SIGINT)
        self.assertEqual(self.held("tty/a"), [])

    def test_a_waiter_at_a_terminal_sees_the_holder_and_its_position(self):
        holder = self.begin("lock", "line/a", "--owner", "ann")
        self.line_of(holder)

        _, terminal = self.at_terminal("run", "line/a", "--", "true")
        seen = self.read_until(terminal, b": held by ann for ")
        holder.send_signal(signal.SIGTERM)

        self.read_all(terminal)
        self.assertIn(b"\r\x1b[Kposition 1 of 1 in the queue, waiting for line/a: held by ann for ",
                      seen)

    def test_the_status_line_of_a_waiter_fits_the_terminal(self):
        holder = self.begin("lock", "line/b", "--owner", "ann", "--metadata", "\u00fc" * 100)
        self.line_of(holder)
        _, terminal = self.at_terminal("run", "line/b", "--", "true")

        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 40, 0, 0))
        begin = b"\r\x1b[Kposition "
        self.read_until(terminal, begin)
        # The first line may have been written before the terminal was resized.
        lines = self.read_until(terminal, begin)
        lines += self.read_until(terminal, begin)

        self.assertLess(len((begin + lines.split(begin)[-2]).decode()), 40 + len("\r\x1b[K"))

    # A cut in the middle of the bytes, or a count of bytes, would break or wrap the line.
    def test_the_status_line_counts_wide_characters_as_two_columns(self):
        holder = self.begin("lock", "line/c", "--owner", "ann", "--metadata", "\u754c" * 100)
        self.line_of(holder)
        _, terminal = self.at_terminal("run", "line/c", "--", "true")
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))
        begin = b"\r\x1b[Kposition "
        self.read_until(terminal, begin)
        # The first line may have been written before the terminal was resized.
        lines = self.read_until(terminal, begin) + self.read_until(terminal, begin)

        line = (begin + lines.split(begin)[-2]).decode().removeprefix("\r\x1b[K")
        columns = sum(2 if character == "\u754c" else 1 for character in line)
        self.assertIn("\u754c", line)
        self.assertTrue(90 < columns < 100, line)

    # The line stayed on the screen until a server that did not reply timed out.
    def test_ctrl_c_clears_the_status_line_at_once_even_if_the_server_is_silent(self):
        holder = self.begin("lock", "line/d", "--owner", "ann", "--ttl", "60s")
        self.line_of(holder)
        process, terminal = self.at_terminal("run", "line/d", "--timeout", "20s", "--", "true")
        self.read_until(terminal, b"held by ann for ")
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)

        os.write(terminal, b"\x03")
        self.daemon.process.send_signal(signal.SIGCONT)
        seen = self.read_all(terminal)

        self.assertTrue(seen.endswith("\r\x1b[K"), repr(seen))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]),
                         128 + signal.SIGINT)


class OtherServers(WithServer):
    """Redis, and servers that are missing or nearly full."""

    def redis(self):
        folder = pathlib.Path(self.folder.name)
        socket_free = __import__("cluster").free_ports(1)[0]
        server = subprocess.Popen(["redis-server", "--port", str(socket_free), "--save", "",
                                   "--dir", str(folder)], stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return f"redis://127.0.0.1:{socket_free}"

    def test_run_and_show_work_on_redis_and_ls_is_unsupported(self):
        url = self.redis()
        eventually(lambda: self.outcome("run", "a", "--url", url, "--timeout", "1s", "--",
                                        "true")[0] == 0, "redis replies")
        holder = self.begin("run", "a", "--url", url, "--owner", "ann", "--", "cat",
                            stdin=subprocess.PIPE)
        eventually(lambda: "ann" in self.output("show", "a", "--url", url), "ann holds it")

        self.assertEqual(self.outcome("run", "-n", "a", "--url", url, "--", "true")[0], BUSY)
        self.assertEqual([self.outcome("show", name, "-o", "quiet", "--url", url)
                          for name in ("a", "free")], [(0, "", ""), (1, "", "")])
        self.assertEqual(self.outcome("ls", "--url", url)[0], USAGE)
        self.assertEqual(json.loads(self.output("show", "a", "--url", url, "--json"))
                         ["holders"][0]["owner"], "ann")
        holder.communicate("", timeout=TIMEOUT)
        self.assertEqual(holder.returncode, 0)

    def test_doctor_passes_here_and_advises_for_a_missing_server_or_file(self):
        checks = json.loads(self.output("doctor", "--json"))
        code, out, _ = self.outcome("doctor", "--url", "tenure://127.0.0.1:1", "--timeout", "300ms")
        wrong, problem, _ = self.outcome("doctor", "--url", "tenure://a?tls_ca=/no/such/file")

        self.assertEqual({check["finding"] for check in checks}, {"good"}, checks)
        self.assertLessEqual({"url", "tls", "limits", "lock", "clock"},
                             {check["check"] for check in checks})
        self.assertEqual((code, wrong), (1, 1))
        self.assertIn("advice: start a server", out)
        self.assertIn("advice: ", problem)

    def test_doctor_warns_of_a_server_that_is_nearly_full(self):
        with running("--limits-leases-max", "10") as full:
            client = full.client()
            self.addCleanup(client.close)
            url = "tenure://" + full.grpc_address
            for _ in range(9):
                client.lease()
            checks = json.loads(self.output("doctor", "--json", "--url", url))
            client.lease()
            code, out, _ = self.outcome("doctor", "--url", url)

        limits = {check["check"]: check for check in checks}["limits"]
        self.assertEqual(limits["finding"], "warning")
        self.assertIn("9 of 10 leases", limits["detail"])
        self.assertIn("limits.leases_max", limits["advice"])
        self.assertEqual(code, 1)
        self.assertIn("10 of 10 leases", out)

    def test_a_missing_server_gives_69(self):
        for words in (["ls"], ["show", "a"], ["lease", "ls"], ["cluster", "status"]):
            code, _, err = self.outcome(*words, "--url", "tenure://127.0.0.1:1", "--timeout",
                                        "200ms")
            self.assertEqual(code, UNREACHABLE, words)
            self.assertIn("127.0.0.1:1", err)

    def test_the_watchdog_ends_with_its_command(self):
        process = self.begin("run", "watchdog/a", "--", "cat", stdin=subprocess.PIPE)
        self.when_held("watchdog/a")
        listed = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        # The lock is granted before the watchdog and the command are started.
        eventually(lambda: len(listed.read_text(encoding="utf-8").split()) == 2,
                   "the watchdog and the command run")
        children = [int(word) for word in listed.read_text(encoding="utf-8").split()]

        process.communicate("", timeout=TIMEOUT)

        self.assertFalse(any(map(is_alive, children)))


if __name__ == "__main__":
    unittest.main()
