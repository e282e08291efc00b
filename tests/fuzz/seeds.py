#!/usr/bin/env python3
"""Writes the seeds that fuzzing starts from into tests/fuzz/corpus/<target>/. They are checked in;
what fuzzing adds to them stays in the build folder.

    seeds.py
"""
import pathlib
import struct

HERE = pathlib.Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures"
PACKAGING = HERE.parents[1] / "packaging"


def save(target, seeds):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in seeds.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def sized(content):
    return struct.pack("<H", len(content)) + content


def varint(number):
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


def text(content):
    return varint(len(content)) + content


def core_batch():
    """The fixtures, and the same twice: the second time every request is a retry."""
    batches = {path.name: path.read_bytes() for path in sorted(FIXTURES.glob("batch_v*.bin"))}
    return {name: sized(batch) for name, batch in batches.items()} | {
        f"{name}.twice": sized(batch) * 2 for name, batch in batches.items()}


def core_snapshot():
    """Whole (choice 0), and the body behind its format, whose head the target writes."""
    seeds = {"saved": b"\5" + b"state" * 20}
    for path in sorted(FIXTURES.glob("snapshot_v*.bin")):
        content = path.read_bytes()
        seeds[path.name] = b"\0" + content
        seeds[f"{path.name}.body"] = content[8:9] + content[20:-4]
    return seeds


def log_segment():
    """Records of several groups, whole and with one bit changed."""
    records = b"".join(bytes([8 * n + n % 8]) + bytes(range(n)) for n in range(12))
    whole = b"\1\x0c" + records + struct.pack("<H", 100)
    return {"whole": whole, "flipped": whole + struct.pack("<HB", 150, 4),
            "zeroed": whole + struct.pack("<HB", 90, 200),
            "cut": whole + struct.pack("<HB", 120, 230), "raw": b"\0TENURELG" + bytes(200)}


def peer_frames():
    """One frame of every kind."""
    numbers = b"".join(varint(n) for n in (3, 7, 2, 5))
    hello = (varint(64) + text(b"tenure peers") + varint(2) + varint(1) + varint(1) + varint(2) +
             text(b"n" * 32) + text(b"127.0.0.1:7422") + bytes(8) + bytes(8))
    welcome = varint(65) + varint(2) + text(b"n" * 32) + text(b"p" * 32) + bytes(16)
    metas = {"append": varint(1) + numbers + varint(0), "append_result": varint(2) + numbers[:3],
             "request_vote": varint(3) + numbers + varint(0),
             "vote_result": varint(4) + numbers[:2],
             "timeout_now": varint(5) + numbers[:3], "probe": varint(6) + numbers[:2],
             "probe_result": varint(7) + numbers[:2], "removal_notice": varint(8) + numbers[:1],
             "hello": hello, "welcome": welcome, "proof": varint(66) + text(b"p" * 32),
             "refusal": varint(67) + varint(5) + text(b"why"),
             "snapshot_begin": varint(32) + numbers * 3, "snapshot_chunk": varint(33) + numbers,
             "snapshot_have": varint(34) + numbers[:2]}

    def frame(meta):
        return bytes([len(meta)]) + meta + b"\0"

    every = b"".join(map(frame, metas.values()))
    return {name: b"\1" + struct.pack("<H", 4000) + frame(meta) for name, meta in metas.items()} | {
        "all": b"\1" + struct.pack("<H", 10) + every,
        "raw": b"\0" + struct.pack("<H", 5) + bytes(40)}


def redis_reply():
    replies = {"simple": b"+OK\r\n:17\r\n$-1\r\n$5\r\nhello\r\n*-1\r\n*0\r\n-ERR no\r\n",
               "nested": b"*3\r\n:1\r\n*2\r\n$1\r\na\r\n*1\r\n:2\r\n$0\r\n\r\n",
               "moved": b"-MOVED 3999 127.0.0.1:6381\r\n-ASK 1 :6380\r\n",
               "slots": b"*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n"
                        b"$9\r\n127.0.0.1\r\n:6379\r\n$2\r\nid\r\n",
               "info": b"$26\r\ncluster_current_epoch:17\r\n\r\n\r\n", "huge": b"*1000000000\r\n"}
    call = b"*4\r\n$7\r\nEVALSHA\r\n$1\r\nx\r\n$1\r\n1\r\n$1\r\nk\r\n"
    replies["call"] = b"$%d\r\n%s\r\n" % (len(call), call)
    return {name: struct.pack("<H", 6) + reply for name, reply in replies.items()}


