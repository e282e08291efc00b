"""A cluster whose members, disks, clocks and network can be broken and mended."""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "daemon"))

import cluster  # noqa: E402
import netns  # noqa: E402
from daemon import HOME, eventually  # noqa: E402
from proxy import Proxy  # noqa: E402

BUILD = pathlib.Path(os.environ.get("TENURE_BUILD", HOME / "build/dev"))
PRELOAD = BUILD / "tests/libtenure_fault_preload.so"

# Small, so that every run has several log files, snapshots and members that need one.
FLAGS = ("--raft-segment-bytes", "256KiB", "--raft-snapshot-bytes", "256KiB",
         "--limits-events-max", "100000")


class Faults:
    """The numbers that preload.c reads, by name."""

    NAMES = ("sync_delay_us", "sync_errno", "wall_ms", "rate_ppm", "write_delay_us", "syncs",
             "steer_ppm")

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(64))

    def set(self, **numbers):
        with open(self.path, "r+b") as file:
            for name, number in numbers.items():
                file.seek(8 * self.NAMES.index(name))
                file.write(struct.pack("<q", number))

    def get(self, name):
        return struct.unpack_from("<q", self.path.read_bytes(), 8 * self.NAMES.index(name))[0]


def with_faults(faults):
    """Before the words of a command: what it does to its disk and asks of clocks goes wrong so."""
    return ("env", f"TENURE_FAULT_FILE={faults.path}", f"LD_PRELOAD={PRELOAD}")


class FaultNode(cluster.Node):
    """A member that is started where its host is, with the preload between it and its disk."""

    def __init__(self, member, folder, ports, *flags):
        super().__init__(member, folder, ports, *flags)
        self.faults = Faults(self.folder.parent / f"{member}.faults")
        self.prefix = with_faults(self.faults)

    def move(self, address, prefix):
        """To another host than loopback."""
        flags = dict(zip(self.flags[::2], self.flags[1::2]))
        for flag in ("--listen-grpc", "--listen-http", "--listen-peers"):
            flags[flag] = flags[flag].replace("127.0.0.1", address)
        self.flags = tuple(word for flag in flags.items() for word in flag)
        self.grpc_address = self.grpc_address.replace("127.0.0.1", address)
        self.http_address = self.http_address.replace("127.0.0.1", address)
        self.peer_address = self.peer_address.replace("127.0.0.1", address)
        self.prefix = (*prefix, *self.prefix)
        self.switches += ("--insecure",)

    def pause(self):
        """Returns when every thread stands still: until then it may still answer."""
        super().pause()
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        eventually(lambda: all(stands_still(task) for task in tasks.iterdir()), "it stands still")

    def pid(self):
        return self.process.pid if self.is_running() else 0


