"""A cluster of real tenured processes on loopback, for tests that kill, stop, add and remove
members; and a client that follows the leader.

    with cluster.running() as nodes:
        client = nodes.client()
        lease = client.lease()
        nodes.kill(nodes.leader())
        client.lock("a", lease)              # as soon as there is a new leader
"""

import contextlib
import http.client
import json
import pathlib
import random
import signal
import socket
import tempfile
import threading
import time

import grpc

from daemon import (TIMEOUT, Client, Daemon, admin_pb, eventually, lease_pb, lock_pb)


GIVEN_PORTS = set()


def free_ports(count):
    """Free ports that this process has not returned before: two members must not share an address.
    They lie below the ephemeral port range, so that no outgoing connection takes one before the
    server listens."""
    chance, sockets = random.Random(), []
    while len(sockets) < count:
        port = chance.randrange(10_000, 32_000)
        if port in GIVEN_PORTS:
            continue
        try:
            sockets.append(socket.create_server(("127.0.0.1", port)))
        except OSError:
            pass  # In use: try another port.
    ports = [one.getsockname()[1] for one in sockets]
    GIVEN_PORTS.update(ports)
    for one in sockets:
        one.close()
    return ports


def free_port_range(count):
    """First of `count` consecutive free ports, for scripts that derive ports from a base port.
    Choice of ports as in free_ports()."""
    chance = random.Random()
    while True:
        base = chance.randrange(10_000, 32_000 - count)
        ports = range(base, base + count)
        if GIVEN_PORTS.isdisjoint(ports) and all(map(is_free, ports)):
            GIVEN_PORTS.update(ports)
            return base


def is_free(port):
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


class Node(Daemon):
    """One member. Its addresses are the same after every start."""

    def __init__(self, member, folder, ports, *flags):
        self.member = member
        grpc_port, http_port, peer_port = ports
        self.grpc_address = f"127.0.0.1:{grpc_port}"
        self.http_address = f"http://127.0.0.1:{http_port}"
        self.peer_address = f"127.0.0.1:{peer_port}"
        self.is_paused = False
        super().__init__(folder, "--listen-grpc", self.grpc_address, "--listen-http",
                         f"127.0.0.1:{http_port}", "--listen-peers", self.peer_address,
                         "--member-id", str(member), *flags)

    def begin(self):
        """Starts it and does not wait: a member alone cannot be ready."""
        self.spawn()
        return self

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def pause(self):
        """SIGSTOP: the connections stay open, and the process does not reply."""
        self.process.send_signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self):
        self.process.send_signal(signal.SIGCONT)
        self.is_paused = False

    def kill(self):
        super().kill()
        self.is_paused = False

    def seen(self):
        """Its reply to /v1/cluster; None without a reply."""
        if not self.is_running() or self.is_paused:
            return None
        try:
            status, body = self.get("/v1/cluster")
        except (OSError, http.client.HTTPException):  # or a reply of another server
            return None
        return json.loads(body) if status == 200 else None


class Cluster:
    """Members are known by their id, 1 and so on."""

    def __init__(self, folder, size=3, *flags):
        self.folder, self.flags = pathlib.Path(folder), flags
        self.nodes = {}
        for member in range(1, size + 1):
            self.make(member)
        # The same list for later members: the cluster id is derived from it.
        self.founders = ",".join(f"{node.member}={node.peer_address}/{node.grpc_address}"
                                 for node in self.nodes.values())
        for node in self.nodes.values():
            node.flags += ("--members", self.founders)

    def make(self, member):
        self.nodes[member] = Node(member, self.folder / str(member), free_ports(3), *self.flags)
        return self.nodes[member]

    def start(self):
        for node in self.nodes.values():
            node.begin()
        self.wait_for_leader()
        return self

    def addresses(self):
        return [node.grpc_address for node in self.nodes.values()]

    def url(self, options=""):
        return "tenure://" + ",".join(self.addresses()) + options

    def leader(self):
        """Member that reports itself as the leader; None: there is none."""
        views = [(int(view["term"]), member) for member, node in self.nodes.items()
                 if (view := node.seen()) and view["role"] == "leader"]
        return max(views)[1] if views else None

    def followers(self):
        return [member for member in self.nodes if member != self.leader()]

    def wait_for_leader(self, but=None):
        """Waits for a leader other than `but` and returns it."""
        found = []

        def has_leader():
            found[:] = [self.leader()]
            return found[0] not in (None, but)

        eventually(has_leader, f"a leader that is not {but}")
        return found[0]

    def node(self, member):
        return self.nodes[member]

    def kill(self, member):
        """kill -9."""
        self.nodes[member].kill()

    def stop(self, member):
        return self.nodes[member].stop()

    def restart(self, member):
        """After kill() or stop(): the same folder and the same addresses."""
        self.nodes[member].begin()

    def pause(self, member):
        self.nodes[member].pause()

    def resume(self, member):
        self.nodes[member].resume()

    def end(self):
        """Kills the members that still run."""
        for node in self.nodes.values():
            if node.is_running():
                node.resume()
                node.kill()

    def client(self):
        return FollowingClient(self.addresses())

    def members(self):
        """The members by id, as the leader reports them."""
        answer = self.client().admin_call("MemberList", admin_pb.MemberListRequest())
        return {member.id: member for member in answer.members}

    def add(self, member):
        """Starts a new member, adds it to the cluster, and returns when it is a voter."""
        node = self.make(member)
        node.flags += ("--members", self.founders)
        node.switches += ("--join",)
        node.begin()
        self.change("MemberAdd", admin_pb.MemberAddRequest(
            id=member, peer_address=node.peer_address, client_address=node.grpc_address),
                    lambda: getattr(self.members().get(member), "is_voter", False))
        return node

    def remove(self, member):
        self.change("MemberRemove", admin_pb.MemberRemoveRequest(id=member),
                    lambda: member not in self.members())

    def change(self, method, request, is_done):
        """Sends a member change to the leader, which may fail during the call. After UNAVAILABLE
        the outcome is unknown, so is_done() is checked before the change is sent again, as the
        protocol requires."""
        client, is_unsure = self.client(), False

        def ask(me):
            nonlocal is_unsure
            if is_unsure and is_done():
                return
            is_unsure = True
            getattr(me.admin, method)(request, timeout=TIMEOUT)

        client.ask(ask)

    def transfer(self, member=0):
        self.client().admin_call("TransferLeadership",
                                 admin_pb.TransferLeadershipRequest(to=member))


