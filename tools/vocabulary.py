#!/usr/bin/env python3
"""Checks that names, comments, texts and commit messages use the vocabulary of the field.

    vocabulary.py --frequency            print the frequency table of comments in src/ and include/
    vocabulary.py --commit-message FILE  check a commit message (git hook tools/hooks/commit-msg)

tidy.py calls check_words() for every file; docs/glossary.md lists the terms to use instead.
"""
import argparse
import collections
import pathlib
import re
import sys

SUBJECT_COLUMNS_MAX = 72

# Phrases that leave a sentence without a named subject, or an everyday word in the place of a term.
PHRASES = [(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), remedy) for pattern, remedy in (
    (r"(?:some|no|any|every)body(?:'s)?|some ?one|any ?one(?! of)|every ?one(?! of)|whoever"
     r"|whomever|whom", "name the subject: client, thread, process, member"),
    (r"(?:those|one|others?|anything|he|all) who", "name the subject: client, waiter, holder"),
    (r"who(?:se)? (?:waits?|comes?|takes?|asks?|leads?|calls?|wants?|is next|goes|leaves|led)",
     "name the subject: the waiter, the caller, the leader"),
    (r"tells?|told|telling|says?|said|saying",
     "a program reports, returns, sends, notifies, states or defines"),
    (r"so (?:many|much|long)(?! as)", "state the quantity: number of, maximum, duration"),
    (r"anew", "again, or recreate"),
    (r"meanwhile", "while ..., during ..., or drop it"),
    (r"likewise", "also"),
    (r"in vain", "without success, or name the failure"),
    (r"parted by", "separated by"),
    (r"lest", "so that ... not"),
    (r"for people", "human-readable"),
    (r"worth a look", "wake-up threshold"),
    (r"(?:gives?|given|giving|gave) (?:\w+ )?back", "release, or return"),
    (r"hangs? on|hanging on", "attached to"),
    (r"calls? (?:\w+ )?off|called off", "cancel"),
    (r"led away|lead away|leads away", "redirect"),
    (r"patience|patient", "timeout"),
    (r"by itself whether", "state the condition"),
    (r"nobody's|somebody else", "name the subject"),
    (r"makes? (?:\w+ )?believe|by chance", "random, or name the mechanism"),
    (r"for want of", "missing: ..., or requires ..."),
    (r"wherever", "state the place, or the condition"),
    (r"now and then|every now", "state the interval, or sometimes"),
    (r"all the same", "nevertheless, or state the condition"),
    (r"bec(?:a|o)mes? of|our business", "state the outcome"),
    (r"of ours|by way of|and the like", "of this project, through, or list the items"),
    (r"lets? (?:itself|oneself)|as it were|so to speak", "state the fact"),
    (r"(?<!user )(?<!users )(?<!operator )(?<!operators )(?<!attacker )who"
     r" (?:reads|runs|knows|locks|has|is|are|was|were|else|came|can|could|only|does|did|uses|pays"
     r"|joins|queues|starts|stands|acquires|releases|renews|votes)",
     "name the subject: the client, the waiter, the member"),
)]

# Words of private metaphors, as a part of a name or in a text.
METAPHORS = {
    "errand": "command, pending call", "courier": "session client", "convoy": "batcher",
    "muster": "batch delay", "vigil": "spin wait", "wager": "adaptive gate",
    "chore": "timer thread", "itinerary": "endpoint selector", "warden": "watchdog",
    "acquaintance": "peer registry", "whereabouts": "endpoint resolver", "grudge": "cool-down",
    "rulebook": "policy", "farewell": "shutdown, drain", "idler": "dedicated thread",
    "complaint": "error, diagnostic", "mishap": "fault", "patience": "timeout",
    "courtesy": "yield", "starves": "is blocked by",
}
# Words that are metaphors as names, but may be meant literally in a text.
NAME_METAPHORS = {
    "desk": "strand, context", "witness": "replication barrier", "guest": "principal",
    "hall": "context", "nap": "wait slot", "told": "notified", "crowd": "contended",
    "stranger": "unauthenticated connection", "complain": "report an error",
    "somebody": "name the subject", "nobody": "name the subject", "whoever": "name the subject",
    "carrier": "router", "rival": "contender", "spoken": "name the state",
}
SPLIT_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

TEST = re.compile(r"^\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|RC_GTEST_PROP|\w*TEST\w*)"
                  r"\(\s*\w+\s*,\s*(\w+)")
TEST_PYTHON = re.compile(r"^\s*def test_(\w+)")
NO_SUBJECT = re.compile(r"(?:who|what|whoever|whatever|one|nobody|somebody|those|of|they|he|it)_")

# A literal or a comment of C++. Raw strings end at their first `)"`, or at the end of the line.
CPP_TEXT = re.compile(r'R"\(.*?(?:\)"|$)|"(?:\\.|[^"\\])*"|//.*|/\*.*?(?:\*/|$)')
CPP = (".cpp", ".hpp", ".c", ".h", ".ts", ".tsx", ".mjs")
# Files that quote the words: the check itself, its tests, and generated or foreign text.
EXEMPT = {"tools/vocabulary.py", "tools/vocabulary_selftest.py", "tools/tidy_selftest.py"}

