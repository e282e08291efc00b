#!/usr/bin/python3
"""Contexts of the configuration file, suggestions for mistyped words, `help` and `version`."""

import json
import pathlib
import subprocess
import unittest

from command import TIMEOUT, UNREACHABLE, USAGE, WithServer, tenure_path

import cluster


class Contexts(WithServer):
    def setUp(self):
        self.folder_of_user = pathlib.Path(self.folder.name) / self.id()
        (self.folder_of_user / "tenure").mkdir(parents=True)
        self.file = self.folder_of_user / "tenure/config.toml"
        self.write(f"""
            context = "here"
            [contexts.here]
            url = "{self.url}"
            owner = "ann"
            [contexts.away]
            url = "tenure://127.0.0.1:1"
            timeout = "200ms"
            """)

    def write(self, text):
        self.file.write_text("\n".join(line.strip() for line in text.splitlines()),
                             encoding="utf-8")

    def ran(self, *words, **variables):
        """(exit code, stdout, stderr) without TENURE_URL, unless it is one of the variables."""
        environment = self.environment(XDG_CONFIG_HOME=str(self.folder_of_user))
        del environment["TENURE_URL"], environment["TENURE_CONFIG"]
        done = subprocess.run([tenure_path(), *words], env=environment | variables, text=True,
                              capture_output=True, timeout=TIMEOUT, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_the_default_context_and_that_of_the_option_select_the_server(self):
        owner = ["run", "a", "--", "sh", "-c", "echo $TENURE_URL"]
        self.assertEqual(self.ran(*owner), (0, self.url + "\n", ""))
        self.assertEqual(self.ran("ls", "--context", "away")[0], UNREACHABLE)
        self.assertEqual(self.ran("ls", TENURE_CONTEXT="away")[0], UNREACHABLE)
        self.assertEqual(self.ran("ls", "--context", "here", TENURE_CONTEXT="away")[0], 0)

    def test_the_url_of_the_option_or_the_environment_wins_over_the_default_context(self):
        self.write('context = "away"\n[contexts.away]\nurl = "tenure://127.0.0.1:1"\n')

        self.assertEqual(self.ran("ls", "--url", self.url)[0], 0)
        self.assertEqual(self.ran("ls", TENURE_URL=self.url)[0], 0)
        self.assertEqual(self.ran("ls", "--timeout", "200ms", "--context", "away",
                                  TENURE_URL=self.url)[0], UNREACHABLE)
        self.assertEqual(self.ran("ls", "--context", "away", "--url", self.url)[0], USAGE)

    # Otherwise a token of one service would be sent to another one.
    def test_the_token_of_a_context_is_sent_to_its_url_only(self):
        self.write(f'context = "here"\n[contexts.here]\nurl = "{self.url}"\n'
                   'token_file = "/no/such/token"\n')

        self.assertEqual(self.ran("ls")[0], USAGE)
        self.assertEqual(self.ran("ls", "--url", self.url)[0], 0)
        self.assertEqual(self.ran("ls", TENURE_URL=self.url)[0], 0)

    def test_a_context_without_a_url_is_a_usage_error(self):
        self.write('[contexts.here]\ntoken_file = "/no/such/token"\n')

        code, _, err = self.ran("ls", "--context", "here", TENURE_URL=self.url)
        self.assertEqual(code, USAGE)
        self.assertIn('the context "here" has no url', err)

    # The lease has the owner.
    def test_the_owner_of_a_context_does_not_contradict_a_lease(self):
        self.write(f'context = "here"\n[contexts.here]\nurl = "{self.url}"\nowner = "ann"\n')
        lease = self.ran("lease", "grant", "-o", "quiet")[1].strip()

        self.assertEqual(self.ran("lock", "leased/context", "--lease", lease)[0], 0)

    # A token for another server would take precedence over that of the context.
    def test_a_nested_command_does_not_get_the_token_of_another_server(self):
        token = pathlib.Path(self.file).with_name("token")
        token.write_text("x" * 43 + "\n", encoding="utf-8")
        self.write(f'context = "here"\n[contexts.here]\nurl = "{self.url}"\n'
                   f'token_file = "{token}"\n')

        shown = self.ran("run", "a", "--", "sh", "-c",
                         'echo "[$TENURE_AUTH_TOKEN][$TENURE_AUTH_FILE]"',
                         TENURE_AUTH_TOKEN="of-another-server")
        self.assertEqual(shown[1], f"[][{token}]\n", shown)

    def test_a_wrong_file_or_an_unknown_context_is_a_usage_error_that_names_it(self):
        self.assertIn('no context "prod"', self.ran("ls", "--context", "prod")[2])
        self.assertIn("away, here", self.ran("ls", "--context", "prod")[2])
        for text, expected in (("[contexts.a]\nuri = 'x'\n", "contexts.a.uri"),
                               ("colour = 'red'\n", "colour"),
                               ("context = ['a', 'b']\n", "context")):
            self.write(text)
            code, _, err = self.ran("ls")
            self.assertEqual(code, USAGE, text)
            self.assertIn(expected, err)
            self.assertIn(str(self.file), err)
        self.assertEqual(self.ran("version")[0], 0)
        self.assertEqual(self.ran("ls", TENURE_CONFIG="/no/such/file", TENURE_URL=self.url)[0], 0)


class Addresses(WithServer):
    def test_an_address_without_a_scheme_is_a_tenured(self):
        address = self.daemon.grpc_address

        self.assertEqual(self.output("run", "a", "-u", address, "--", "sh", "-c",
                                     "echo $TENURE_URL"), f"tenure://{address}\n")
        self.assertEqual(self.output("ls", "-u", address), "")
        self.assertEqual(self.outcome("ls", environment={"TENURE_URL": address})[0], 0)

    # The error was that of a protocol, and the port of HTTP is the one in the browser.
    def test_the_error_for_the_http_port_names_the_grpc_port(self):
        http = self.daemon.http_address.removeprefix("http://")

        for words in (["ls", "--timeout", "500ms"], ["run", "a", "--", "true"]):
            code, _, err = self.outcome("-u", http, *words)
            self.assertEqual(code, UNREACHABLE)
            self.assertIn(f"{http} is an HTTP port", err)
            self.assertIn("listen.grpc", err)

    def test_the_error_for_the_http_port_of_a_member_has_its_url(self):
        nodes = cluster.Cluster(self.folder.name + "/nodes")
        self.addCleanup(nodes.end)
        nodes.start()
        node = nodes.node(nodes.leader())

        _, _, err = self.outcome("ls", "--timeout", "500ms", "-u",
                                 node.http_address.removeprefix("http://"))

        self.assertIn(f"use tenure://{node.grpc_address}", err)


class Words(WithServer):
    def test_a_mistyped_command_or_option_is_answered_with_the_similar_one(self):
        for words, expected in ((["lokc"], "did you mean lock?"),
                                (["cluster", "stauts"], "did you mean cluster status?"),
                                (["run", "--wiat", "5s", "a", "true"], "did you mean --wait?"),
                                (["lock", "--meta-data=x", "a"], "did you mean --metadata?"),
                                (["ls", "--utl", "x"], "did you mean --url?"),
                                (["sohw", "a"], "did you mean show?")):
            code, out, err = self.outcome(*words)
            self.assertEqual((code, out), (USAGE, ""), words)
            self.assertIn(expected, err)
        self.assertNotIn("did you mean", self.outcome("frobnicate", "--zzzzzz")[2])

    def test_help_and_version_are_commands(self):
        self.assertEqual(self.output("help", "run"), self.output("run", "--help"))
        self.assertEqual(self.output("help", "cluster", "add"),
                         self.output("cluster", "add", "--help"))
        self.assertEqual(self.output("help", "cluster"), self.output("cluster", "--help"))
        self.assertEqual(self.output("help"), self.output("--help"))
        self.assertEqual(self.output("version"), self.output("--version"))
        self.assertEqual("tenure " + json.loads(self.output("version", "--json"))["version"] + "\n",
                         self.output("version"))
        self.assertEqual(self.outcome("help", "nonsense")[0], USAGE)

    def test_durations_in_a_pipe_are_numbers_of_seconds(self):
        lease = self.output("lease", "grant", "--ttl", "90s").strip()
        self.line_of(self.begin("lock", "cells/a"))

        self.assertRegex(self.output("ls", "cells/"), r"\t\d+\.\d{3}s\t")
        self.assertRegex(self.output("show", "cells/a"), r"\t\d+\.\d{3}s\t")
        self.assertRegex(self.output("lease", "show", lease), r"\t\d+\.\d{3}s\t90\.000s\t")

    def test_watch_prints_the_time_of_arrival(self):
        self.output("run", "time/a", "--", "true")

        line = self.output("watch", "time/", "--from", "1", "--count", "1").rstrip("\n")
        event = json.loads(self.output("watch", "time/", "--from", "1", "--count", "1", "--json"))

        utc = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
        self.assertRegex(line.split("\t")[6], f"^time={utc}$")
        self.assertRegex(event["received_at"], f"^{utc}$")


if __name__ == "__main__":
    unittest.main()
