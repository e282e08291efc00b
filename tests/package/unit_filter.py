#!/usr/bin/python3
"""Applies the system call filter of a systemd unit to a program, without a running systemd.

    unit_filter.py unit                            prints the allowed system calls, one per line
    unit_filter.py [--deny call]... unit command   runs the command under the filter

The filter is built as systemd builds it: the first SystemCallFilter= decides that it is an allow
list, `systemd-analyze syscall-filter` expands the groups, a call that is known and not allowed gets
SystemCallErrorNumber= (SIGSYS without it), and an unknown call gets ENOSYS. socket() is limited to
RestrictAddressFamilies=. --deny removes a call from the allow list.
"""

import argparse
import errno
import os
import pathlib
import socket
import subprocess
import sys


def settings(unit, name):
    """The words of every `name=` line, in order."""
    lines = pathlib.Path(unit).read_text(encoding="utf-8").splitlines()
    return [line.split("=", 1)[1] for line in lines if line.startswith(name + "=")]


def expand(names):
    """System calls of these calls and groups."""
    calls, groups = set(), [name for name in names if name.startswith("@")]
    calls.update(name for name in names if not name.startswith("@"))
    while groups:
        shown = subprocess.run(["systemd-analyze", "--no-pager", "syscall-filter", *groups],
                               capture_output=True, text=True, check=True).stdout
        members = [line.strip() for line in shown.splitlines() if line.startswith("    ")]
        members = [member for member in members if member and not member.startswith("#")]
        calls.update(member for member in members if not member.startswith("@"))
        groups = [member for member in members if member.startswith("@")]
    return calls


def allowed_calls(unit):
    """The allow list of the unit."""
    lines = settings(unit, "SystemCallFilter")
    if not lines or lines[0].startswith("~"):
        sys.exit(f"{unit}: SystemCallFilter= is not an allow list")
    calls = expand(["@default"])
    for line in lines:
        if line.startswith("~"):
            calls -= expand(line[1:].split())
        else:
            calls |= expand(line.split())
    return calls


def load(unit, denied):
    """Puts this process, and what it executes, under the filter."""
    import seccomp  # pylint: disable=import-outside-toplevel

    def rule(action, call, *arguments):
        try:
            seccomp_filter.add_rule(action, call, *arguments)
        except (RuntimeError, ValueError):
            pass  # a call of another architecture

    numbers = settings(unit, "SystemCallErrorNumber")
    refusal = seccomp.ERRNO(getattr(errno, numbers[-1])) if numbers else seccomp.KILL_PROCESS
    seccomp_filter = seccomp.SyscallFilter(seccomp.ERRNO(errno.ENOSYS))
    calls = allowed_calls(unit) - set(denied)
    for call in expand(["@known"]) - calls:
        rule(refusal, call)
    families = settings(unit, "RestrictAddressFamilies")
    for call in calls - ({"socket"} if families else set()):
        rule(seccomp.ALLOW, call)
    for family in " ".join(families).split():
        rule(seccomp.ALLOW, "socket", seccomp.Arg(0, seccomp.EQ, getattr(socket, family)))
    if families:
        permitted = {getattr(socket, family) for family in " ".join(families).split()}
        for family in set(range(64)) - permitted:
            rule(seccomp.ERRNO(errno.EAFNOSUPPORT), "socket", seccomp.Arg(0, seccomp.EQ, family))
    seccomp_filter.load()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("unit")
    parser.add_argument("--deny", action="append", default=[], metavar="CALL")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        print("\n".join(sorted(allowed_calls(options.unit))))
        return
    load(options.unit, options.deny)
    os.execvp(options.command[0], options.command)


if __name__ == "__main__":
    main()
