#!/usr/bin/python3
"""The Grafana dashboard and the alert rules in packaging/ contain valid PromQL, use only metrics
that a real tenured exports, and the alerts fire in their test cases."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import cluster
from daemon import HOME, TIMEOUT, eventually

DASHBOARD = HOME / "packaging/grafana/tenure.json"
RULES = HOME / "packaging/prometheus/tenure.rules.yml"
RULES_TEST = HOME / "packaging/prometheus/tenure.rules.test.yml"
# Metrics of Prometheus itself.
FOREIGN = {"up"}
METRIC = re.compile(r"\b(tenure_[a-z_]+|process_[a-z_]+|up)\b(?!\()")


def promtool(*arguments):
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True,
                          timeout=TIMEOUT, check=False)


def dashboard_expressions():
    """(panel, expression), with Grafana's variables as Prometheus would get them."""
    for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], (target["expr"].replace("$__rate_interval", "1m")
                                   .replace("$job", ".*").replace("$instance", ".*"))


def rule_expressions():
    return re.findall(r"- alert: (\w+)\n(?:\s+#.*\n)*\s+expr: (.*)\n",
                      RULES.read_text(encoding="utf-8"))


def names_in(expression):
    """Metrics of an expression: without labels in braces and in by (...)."""
    bare = re.sub(r"\{[^}]*\}|\b(by|on|group_left|group_right|ignoring)\s*\([^)]*\)", " ",
                  expression)
    return set(METRIC.findall(bare))


class Monitoring(unittest.TestCase):
    def test_alert_rules_are_valid_and_each_has_a_passing_case(self):
        checked = promtool("check", "rules", RULES)
        self.assertEqual(checked.returncode, 0, checked.stderr + checked.stdout)
        tested = promtool("test", "rules", RULES_TEST)
        self.assertEqual(tested.returncode, 0, tested.stderr + tested.stdout)
        cases = set(re.findall(r"alertname: (\w+)", RULES_TEST.read_text(encoding="utf-8")))
        self.assertEqual(cases, {alert for alert, _ in rule_expressions()})

    def test_the_expressions_of_the_dashboard_are_valid_promql(self):
        rules = "\n".join(f"      - record: a:{number}\n        expr: {json.dumps(expression)}"
                          for number, (_, expression) in enumerate(dashboard_expressions()))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "dashboard.yml"
            file.write_text(f"groups:\n  - name: dashboard\n    rules:\n{rules}\n",
                            encoding="utf-8")
            checked = promtool("check", "rules", file)
        self.assertEqual(checked.returncode, 0, checked.stderr + checked.stdout)

    def test_panels_have_unique_ids_and_do_not_overlap(self):
        panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        taken = set()
        for panel in panels:
            place = panel["gridPos"]
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((x, y), taken, panel["title"])
                    taken.add((x, y))

    # A renamed metric would leave an empty panel and an alert that never fires.
    def test_a_real_cluster_exports_every_metric_of_dashboard_and_alerts(self):
        there = set()

        def look():
            _, text = nodes.node(1).get("/metrics")
            there.update(re.findall(r"^([a-z_]+)(?:\{| )", text, re.M))
            return "tenure_peer_connected" in there

        with cluster.running() as nodes:
            eventually(look, "members are connected")
        # Declared from the start, but without a series before a limit is reached.
        there.add("tenure_limit_rejected_total")
        # Exported only with TLS: certificates_test.py checks it.
        there.add("tenure_certificate_expiry_seconds")
        there |= FOREIGN
        for where, expression in [*dashboard_expressions(), *rule_expressions()]:
            with self.subTest(where):
                used = names_in(expression)
                self.assertTrue(used, expression)
                self.assertEqual(used - there, set())


if __name__ == "__main__":
    unittest.main()