@contextlib.contextmanager
def running(size=3, *flags):
    """A cluster in a temporary folder, killed at the end."""
    with tempfile.TemporaryDirectory(prefix="tenured.") as folder:
        cluster = Cluster(folder, size, *flags)
        try:
            yield cluster.start()
        finally:
            cluster.end()


class FollowingClient(Client):
    """Client that follows the leader. A retry has the ids of the original request."""

    OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.keepalive_time_ms", 500),
               ("grpc.keepalive_timeout_ms", 500), ("grpc.http2.max_pings_without_data", 0),
               # A hanging member accepts connections and sends nothing: do not wait 20 s for each.
               ("grpc.min_reconnect_backoff_ms", 500)]
    HOPS_MAX = 4
    LEARN_EVERY = 0.5  # seconds between two queries of the member list

    def __init__(self, addresses):
        self.addresses, self.turn, self.hops = list(addresses), 0, 0
        self.learn_at = 0.0
        self.mutex = threading.Lock()
        self.connect(self.addresses[0])

    def connect(self, address):
        self.address = address
        super().__init__(grpc.insecure_channel(address, options=self.OPTIONS))

    def ask(self, call, timeout=TIMEOUT):
        """Runs call(self) at the leader, and repeats it after UNAVAILABLE until `timeout` ends."""
        deadline = time.monotonic() + timeout
        while True:
            channel = self.channel
            try:
                answer = call(self)
                self.hops = 0
                self.learn_members()
                return answer
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > deadline:
                    raise
                with self.mutex:
                    if channel is self.channel:
                        self.leave(dict(error.trailing_metadata() or ()).get("tenure-leader"))

    def learn_members(self):
        """Queries the current members, so that all initial members may be replaced."""
        if time.monotonic() < self.learn_at:
            return
        self.learn_at = time.monotonic() + self.LEARN_EVERY
        try:
            members = self.admin.MemberList(admin_pb.MemberListRequest(), timeout=1).members
        except (grpc.RpcError, ValueError):  # ValueError: another thread has left this member
            return
        self.addresses = [one.client_address for one in members if one.client_address] or \
            self.addresses

    def leave(self, leader):
        if leader and leader != self.address and self.hops < self.HOPS_MAX:
            self.hops += 1
            self.connect(leader)
            return
        self.hops = 0
        time.sleep(random.uniform(0.005, 0.03))
        self.turn += 1
        self.connect(self.addresses[self.turn % len(self.addresses)])

    def lock_call(self, method, request, timeout=TIMEOUT):
        return self.ask(lambda me: getattr(me.locks, method)(request, timeout=timeout))

    def admin_call(self, method, request, timeout=TIMEOUT):
        return self.ask(lambda me: getattr(me.admin, method)(request, timeout=timeout))

    def lease(self, ttl_ms=600_000, **fields):
        fields = {"id": random.getrandbits(62) + 1, "request_id": 1} | fields
        return self.lock_call("LeaseGrant", lease_pb.LeaseGrantRequest(ttl_ms=ttl_ms, **fields)).id

    def lock(self, name, lease, timeout=TIMEOUT, **fields):
        fields = {"request_id": random.getrandbits(62) + 1} | fields
        return self.lock_call("Lock", lock_pb.LockRequest(name=name, lease_id=lease, **fields),
                              timeout)

    def try_lock(self, name, lease, **fields):
        fields = {"request_id": random.getrandbits(62) + 1} | fields
        return self.lock_call("TryLock",
                              lock_pb.TryLockRequest(name=name, lease_id=lease, **fields))

    def unlock(self, lease, token, **fields):
        fields = {"request_id": random.getrandbits(62) + 1} | fields
        return self.lock_call("Unlock", lock_pb.UnlockRequest(lease_id=lease, fencing_token=token,
                                                              **fields))

    def renew(self, lease):
        """Remaining TTL of the lease in ms; 0 if the lease is lost."""
        request = lease_pb.LeaseKeepAliveRequest(id=lease)
        return self.ask(lambda me: next(me.locks.LeaseKeepAlive(iter([request]),
                                                                timeout=TIMEOUT))).ttl_ms
