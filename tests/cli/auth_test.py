#!/usr/bin/python3
"""`tenure` with a tenured that has users: authentication and permissions."""

import hashlib
import json
import pathlib
import tempfile
import unittest

from command import Daemon, WithServer, tenure_path

DENIED = 77


def user(name, token, rights):
    digest = hashlib.sha256(token.encode()).hexdigest()
    return f'[users.{name}]\ntokens = ["sha256:{digest}"]\nrights = {rights}\n'


class Auth(WithServer):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tenure_cli.")
        home = pathlib.Path(cls.folder.name)
        cls.users = home / "users.toml"
        cls.known = (user("ann", "tenure_ann", '{ "a/" = "lock" }') +
                     user("ops", "tenure_ops", '{ "" = "admin" }'))
        cls.users.write_text(cls.known, encoding="utf-8")
        cls.files = {}
        for name in ("ann", "ops", "eve"):
            cls.files[name] = str(home / name)
            pathlib.Path(cls.files[name]).write_text(f"tenure_{name}\n", encoding="utf-8")
        cls.daemon = Daemon(home / "store", "--auth-file", str(cls.users))
        cls.daemon.token = "tenure_ops"
        cls.daemon.start().wait_for_version(2)
        cls.url = "tenure://" + cls.daemon.grpc_address

    def tearDown(self):
        self.users.write_text(self.known, encoding="utf-8")
        self.output("users", "reload", "--token-file", self.files["ops"])

    def test_a_token_is_read_from_option_variable_or_url(self):
        command = "echo", "done"
        self.assertEqual(self.output("run", "a/1", "--token-file", self.files["ann"], "--",
                                     *command),
                         "done\n")
        self.assertEqual(self.output("run", "a/1", "--", *command,
                                   environment={"TENURE_AUTH_FILE": self.files["ann"]}), "done\n")
        self.assertEqual(self.output("run", "a/1", "--", *command,
                                   environment={"TENURE_AUTH_TOKEN": "tenure_ann"}), "done\n")
        url = "tenure://tenure_ann@" + self.daemon.grpc_address
        self.assertEqual(self.output("run", "a/1", "--url", url, "--", *command), "done\n")

    def test_a_nested_command_has_the_same_user(self):
        inside = f"{tenure_path()} run a/2 -- echo done"
        self.assertEqual(self.output("run", "a/1", "--token-file", self.files["ann"], "--", "sh",
                                   "-c", inside), "done\n")

    def test_the_user_of_a_lock_is_shown_beside_the_owner(self):
        ann = "--token-file", self.files["ann"]
        ops = "--token-file", self.files["ops"]
        self.line_of(self.begin("lock", "a/owned", "--owner", "ops", *ann))

        listed = json.loads(self.output("ls", "a/owned", "--json", *ops))
        shown = json.loads(self.output("show", "a/owned", "--json", *ops))
        table = self.output("show", "a/owned", *ops)
        self.output("unlock", "--force", "--yes", "a/owned", "--reason", "test", *ops)
        forced = self.output("watch", "a/owned", "--from", "1", "--count", "2",
                             *ops).splitlines()[-1]

        for holder in (listed[0]["holders"][0], shown["holders"][0]):
            self.assertEqual((holder["owner"], holder["user"]), ("ops", "ann"))
        self.assertEqual(table.split("\t")[-1].strip(), "ann")
        self.assertIn("\tuser=ann\toperator=ops\treason=test", forced)

    def test_a_denied_operation_gives_77_and_the_reason(self):
        code, _, err = self.outcome("run", "b/1", "--token-file", self.files["ann"], "--", "true")
        self.assertEqual(code, DENIED, err)
        self.assertIn('ann may not lock "b/1"', err)
        saved = self.folder.name + "/saved"
        self.line_of(self.begin("lock", "a/held", "--token-file", self.files["ops"]))
        for words in (("ls", "b/"), ("show", "b/1"), ("unlock", "--force", "--yes", "a/held"),
                      ("cluster", "transfer"), ("users", "reload"), ("top", "b/", "--once"),
                      ("fence", "check", "b/1", "1"), ("snapshot", "save", saved)):
            code, _, err = self.outcome(*words, "--token-file", self.files["ann"])
            self.assertEqual(code, DENIED, f"{words}: {err}")

    def test_an_unauthenticated_client_gets_77_and_advice(self):
        for words in (("run", "a/1", "--", "true"), ("ls",),
                      ("ls", "--token-file", self.files["eve"])):
            code, _, err = self.outcome(*words)
            self.assertEqual(code, DENIED, err)
            self.assertIn("--token-file", err)
            self.assertNotIn("tenure_eve", err)

    def test_ls_shows_only_readable_locks(self):
        for name in ("a/seen", "b/unseen"):
            process = self.begin("lock", name, "--token-file", self.files["ops"])
            self.line_of(process)

        names = [lock["name"] for lock in json.loads(
            self.output("ls", "--json", "--token-file", self.files["ann"]))]
        self.assertIn("a/seen", names)
        self.assertNotIn("b/unseen", names)
        self.assertIn("b/unseen", self.output("ls", "--token-file", self.files["ops"]))
        top = json.loads(self.output("top", "--json", "--token-file", self.files["ann"]))
        names = [lock["name"] for lock in top["locks"]]
        self.assertIn("a/seen", names)
        self.assertNotIn("b/unseen", names)
        self.assertEqual(top["lease_ends"], [])

    def test_users_reload_applies_a_changed_file(self):
        self.users.write_text(user("ops", "tenure_ops", '{ "" = "admin" }'), encoding="utf-8")

        reply = json.loads(self.output("users", "reload", "--json", "--token-file",
                                    self.files["ops"]))

        self.assertEqual([one["users"] for one in reply], [1])
        code, _, _ = self.outcome("try", "a/2", "--token-file", self.files["ann"])
        self.assertEqual(code, DENIED)
        # cluster reload is the same command; it reloads certificates, too.
        self.output("cluster", "reload", "--token-file", self.files["ops"])
        self.users.write_text("nonsense", encoding="utf-8")
        self.assertEqual(self.outcome("users", "reload", "--token-file", self.files["ops"])[0], 1)
        self.assertEqual(self.outcome("ls", "--token-file", self.files["ops"])[0], 0)

    def test_doctor_shows_the_source_of_the_token_but_not_the_token(self):
        url = "tenure://tenure_ops@" + self.daemon.grpc_address
        code, out, err = self.outcome("doctor", "--url", url)
        self.assertEqual(code, 0, out + err)
        self.assertIn("token from the URL", out)
        self.assertNotIn("tenure_ops", out + err)
        self.assertIn("***@", out)
        code, out, _ = self.outcome("doctor", "--token-file", self.files["ops"])
        self.assertEqual(code, 0, out)
        self.assertIn("token from --token-file", out)
        code, out, _ = self.outcome("doctor", "--token-file", self.files["ann"])
        self.assertEqual(code, 0, out)
        self.assertIn("permit this user to lock tenure-doctor/", out)
        code, out, _ = self.outcome("doctor")
        self.assertEqual(code, 1, out)
        self.assertIn("use the token", out)


if __name__ == "__main__":
    unittest.main()