def http_request():
    return {"list": "/v1/locks?prefix=a%2Fb&limit=3\n",
            "acquire": '/v1/locks/db%2f1:acquire\n{"owner": "ann", "ttl_ms": 30000, '
                       '"lease_id": "7", "wait_ms": 1000, "token": "5"}',
            "events": "/v1/watch?prefix=+&start_revision=oldest\n",
            "cookie": "localhost:7421\na=b; tenure=0123456789abcdef; c=d",
            "host": "[::1]:7421\ntenure.example,other.example",
            "deep": "/\n" + '{"a":' * 20 + "1" + "}" * 20, "wrong": '/%zz?a&b=%4\n{"lease_id": -1}'}


def toml():
    digest = "sha256:" + "ab" * 32
    return {"packaged": (PACKAGING / "tenure.toml").read_text(encoding="utf-8"),
            "users": f'[users.ann]\ntokens = ["{digest}"]\nrights = {{ "a/" = "lock" }}\n'
                     '[users.bob]\ncertificates = ["bob"]\nrights = { "" = "admin" }\n',
            "cluster": '[node]\nmember_id = 1\n[cluster]\nmembers = '
                       '"1=a:7422/a:7420,2=b:7422/b:7420,3=c:7422/c:7420"\n'
                       '[raft]\nelection_timeout = "300ms"\nsegment_bytes = "8MiB"\n',
            "types": "a = 1979-05-27T07:32:00Z\nb = [1, 2.5, 'x', {c = 0xff}]\n"
                     '[[d]]\ne = """\nf"""\n',
            "bad_header": "[!]\n", "not_white_space": "\ufebf",
            "wrong_types": "[limits]\nttl_min = -1\n"}


def url():
    return {"tenure": "tenure://a.example,b.example:7420,[::1]:7420/?token=x&timeout=3s",
            "redis": "rediss://user:p%40ss@127.0.0.1:6379/3?namespace=n", "memory": "memory://",
            "zookeeper": "zookeeper://user:pw@a:2181,b/locks/here?acl=creator",
            "sentinel": "redis+sentinel://u:p@a,b:26379/mymaster/2?sentinel_user=s&"
                        "sentinel_password=t&namespace=n",
            "cluster": "redis+cluster://a:7000,b:7001?tls_ca=x",
            "redlock": "redlock://:p@a,b,c:6380/1?node_timeout=50ms&retry_delay=20ms&"
                       "restart_wait=0s",
            "token": "tenure://user:token@a?token_file=x",
            "tls": "redis://a?tls_ca=x&tls_cert=y&tls_key=z&namespace=n",
            "common": "etcd://a,b?owner=me&key_prefix=p/&request_timeout=2s&busy_poll=50us",
            "etcd": "etcds://root:x@127.0.0.1/prefix", "bad": "http:/x", "percent": "a://b%4/%zz?%"}


def step(stream, kind, *more):
    """A step of grpc_connection.cpp: a stream, what happens, its arguments."""
    return bytes([stream, kind]) + b"".join(more)


def grpc_connection():
    def headers(stream, path, is_last=False):
        return step(stream, 1, bytes([path, 0 if is_last else 1]))

    def data(stream, content, is_last=False):
        return step(stream, 3, sized(content), b"\1", bytes([0 if is_last else 1]), b"\0")

    written, unary = step(0, 8), b"\1"
    calls = {name: unary + headers(0, path) + data(0, b"question", True) + written * 3
             for path, name in enumerate(
                 ("echo", "stream", "pause_reading", "finish_early", "silent"))}
    return calls | {
        "unknown": unary + headers(0, 5, True) + written * 2,
        "many": unary + b"".join(headers(n, n % 5) + data(n, b"x" * 50 * n) for n in range(12)) +
                written * 4,
        "reset": unary + headers(0, 1) + data(0, b"x" * 1000) + step(0, 5, b"\7") + written,
        "half_message": unary + headers(0, 0) + step(0, 3, sized(b"ab"), b"\0", sized(b"")[:2],
                                                     b"\1", b"\0") + written,
        "ping": unary + (step(0, 10, b"\x0b") + written) * 3,
        "drain": unary + headers(0, 4) + step(0, 11, b"\0") + written * 3,
        "window": unary + step(0, 7, b"\0\4\0\0\0\1") + headers(0, 1) + data(0, b"xyz") +
                  step(0, 6, b"\1", sized(b"")) + written * 2,
        "http1": b"\0" + step(0, 0, sized(b"GET / HTTP/1.1\r\n\r\n"))}


if __name__ == "__main__":
    for maker in (core_batch, core_snapshot, log_segment, peer_frames, redis_reply, http_request,
                  toml, url, grpc_connection):
        save(maker.__name__, maker())
