"""Several hosts on one machine: a network namespace per member, connected by a bridge, with nft
rules between them. Requires root; see `unavailable_reason()`."""

import functools
import os
import subprocess


@functools.cache
def unavailable_reason():
    """None if this process can create network namespaces, else the reason."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    probe = f"tnprobe{os.getpid()}"
    try:
        call("ip", "netns", "add", probe)
        try:
            call("ip", "netns", "exec", probe, "nft", "add", "table", "ip", "probe")
        finally:
            call("ip", "netns", "del", probe)
        call("ip", "link", "add", probe[:15], "type", "bridge")
        call("ip", "link", "del", probe[:15])
    except (OSError, subprocess.CalledProcessError) as error:
        return f"network namespaces: {getattr(error, 'stderr', '') or error}".strip()
    return None


def call(*command, text=None):
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout


class Network:
    """Network of namespaces; `host(1)` creates a host with its own address, close() removes all."""

    def __init__(self):
        self.mark = f"tn{os.getpid()}"
        number = os.getpid() % 60_000
        self.net = f"10.{number // 250 % 250 + 2}.{number % 250}"
        self.hosts = set()
        call("ip", "link", "add", self.mark, "type", "bridge")
        call("ip", "address", "add", f"{self.net}.254/24", "dev", self.mark)
        call("ip", "link", "set", self.mark, "up")

    def close(self):
        for host in self.hosts:
            subprocess.run(["ip", "netns", "del", self.name(host)], check=False)
        subprocess.run(["ip", "link", "del", self.mark], check=False)

    def name(self, host):
        return f"{self.mark}-{host}"

    def address(self, host):
        return f"{self.net}.{host}"

    def host(self, host):
        """Creates the namespace and returns the command prefix that runs a program in it."""
        name = self.name(host)
        call("ip", "netns", "add", name)
        self.hosts.add(host)
        outside = f"{self.mark}v{host}"[:15]
        call("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
        call("ip", "link", "set", outside, "master", self.mark, "up")
        for words in (("address", "add", f"{self.address(host)}/24", "dev", "eth0"),
                      ("link", "set", "eth0", "up"), ("link", "set", "lo", "up")):
            call("ip", "-n", name, *words)
        return self.inside(host)

    def inside(self, host):
        return ["ip", "netns", "exec", self.name(host)]

    def cut(self, receiver, senders, loss=100):
        """Drops `loss` percent of the packets that `receiver` gets from these senders."""
        rules = "".join(
            f"add rule ip faults input ip saddr {self.address(sender)}"
            f"{'' if loss == 100 else f' numgen random mod 100 < {loss}'} drop\n"
            for sender in senders)
        call(*self.inside(receiver), "nft", "-f", "-", text=(
            "add table ip faults\n"
            "add chain ip faults input { type filter hook input priority 0; }\n"
            "flush chain ip faults input\n" + rules))

    def heal(self, receiver):
        self.cut(receiver, ())
