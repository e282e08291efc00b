#!/usr/bin/python3
"""`tenure` on every scheme of connect() besides tenure://, each on real servers."""

import json
import os
import subprocess
import unittest

import servers
from backend_contract import BackendContract
from command import BUSY, TIMEOUT, USAGE, WithServer, eventually


class OnRedis(BackendContract, WithServer):
    @classmethod
    def start(cls, folder):
        return "redis://" + cls.add(servers.redis(folder))

    def test_a_password_is_not_shown(self):
        server = servers.redis(self.folder.name, "--requirepass", "hush")
        self.addCleanup(server.end)
        url = f"redis://:hush@127.0.0.1:{server.port}"

        figures = self.output("bench", url, "--count", "5", "--time", "30s", "--json")
        checks = self.output("doctor", "--url", url, "--json")

        self.assertEqual(json.loads(figures)[0]["lock"]["count"], 5)
        self.assertNotIn("hush", figures + checks)


class DoctorOnRedis(WithServer):
    def checks(self, url, expected=0):
        code, out, err = self.outcome("doctor", "--url", url, "--json")
        self.assertEqual(code, expected, out + err)
        return {check["check"].split(" of ")[0]: check for check in json.loads(out)}

    def server(self, *flags):
        made = servers.redis(self.folder.name, *flags)
        self.addCleanup(made.end)
        return f"127.0.0.1:{made.port}"

    def test_settings_that_forget_locks_are_warnings_with_advice(self):
        checks = self.checks("redis://" + self.server("--maxmemory", "100mb", "--maxmemory-policy",
                                                      "allkeys-lru"))

        self.assertEqual((checks["eviction"]["finding"], checks["persistence"]["finding"]),
                         ("warning", "warning"))
        self.assertIn("noeviction", checks["eviction"]["advice"])
        self.assertIn("appendonly yes", checks["persistence"]["advice"])
        self.assertEqual((checks["clock"]["finding"], checks["permissions"]["finding"]),
                         ("good", "good"))

    def test_a_server_with_an_append_only_file_has_no_warning(self):
        checks = self.checks("redis://" + self.server("--appendonly", "yes"))

        self.assertEqual({check["finding"] for check in checks.values()}, {"good"}, checks)

    def test_a_replica_and_a_wrong_password_are_bad(self):
        primary = self.server("--requirepass", "hush", "--masterauth", "hush")
        host, port = primary.split(":")
        replica = self.server("--replicaof", f"{host} {port}", "--masterauth", "hush")

        self.assertEqual(self.checks("redis://" + replica, 1)["replication"]["finding"], "bad")
        refused = self.checks("redis://:wrong@" + primary, 1)
        self.assertEqual((refused["permissions"]["finding"], refused["version"]["finding"]),
                         ("bad", "skipped"))


class OnRedlock(BackendContract, WithServer):
    MAY_SHARE = False

    @classmethod
    def start(cls, folder):
        hosts = [cls.add(servers.redis(folder)) for _ in range(3)]
        return "redlock://" + ",".join(hosts) + "?restart_wait=0s"


class OnEtcd(BackendContract, WithServer):
    @classmethod
    def start(cls, folder):
        return "etcd://" + cls.add(servers.etcd(folder))

    def etcdctl(self, *words, **options):
        # pylint: disable-next=consider-using-with
        process = subprocess.Popen(["etcdctl", "--endpoints", self.url.removeprefix("etcd://"),
                                    *words], env=os.environ | {"ETCDCTL_API": "3"}, text=True,
                                   stdout=subprocess.PIPE, stdin=subprocess.PIPE, **options)
        self.addCleanup(self.end, process)
        return process

    def test_run_and_etcdctl_lock_exclude_each_other(self):
        # etcdctl does not pass its stdin to the command.
        pipe = f"{self.folder.name}/pipe"
        os.mkfifo(pipe)
        holder = self.etcdctl("lock", "both", "cat", pipe)
        eventually(lambda: self.outcome("run", "-n", "both", "--", "true")[0] == BUSY,
                   "etcdctl holds the lock")
        mine = self.begin("run", "both", "--", "echo", "mine")

        with open(pipe, "w", encoding="utf-8"):
            pass
        holder.communicate(timeout=TIMEOUT)

        self.assertEqual(mine.communicate(timeout=TIMEOUT)[0], "mine\n")


class OnZooKeeper(BackendContract, WithServer):
    @classmethod
    def start(cls, folder):
        return "zookeeper://" + cls.add(servers.zookeeper(folder))


class OnMemory(unittest.TestCase):
    """memory:// can be measured, but its locks exclude no other process."""

    environment = WithServer.environment
    begin, end = WithServer.begin, staticmethod(WithServer.end)
    outcome, output = WithServer.outcome, WithServer.output
    url = "memory://"

    def test_bench_measures_memory(self):
        for mode, step in (("mutex", "lock"), ("shared", "lock_shared"), ("handover", "hand-over"),
                           ("lease", "grant")):
            figures = json.loads(self.output("bench", "--mode", mode, "--count", "200", "--time",
                                           "30s", "--json"))[0]
            # The first grant of a name is not a hand-over.
            self.assertIn(figures[step]["count"], (199, 200), mode)

    def test_locks_in_memory_are_rejected(self):
        for words in (["run", "a", "--", "echo", "ran"], ["lock", "a"], ["try", "a"],
                      ["elect", "a", "--value", "me"]):
            code, out, err = self.outcome(*words)
            self.assertEqual((code, out), (USAGE, ""))
            self.assertIn("in this process only", err)


if __name__ == "__main__":
    unittest.main()
