"""Cluster harness with fault injection for members, disks, clocks and the network."""

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

# Small limits, so that every run has several log files, snapshots, and followers that need one.
FLAGS = ("--raft-segment-bytes", "256KiB", "--raft-snapshot-bytes", "256KiB",
         "--limits-events-max", "100000")


class FaultFile:
    """The file of numbers that preload.c maps; set() changes a fault while the process runs."""

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


def fault_environment(faults):
    """Command prefix that loads preload.c with these faults."""
    return ("env", f"TENURE_FAULT_FILE={faults.path}", f"LD_PRELOAD={PRELOAD}")


class FaultNode(cluster.Node):
    """A member that runs on its host (namespace) with preload.c between it and its disk."""

    def __init__(self, member, folder, ports, *flags):
        super().__init__(member, folder, ports, *flags)
        self.faults = FaultFile(self.folder.parent / f"{member}.faults")
        self.prefix = fault_environment(self.faults)

    def move(self, address, prefix):
        """Moves the member from loopback to another host."""
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
        """Stops the process and returns when all threads are stopped; until then one may still
        reply."""
        super().pause()
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        eventually(lambda: all(is_stopped(task) for task in tasks.iterdir()),
                   "all threads are stopped")

    def pid(self):
        return self.process.pid if self.is_running() else 0


class ClusterHarness(cluster.Cluster):
    """`net` is "proxy", "netns" or "plain". Without the permission for network namespaces the
    harness prints the reason and uses the proxy."""

    def __init__(self, folder, size=3, *flags, net="proxy"):
        self.network = None
        if net == "netns" and netns.unavailable_reason():
            print(f"{netns.unavailable_reason()}: using the loopback proxy", flush=True)
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

    # Network

    def cut(self, links):
        """Drops all data between these pairs of sender and receiver."""
        if self.proxy:
            for sender, receiver in links:
                self.proxy.link(sender, receiver).is_cut = True
            return
        for receiver in {receiver for _, receiver in links}:
            self.network.cut(receiver, [sender for sender, to in links if to == receiver])

    def partition(self, side):
        """Separates these members from all others."""
        others = [member for member in self.nodes if member not in side]
        self.cut([(one, other) for one in side for other in others] +
                 [(other, one) for one in side for other in others])

    def degrade_network(self, delay, loss):
        """Delay and loss on all links. Namespaces support only loss, because netem is not in every
        kernel."""
        if self.proxy:
            for sender in self.nodes:
                for receiver in self.nodes:
                    link = self.proxy.link(sender, receiver)
                    link.delay, link.loss = delay, loss
            return
        for receiver in self.nodes:
            self.network.cut(receiver, [one for one in self.nodes if one != receiver],
                             int(loss * 100))

    def heal_network(self):
        if self.proxy:
            for link in self.proxy.links.values():
                link.is_cut, link.delay, link.loss = False, 0.0, 0.0
        if self.network:
            for member in self.nodes:
                self.network.heal(member)

    # Disks

    def use_small_disk(self, member, megabytes):
        """Mounts a small tmpfs for a member that has not started yet; False without permission to
        mount."""
        folder = self.folder / f"{member}.disk"
        folder.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs",
                           str(folder)], capture_output=True, check=False).returncode != 0:
            return False
        self.mounts.append(folder)
        self.nodes[member].folder = folder / "store"
        return True

    def fill_disk(self, member):
        """Fills the disk until no byte fits."""
        with open(self.nodes[member].folder.parent / "ballast", "ab", buffering=0) as ballast:
            for size in (64 * 1024, 4096, 512):
                try:
                    while ballast.write(bytes(size)) == size:
                        pass
                except OSError:
                    pass

    def empty_disk(self, member):
        (self.nodes[member].folder.parent / "ballast").unlink(missing_ok=True)

    # State

    def is_healthy(self):
        """All members run and follow the same leader."""
        views = [node.seen() for node in self.nodes.values()]
        return all(views) and len({view["leader"] for view in views}) == 1 and \
            views[0]["leader"] not in ("0", "") and \
            sum(view["role"] == "leader" for view in views) == 1

    def wait_until_healthy(self):
        eventually(self.is_healthy, "all members follow one leader")

    def wait_until_equal(self):
        """Waits until all members have applied the same log and show the same locks."""
        def shown():
            pages = (node.get("/v1/locks?stale=true&limit=1000")[1] for node in
                     self.nodes.values())
            # Durations depend on the last entry that a member has applied.
            return {re.sub(r'"(held|waited|waiting)_for_ms":\d+', "", page) for page in pages}

        eventually(lambda: len(shown()) == 1, "all members show the same locks")


def is_stopped(task):
    """Whether a thread in /proc is stopped, or has exited since it was listed."""
    try:
        return "State:\tT" in (task / "status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return True


def durable_end(folder):
    """Log file that a member wrote last, and its durable end."""
    number, offset = struct.unpack_from("<QQ", (folder / "durable_end").read_bytes(), 8)
    return folder / f"log-{number:012}", offset


def torn(folder, rng, size):
    """Damages the end of the log of a stopped member: overwrites `size` acknowledged bytes with
    zeros, or, if 0, appends part of an unfinished write. Returns a description."""
    segment, end = durable_end(folder)
    with open(segment, "r+b") as file:
        file.seek(end - size)
        file.write(bytes(size) or rng.randbytes(min(rng.randint(1, 500),
                                                       max(1, segment.stat().st_size - end))))
    return f"{size or 'no'} bytes cut off {segment.name}"


def temporary_folder():
    return pathlib.Path(tempfile.mkdtemp(prefix="tenure_faults."))


def remove_folder(folder):
    shutil.rmtree(folder, ignore_errors=True)
