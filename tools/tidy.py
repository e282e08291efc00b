#!/usr/bin/env python3
"""Checks what compilers do not: layers, sizes, vocabulary, and that core/ is deterministic.

    tidy.py [root]

Prints `file:line: why` and exits 1 if there is anything to print.
"""
import graphlib
import pathlib
import re
import sys

import vocabulary

FILE_LINES_MAX = 600
LINE_COLUMNS_MAX = 100
FOLDERS = ("include", "src", "tests", "bench", "examples", "tools", "web/src", "web/test")
SUFFIXES = (".hpp", ".cpp", ".py", ".sh", ".ts", ".tsx", ".css", ".mjs")
# Texts: checked for their vocabulary only. `make bench` writes parts of docs/benchmarks.md.
TEXT_FOLDERS = (".", "docs", "src", "include", "tests", "bench", "examples", "packaging", "proto",
                "cmake", "tools/hooks", "web")
TEXT_SUFFIXES = (".md", ".proto", ".lua", ".cmake", ".pml", ".yml", ".service", ".dox")
TEXT_NAMES = ("CMakeLists.txt", "Makefile", "commit-msg", "postinst", "postrm", "prerm")

# folder -> the folders it may include from, besides itself. Has no cycles; the order is the
# reading order. A folder that is not named here has no sources.
BACKEND = ("include", "src/sys", "src/backends")
SERVER = ("process", "config", "tls", "store", "metrics", "events", "requests", "raft", "peers",
          "auth", "rpc", "http")
# What gRPC and HTTP may both include. Neither includes the other.
SERVICE = ("include", "src/sys", "src/net", "src/core", "src/grpc",
           *(f"src/server/{name}" for name in ("config", "store", "metrics", "requests", "auth")))
MAY_INCLUDE = {
    "include": (),
    "src/sys": ("include",),
    "src/core": ("include",),
    "src/lock_manager": ("include", "src/sys", "src/core"),
    "src/net": ("include", "src/sys"),
    "src/grpc": ("include", "src/net"),
    "src/fence": ("include", "src/sys"),
    "src/wire": ("include", "src/core", "src/grpc"),
    "src/backends": ("include", "src/sys"),
    "src/backends/memory": (*BACKEND, "src/core"),
    "src/backends/net": (*BACKEND, "src/net"),
    "src/backends/redis": (*BACKEND, "src/backends/net", "src/net"),
    "src/backends/redlock": (*BACKEND, "src/backends/net", "src/backends/redis", "src/net"),
    "src/backends/rpc": (*BACKEND, "src/grpc", "src/net"),
    "src/backends/etcd": (*BACKEND, "src/backends/net", "src/backends/rpc", "src/grpc", "src/net"),
    "src/backends/zookeeper": BACKEND,
    "src/backends/tenured": (*BACKEND, "src/backends/net", "src/backends/rpc", "src/grpc",
                             "src/net", "src/wire"),
    "src/client": (*BACKEND, "src/backends/memory"),
    "src/server/process": ("include",),
    "src/server/config": ("include", "src/sys", "src/core", "src/server/process"),
    "src/server/tls": ("include", "src/sys", "src/net", "src/server/config"),
    "src/server/store": ("include", "src/core"),
    "src/server/metrics": ("include", "src/sys", "src/core", "src/grpc", "src/server/store"),
    "src/server/events": ("include", "src/sys", "src/core", "src/server/store",
                          "src/server/metrics"),
    "src/server/requests": ("include", "src/core", "src/server/store"),
    "src/server/raft": ("include", "src/sys", "src/core", "src/server/process",
                        "src/server/store"),
    "src/server/peers": ("include", "src/sys", "src/net", "src/core", "src/server/process",
                         "src/server/config", "src/server/metrics", "src/server/raft"),
    "src/server/auth": ("include", "src/sys", "src/core", "src/server/config"),
    "src/server/rpc": (*SERVICE, "src/wire", "src/server/events"),
    "src/server/http": SERVICE,
    "src/server": ("include", "src/sys", *(f"src/server/{name}" for name in SERVER)),
    "src/cli": (*BACKEND, "src/core", "src/backends/tenured", "src/backends/rpc", "src/grpc"),
}

# Words in the names of files and types that do not state a purpose.
BANNED_WORDS = {"util", "common", "misc"}

# A reference count; docs/decisions/0004 gives the reason.

MAY_KNOW_THREADS = ("ref_count.hpp",)
NOT_DETERMINISTIC = re.compile(
    r"\b(steady_clock|system_clock|high_resolution_clock)\s*::\s*now\b"
    r"|#include <(thread|mutex|shared_mutex|condition_variable|atomic|random|iostream|fstream"
    r"|cstdio|ctime|unordered_map|unordered_set)>"
    r"|\bunordered_(multi)?(map|set)\b|\b(float|double)\b|\bs?rand\s*\(|\babsl::flat_hash_")

INCLUDE = re.compile(r'\s*#include ([<"])([^>"]+)[>"]')
DECLARED = re.compile(r"^\s*(?:template\s*<.*>\s*)?"
                      r"(?:class|struct|enum class|enum|using|concept)\s+"
                      r"(?:\[\[\w+\]\]\s+)?(?:TENURE_\w+(?:\([^)]*\))?\s+)?(\w+)")