class Fleet(cluster.Cluster):
    """`net` is "proxy", "netns" or "plain"; who wants namespaces and cannot have them is told and
    gets the proxy."""

    def __init__(self, folder, size=3, *flags, net="proxy"):
        self.network = None
        if net == "netns" and netns.why_not():
            print(f"{netns.why_not()}: the loopback proxy parts the members instead", flush=True)
            net = "proxy"
        self.net = net
        self.mounts = []
        self.proxy = Proxy(lambda: {member: node.pid() for member, node in self.nodes.items()}
                           ) if net == "proxy" else None
        if net == "netns":
            self.network = netns.Network()
        self.nodes = {}
        super().__init__(folder, size, *FLAGS, *flags)

    def make(self, member):
        node = FaultNode(member, self.folder / str(member), cluster.free_ports(3), *self.flags)
        self.nodes[member] = node
        if self.network:
            node.move(self.network.address(member), self.network.host(member))
        if self.proxy:
            node.peer_address = self.proxy.listen(member, node.peer_address)
            node.flags += ("--cluster-peer-address", node.peer_address)
        return node

    def end(self):
        try:
            super().end()
        finally:
            if self.proxy:
                self.proxy.close()
            if self.network:
                self.network.close()
            for folder in self.mounts:
                subprocess.run(["umount", "-l", str(folder)], check=False)

    def running(self):
        return [member for member, node in self.nodes.items()
                if node.is_running() and not node.is_paused]

    # The network: from whom to whom nothing comes through.

    def cut(self, ways):
        """`ways` are pairs of sender and receiver."""
        if self.proxy:
            for sender, receiver in ways:
                self.proxy.link(sender, receiver).is_cut = True
            return
        for receiver in {receiver for _, receiver in ways}:
            self.network.cut(receiver, [sender for sender, to in ways if to == receiver])

    def part(self, some):
        """These members on one side, all others on the other."""
        others = [member for member in self.nodes if member not in some]
        self.cut([(one, other) for one in some for other in others] +
                 [(other, one) for one in some for other in others])

    def trouble(self, delay, loss):
        """Everywhere. Namespaces have no delay here (netem is missing in the kernel), only loss."""
        if self.proxy:
            for sender in self.nodes:
                for receiver in self.nodes:
                    link = self.proxy.link(sender, receiver)
                    link.delay, link.loss = delay, loss
            return
        for receiver in self.nodes:
            self.network.cut(receiver, [one for one in self.nodes if one != receiver],
                             int(loss * 100))

    def mend_network(self):
        if self.proxy:
            for link in self.proxy.links.values():
                link.is_cut, link.delay, link.loss = False, 0.0, 0.0
        if self.network:
            for member in self.nodes:
                self.network.mend(member)

    # Disks

    def use_small_disk(self, member, megabytes):
        """Before its first start. False without the right to mount."""
        folder = self.folder / f"{member}.disk"
        folder.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs",
                           str(folder)], capture_output=True, check=False).returncode != 0:
            return False
        self.mounts.append(folder)
        self.nodes[member].folder = folder / "store"
        return True

    def fill_disk(self, member):
        """Until nothing fits any more."""
        with open(self.nodes[member].folder.parent / "ballast", "ab", buffering=0) as ballast:
            for size in (64 * 1024, 4096, 512):
                try:
                    while ballast.write(bytes(size)) == size:
                        pass
                except OSError:
                    pass

    def empty_disk(self, member):
        (self.nodes[member].folder.parent / "ballast").unlink(missing_ok=True)

    # Looking

    def is_whole(self):
        """Everybody runs and follows the one leader."""
        views = [node.seen() for node in self.nodes.values()]
        return all(views) and len({view["leader"] for view in views}) == 1 and \
            views[0]["leader"] not in ("0", "") and \
            sum(view["role"] == "leader" for view in views) == 1

    def wait_until_whole(self):
        eventually(self.is_whole, "everybody follows one leader")

    def wait_until_equal(self):
        """Everybody has applied the same and shows the same locks."""
        def shown():
            pages = (node.get("/v1/locks?stale=true&limit=1000")[1] for node in
                     self.nodes.values())
            # How long something is held is as old as the last entry that a member has applied.
            return {re.sub(r'"(held|waited|waiting)_for_ms":\d+', "", page) for page in pages}

        eventually(lambda: len(shown()) == 1, "everybody shows the same locks")


def stands_still(task):
    """Of a thread in /proc: stopped, or gone since it was listed, as that of a snapshot may be."""
    try:
        return "State:\tT" in (task / "status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return True


def durable_end(folder):
    """The log file that a member wrote to last, and up to where it is durable."""
    number, offset = struct.unpack_from("<QQ", (folder / "durable_end").read_bytes(), 8)
    return folder / f"log-{number:012}", offset


def torn(folder, chance, size):
    """Damages the end of the log of a stopped member: cuts `size` bytes off what it acknowledged,
    or, if that is 0, leaves a piece of a write that never ended. What was done."""
    segment, end = durable_end(folder)
    with open(segment, "r+b") as file:
        file.seek(end - size)
        file.write(bytes(size) or chance.randbytes(min(chance.randint(1, 500),
                                                       max(1, segment.stat().st_size - end))))
    return f"{size or 'no'} bytes cut off {segment.name}"


def temporary_folder():
    return pathlib.Path(tempfile.mkdtemp(prefix="tenure_faults."))


def remove_folder(folder):
    shutil.rmtree(folder, ignore_errors=True)