# Rows of the frequency table: (label, pattern, limit of occurrences per 10,000 comment words).
FREQUENCIES = (
    ("somebody, nobody, whoever", r"(?:some|no|any|every)body|whoever|someone", "below 3"),
    ("tell, say", r"tells?|told|says?|said", "below 3"),
    ("acquire, release", r"acquir\w*|releas\w*", "above 40"),
    ("retry, timeout", r"retr(?:y|ies|ied|ying)|timeouts?", ""),
)


def words_of(name):
    """The words of a PascalCase or snake_case name, in lower case and singular."""
    for word in SPLIT_NAME.findall(name):
        word = word.lower()
        yield word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def check_text(text):
    """Why a comment, string or paragraph does not use the vocabulary."""
    for pattern, remedy in PHRASES:
        if found := pattern.search(text):
            yield f"'{found[0]}': {remedy}"
    for name in NAME.findall(text):
        for word in words_of(name):
            if word in METAPHORS:
                yield f"'{name}': {METAPHORS[word]}"


def check_names(code):
    """Why a line of code, without literals and comments, has a name from a metaphor."""
    for name in NAME.findall(code):
        for word in words_of(name):
            if remedy := METAPHORS.get(word) or NAME_METAPHORS.get(word):
                yield f"'{name}': {remedy}"


def check_test_name(line):
    found = TEST.match(line) or TEST_PYTHON.match(line)
    if found and NO_SUBJECT.match(found[1]):
        yield f"the test name '{found[1]}' needs a subject"


def check_words(path, lines):
    """All findings in one file, as (line, why)."""
    if path.as_posix() in EXEMPT:
        return
    for number, line in enumerate(lines, 1):
        if path.suffix in CPP:
            texts = " ".join(CPP_TEXT.findall(line))
            findings = [*check_text(texts), *check_names(CPP_TEXT.sub("", line))]
        else:
            findings = list(check_text(line))
        for why in [*findings, *check_test_name(line)]:
            yield number, why


def check_commit_message(message):
    """Why a commit message does not follow CONTRIBUTING.md."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if subject.startswith(("Merge ", "Revert ")):
        return
    if len(subject) > SUBJECT_COLUMNS_MAX:
        yield f"the subject has {len(subject)} columns, limit {SUBJECT_COLUMNS_MAX}"
    if len(lines) > 1 and lines[1].strip():
        yield "the line below the subject has to be empty"
    verb = re.match(r"(?:[\w, /.-]+: )?(\w+)", subject)
    if not verb:
        yield "the subject is empty; write `area: verb object`"
    elif re.fullmatch(r"a|an|the|what|who|one|those|whether|of|in|by|that|its?", verb[1], re.I) \
            or re.search(r"(?<!s)s$|ing$|ed$", verb[1]) and verb[1].lower() not in IMPERATIVES:
        yield f"the subject begins with '{verb[1]}'; use an imperative: `redis: wake one waiter`"
    for line in lines:
        yield from check_text(line)


# Imperatives that look like another form.
IMPERATIVES = {"bring", "ping", "string", "embed", "feed", "seed", "shed", "need", "focus", "alias",
               "canvas", "exceed", "proceed", "speed", "bias"}


def comments_of(root):
    """(comment, is_whole_line) or None for each line of C++ in src/ and include/ with text."""
    for folder in ("src", "include"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cpp", ".hpp", ".c", ".h"):
                continue
            for line in path.read_text(encoding="utf-8").splitlines():
                if line.strip():
                    found = re.search(r"//[/<]*(.*)", re.sub(r'"(?:\\.|[^"\\])*"', '""', line))
                    yield found and (found[1], line.lstrip().startswith("//"))


def print_frequency(root):
    counts = collections.Counter()
    words = lines = whole = 0
    for comment in comments_of(root):
        lines += 1
        if not comment:
            continue
        text, is_whole_line = comment
        whole += is_whole_line
        words += len(re.findall(r"[A-Za-z']+", text))
        for label, pattern, _ in FREQUENCIES:
            counts[label] += len(re.findall(rf"\b(?:{pattern})\b", text, re.IGNORECASE))
    print(f"{'per 10,000 comment words':28} {'here':>6}  target")
    for label, _, target in FREQUENCIES:
        print(f"{label:28} {counts[label] * 1e4 / words:6.1f}  {target}")
    print(f"{'whole-line comments, %':28} {whole * 100 / lines:6.1f}  at least 12")
    print(f"{words} words in comments, {lines} lines that are not blank")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--frequency", action="store_true")
    action.add_argument("--commit-message", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args(arguments)
    if options.frequency:
        print_frequency(pathlib.Path(__file__).resolve().parents[1])
        return 0
    findings = list(check_commit_message(options.commit_message.read_text(encoding="utf-8")))
    print("\n".join(findings), end="\n" if findings else "", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