OPEN_END = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\s*\(?#\d+)")
# Tests run beside `make run` and beside each other, so none uses a default port, except where other
# programs cannot have it: data, a network namespace, a page whose ports are replaced.
DEFAULT_PORT = re.compile(r"\b742[012]\b")
MAY_KNOW_PORTS = ("tests/docs/run_page.py", "tests/fuzz/seeds.py", "tests/package/in_root.sh")
STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//.*')


def layer_of(path):
    """The innermost folder of MAY_INCLUDE that `path` lies in."""
    fits = [name for name in MAY_INCLUDE if path.as_posix().startswith(name + "/")]
    return max(fits, key=len, default=None)


def check_relation(relation):
    """Errors in a table like MAY_INCLUDE, as sentences."""
    for here, folders in relation.items():
        for there in folders:
            if there not in relation:
                yield f"{here} may include {there}, which the table does not have"
    try:
        graphlib.TopologicalSorter(relation).prepare()
    except graphlib.CycleError as error:
        yield "a cycle of folders that may include each other: " + ", ".join(error.args[1])


def banned_word(name):
    """The first word of `name` (PascalCase or snake_case) that is banned."""
    return next((word for word in vocabulary.words_of(name) if word in BANNED_WORDS), None)


def check_size(lines):
    if len(lines) > FILE_LINES_MAX:
        yield FILE_LINES_MAX, f"the file has {len(lines)} lines, limit {FILE_LINES_MAX}"
    for number, text in enumerate(lines, 1):
        if len(text) > LINE_COLUMNS_MAX:
            yield number, f"the line has {len(text)} columns, limit {LINE_COLUMNS_MAX}"


def check_names(path, lines):
    if word := banned_word(path.stem):
        yield 1, f"'{word}' in the file's name has no meaning; name the purpose"
    for number, text in enumerate(lines, 1):
        found = DECLARED.match(text)
        if found and (word := banned_word(found[1])):
            yield number, f"'{word}' in '{found[1]}' has no meaning; name the purpose"


def check_open_ends(lines):
    for number, text in enumerate(lines, 1):
        if found := OPEN_END.search(text):
            yield number, f"{found[1]} without the number of an issue: {found[1]}(#12)"


def check_include(here, bracket, name, root):
    """Why a file of layer `here` may not include `name`, or None."""
    if bracket == "<":
        foreign = "." in name or "/" in name
        if here == "include" and foreign and not name.startswith("tenure/"):
            return f"public headers include only std and <tenure/...>, not <{name}>"
        return None
    if here == "include":
        return f"public headers include each other as <tenure/...>, not \"{name}\""
    if name.endswith(".pb.h"):
        return None  # made by protoc, in the build tree
    if not (root / "src" / name).exists():
        return f"\"{name}\" is not found from src/: includes are written from there"
    there = layer_of(pathlib.Path("src") / name)
    if there != here and there not in MAY_INCLUDE[here]:
        return f"{here} may not include {there}"
    return None


def check_layers(path, lines, root):
    here = layer_of(path)
    if path.parts[0] == "src" and path.parent.as_posix() != here:
        yield 1, f"'{path.parent}' is no known layer; MAY_INCLUDE in tools/tidy.py names them"
        return
    if here is None:
        return
    for number, text in enumerate(lines, 1):
        found = INCLUDE.match(text)
        if found and (why := check_include(here, found[1], found[2], root)):
            yield number, why
        if here == "src/core" and path.name not in MAY_KNOW_THREADS \
                and NOT_DETERMINISTIC.search(STRING_OR_COMMENT.sub("", text)):
            yield number, "core/ is deterministic: " + text.strip()


def check_ports(path, lines):
    if path.parts[0] != "tests" or path.suffix in (".hpp", ".cpp") or \
            path.as_posix() in MAY_KNOW_PORTS:
        return
    for number, text in enumerate(lines, 1):
        if found := DEFAULT_PORT.search(text):
            yield number, f"a test uses the default port {found[0]}; use a free port"


def check_file(path, root):
    """All findings in one file, as (line, why)."""
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    yield from check_size(lines)
    if path.parts[0] != "tools":  # this file must be able to name what it bans
        yield from check_open_ends(lines)
    yield from vocabulary.check_words(path, lines)
    yield from check_ports(path, lines)
    if path.suffix in (".hpp", ".cpp"):
        yield from check_names(path, lines)
        yield from check_layers(path, lines, root)
    if path.suffix == ".hpp" and "#pragma once" not in lines:
        yield 1, "a header begins with #pragma once"


def files_below(root, folder, suffixes, names=()):
    """Files of the project below a folder; of the root itself only those directly in it."""
    found = (root / folder).glob("*") if folder == "." else (root / folder).rglob("*")
    for path in sorted(found):
        if (path.suffix in suffixes or path.name in names) and path.is_file() \
                and not {"node_modules", "dist"} & set(path.parts):
            yield path.relative_to(root)


def check_tree(root):
    for why in check_relation(MAY_INCLUDE):
        yield f"tools/tidy.py:1: {why}"
    for folder in FOLDERS:
        for path in files_below(root, folder, SUFFIXES):
            for line, why in check_file(path, root):
                yield f"{path}:{line}: {why}"
    for folder in TEXT_FOLDERS:
        for path in files_below(root, folder, TEXT_SUFFIXES, TEXT_NAMES):
            lines = (root / path).read_text(encoding="utf-8").splitlines()
            for line, why in vocabulary.check_words(path, lines):
                yield f"{path}:{line}: {why}"


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else ".").resolve()
    findings = list(check_tree(root))
    print("\n".join(findings), end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
