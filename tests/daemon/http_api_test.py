#!/usr/bin/python3
"""docs/reference/openapi.json describes what tenured does: the file is valid, the replies of every
route match it, and a reply that the file does not describe is a failure."""

import json
import re
import unittest
import urllib.error
import urllib.request

import jsonschema

from daemon import HOME, TIMEOUT, OneDaemon, eventually, item_pb, lock_pb

DOCUMENT = json.loads((HOME / "docs/reference/openapi.json").read_text(encoding="utf-8"))
# Base document, so that references to #/components resolve in every schema.
STORE = jsonschema.RefResolver.from_schema(DOCUMENT)
INTENT = {"Tenure-Intent": "yes"}


def operations():
    """(method, path, operation) of each operation."""
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def resolve(thing):
    while "$ref" in thing:
        _, thing = STORE.resolve(thing["$ref"])
    return thing


def check(value, schema):
    jsonschema.Draft202012Validator(schema, resolver=STORE).validate(value)


class OpenApiFile(unittest.TestCase):
    def test_every_schema_is_valid_and_every_reference_resolves(self):
        for name, schema in DOCUMENT["components"]["schemas"].items():
            with self.subTest(name):
                jsonschema.Draft202012Validator.check_schema(schema)
        for reference in re.findall(r'"\$ref": "([^"]+)"', json.dumps(DOCUMENT)):
            STORE.resolve(reference)

    def test_operations_have_unique_ids_responses_and_their_parameters(self):
        ids = [operation["operationId"] for _, _, operation in operations()]
        self.assertEqual(len(ids), len(set(ids)))
        for method, path, operation in operations():
            with self.subTest(path=path, method=method):
                parameters = [resolve(each) for each in operation.get("parameters", ())]
                in_path = {each["name"] for each in parameters if each["in"] == "path"}
                self.assertEqual(in_path, set(re.findall(r"\{(\w+)\}", path)))
                self.assertIn("200", operation["responses"])
                if method == "post":
                    self.assertIn("Tenure-Intent", [each["name"] for each in parameters])
                    self.assertIn("403", operation["responses"])


class OpenApiAnswers(OneDaemon):
    def ask(self, method, path, body=None, fields=None, **parts):
        """Sends a request, checks the reply against the file, and returns (status, body)."""
        operation = DOCUMENT["paths"][path][method]
        target = path.format(**parts)
        if body is not None and "requestBody" in operation:
            check(body, operation["requestBody"]["content"]["application/json"]["schema"])
        return self.exchange(method, operation, target, body, fields)

    def trusted(self):
        return INTENT | {"Authorization": f"Bearer {self.daemon.secret()}"}

    def exchange(self, method, operation, target, body=None, fields=None):
        request = urllib.request.Request(
            self.daemon.http_address + target, method=method.upper(),
            headers=(self.trusted() if method == "post" else {}) | (fields or {}),
            data=json.dumps(body).encode() if body is not None else None)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                status, kind, text = answer.status, answer.headers["Content-Type"], answer.read()
        except urllib.error.HTTPError as error:
            status, kind, text = error.code, error.headers["Content-Type"], error.read()
        described = operation["responses"].get(str(status))
        self.assertIsNotNone(described, f"{target}: {status} is not described: {text}")
        content = resolve(described)["content"]
        kind = kind.split(";")[0]
        self.assertIn(kind, content, target)
        if kind.endswith("json"):
            text = json.loads(text)
            check(text, content[kind]["schema"])
        return status, text

    def test_the_served_document_is_the_file(self):
        status, served = self.ask("get", "/v1/openapi.json")

        self.assertEqual((status, served), (200, DOCUMENT))

    def test_every_read_only_route_matches_its_description(self):
        client = self.daemon.client()
        self.addCleanup(client.close)
        lease, other = client.lease(), client.lease()
        for name in ("look/a", "look/b"):
            client.lock(name, lease, owner="worker", metadata=b"\xff\x00")
        client.locks.Lock(lock_pb.LockRequest(lease_id=lease, items=[
            item_pb.Item(name="look/space", keys=item_pb.Keys(
                range=item_pb.Range(start=b"a", end=b"\xff"))),
            item_pb.Item(name="look/pool", permits=item_pb.Permits(capacity=3, wanted=2))]),
            timeout=TIMEOUT)
        waiting = client.locks.Lock.future(
            lock_pb.LockRequest(name="look/a", lease_id=other, owner="waits"), timeout=TIMEOUT)
        eventually(lambda: client.status().waits == 1, "one waits")

        for method, path, _ in operations():
            if method == "get" and "{" not in path and path not in ("/v1/watch", "/v1/events"):
                with self.subTest(path):
                    self.assertEqual(self.ask("get", path)[0], 200)
        status, lock = self.ask("get", "/v1/locks/{name}", name="look/a")
        self.assertEqual((status, lock["waiter_count"]), (200, 1))
        self.assertEqual(self.ask("get", "/v1/locks/{name}", name="look/none")[0], 404)
        self.assertEqual(self.ask("get", "/v1/leases/{id}", id=lease)[0], 200)
        self.assertEqual(self.ask("get", "/v1/leases/{id}", id=7)[0], 404)
        self.assertEqual(self.ask("get", "/v1/leases/{id}", id="x")[0], 400)
        pages = DOCUMENT["paths"]["/v1/locks"]["get"]
        status, page = self.exchange("get", pages, "/v1/locks?prefix=look/&limit=1")
        self.assertEqual((status, len(page["locks"])), (200, 1))
        self.assertIn("next", page)
        self.assertEqual(self.exchange("get", pages, "/v1/locks?limit=0")[0], 400)
        space = DOCUMENT["paths"]["/v1/locks/{name}"]["get"]
        self.assertEqual(
            self.exchange("get", space, "/v1/locks/look/space?kind=space")[0], 200)
        self.assertEqual(self.ask("post", "/v1/leases/{id}:revoke", id=lease)[0], 200)
        self.assertTrue(waiting.result().acquired)
        self.assertEqual(self.ask("post", "/v1/leases/{id}:revoke", id=other)[0], 200)

    def test_locks_can_be_acquired_extended_and_released_as_described(self):
        status, grant = self.ask("post", "/v1/locks/{name}:acquire",
                                 {"ttl_ms": 60000, "owner": "test"}, name="do/a")
        self.assertEqual(status, 200)
        key = {"lease": grant["lease"], "token": grant["token"]}
        busy, problem = self.ask("post", "/v1/locks/{name}:acquire", name="do/a")
        self.assertEqual((busy, problem["code"]), (409, "would_block"))
        self.assertEqual(
            self.ask("post", "/v1/locks/{name}:acquire", {"wait_ms": 5}, name="do/a")[1]["code"],
            "timed_out")
        token = {"name": "do/a", "token": grant["token"]}
        self.assertEqual(self.ask("post", "/v1/tokens:check", token)[1]["verdict"], "held")
        self.assertEqual(self.ask("post", "/v1/locks/{name}:extend", key, name="do/a")[0], 200)
        self.assertEqual(self.ask("post", "/v1/locks/{name}:release", key, name="do/a")[0], 200)
        self.assertEqual(self.ask("post", "/v1/locks/{name}:release", key, name="do/a")[0], 409)
        self.assertEqual(self.ask("post", "/v1/tokens:check", token)[1]["verdict"], "ended")

    def test_leases_can_be_granted_renewed_and_ended_as_described(self):
        _, lease = self.ask("post", "/v1/leases", {"ttl_ms": 30000, "client": "test"})
        under = {"lease": lease["lease"], "request": "5", "mode": "S"}
        self.assertEqual(self.ask("post", "/v1/locks/{name}:acquire", under, name="do/b")[0], 200)
        self.assertEqual(self.ask("post", "/v1/leases/{id}:renew", {}, id=lease["lease"])[0], 200)
        forced = self.ask("post", "/v1/locks/{name}:force-release", {"reason": "test"},
                          name="do/b")
        self.assertEqual((forced[0], forced[1]["holds"]), (200, 1))
        self.assertEqual(self.ask("post", "/v1/locks/{name}:force-release", name="do/b")[0], 409)
        self.assertEqual(self.ask("post", "/v1/leases/{id}:revoke", id=lease["lease"])[0], 200)
        self.assertEqual(self.ask("post", "/v1/leases/{id}:revoke", id=lease["lease"])[0], 410)
        self.assertEqual(self.ask("post", "/v1/leases", {"ttl_ms": 1})[0], 400)

    def test_cross_site_requests_are_refused_as_described(self):
        for method, path, operation in operations():
            if method == "post":
                with self.subTest(path):
                    target = path.format(name="x", id=1)
                    foreign = {"Origin": "http://evil.example"}
                    self.assertEqual(
                        self.exchange("post", operation, target, {}, foreign)[0], 403)

    def test_requests_without_the_secret_are_refused_as_described(self):
        for method, path, operation in operations():
            if method == "post" and path not in ("/v1/logout", "/v1/tokens:check"):
                with self.subTest(path):
                    target = path.format(name="x", id=1)
                    wrong = {"Authorization": "Bearer wrong"}
                    self.assertEqual(self.exchange("post", operation, target, {}, wrong)[0], 403)

    def test_the_secret_gives_a_login_as_described(self):
        status, rights = self.ask("post", "/v1/login")
        self.assertEqual((status, rights["may_force"], rights["needs_secret"]), (200, True, False))
        _, rights = self.ask("get", "/v1/rights")
        self.assertEqual((rights["may_force"], rights["needs_secret"]), (False, True))

    # Event ids are revisions in ascending order: a client that resumes from the last one misses no
    # event.
    def test_a_watch_resumes_at_the_last_event_id(self):
        _, lease = self.ask("post", "/v1/leases")
        for name in ("watch/a", "watch/b"):
            self.ask("post", "/v1/locks/{name}:acquire", {"lease": lease["lease"]}, name=name)
        names, last = self.watch("/v1/watch?prefix=watch/&start_revision=1", {}, 1)
        self.assertEqual(names, ["watch/a"])
        names, _ = self.watch("/v1/watch?prefix=watch/", {"Last-Event-ID": last}, 1)
        self.assertEqual(names, ["watch/b"])
        self.ask("post", "/v1/leases/{id}:revoke", id=lease["lease"])

    def watch(self, target, fields, count):
        """The names of the first events, and the last id."""
        names, last = [], ""
        request = urllib.request.Request(self.daemon.http_address + target, headers=fields)
        schema = DOCUMENT["components"]["schemas"]["Event"]
        with urllib.request.urlopen(request, timeout=TIMEOUT) as stream:
            kind = ""
            for line in stream:
                word, _, rest = line.decode().rstrip("\n").partition(": ")
                if word == "event":
                    kind = rest
                elif word == "id":
                    last = rest
                elif word == "data" and kind != "ready":
                    event = json.loads(rest)
                    check(event, schema)
                    names.append(event["name"])
                elif word == "" and len(names) == count:
                    return names, last
        raise AssertionError("the stream ended")


if __name__ == "__main__":
    unittest.main()
