"""Groups of three or five servers on loopback, for bench/run_cluster.py."""

import json
import shutil
import socket
import sys
import time
import urllib.error
import urllib.request

from service_servers import ZOOKEEPER_JAR, Server, answers_http, free_port

START_SECONDS_MAX = 60


class Group:
    """Servers of one service, with the interface of a Server."""

    def __init__(self, servers, address, is_ready):
        self.servers, self.address = servers, address
        give_up = time.monotonic() + START_SECONDS_MAX
        while not is_ready(self):
            if time.monotonic() > give_up:
                self.__exit__()
                sys.exit(f"{servers[0].name}: no leader within {START_SECONDS_MAX} s")
            time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.__exit__()

    def cpu_seconds(self):
        return sum(server.cpu_seconds() for server in self.servers if server.process.poll() is None)


class TenuredMember(Server):
    """A member of a tenured cluster; `restart()` starts a killed member with the same files."""

    def __init__(self, command, grpc, http):
        self.command, self.grpc = command, grpc
        super().__init__("tenured", command, grpc, lambda: True)
        self.http = http

    def restart(self):
        self.__init__(self.command, self.grpc, self.http)

    def is_ready(self):
        return answers_http(f"{self.http}/readyz")()

    def leads(self):
        try:
            return self.metric("tenure_raft_is_leader") == 1
        except OSError:
            return False


def leader_of(group):
    """The leader, or None."""
    leaders = [server for server in group.servers
               if server.process.poll() is None and server.leads()]
    return leaders[0] if len(leaders) == 1 else None


def is_whole(group):
    """All members are ready and one of them is the leader."""
    return all(server.is_ready() for server in group.servers) and leader_of(group) is not None


def start_tenured_group(folder, options, size, *flags):
    """`size` members of one cluster, plain text on loopback."""
    ports = [[free_port() for _ in range(3)] for _ in range(size)]
    members = ",".join(f"{number}=127.0.0.1:{peer}/127.0.0.1:{grpc}"
                       for number, (grpc, _, peer) in enumerate(ports, 1))
    servers = [TenuredMember([
        str(options.build / "tenured"), "--data-dir", str(folder / f"tenured-{size}-{number}"),
        "--member-id", str(number), "--members", members,
        "--listen-grpc", f"127.0.0.1:{grpc}", "--listen-http", f"127.0.0.1:{http}",
        "--listen-peers", f"127.0.0.1:{peer}", "--log-level", "error", *flags,
    ], f"127.0.0.1:{grpc}", f"http://127.0.0.1:{http}")
        for number, (grpc, http, peer) in enumerate(ports, 1)]
    return Group(servers, ",".join(server.address for server in servers), is_whole)


def start_etcd_group(folder, size):
    """The group's address is that of its leader, which answers without a forwarding hop."""
    ports = [(free_port(), free_port()) for _ in range(size)]
    members = ",".join(f"m{number}=http://127.0.0.1:{peer}"
                         for number, (_, peer) in enumerate(ports))
    servers = [Server("etcd", [
        "etcd", "--data-dir", str(folder / f"etcd-{number}"), "--name", f"m{number}",
        "--listen-client-urls", f"http://127.0.0.1:{client}",
        "--advertise-client-urls", f"http://127.0.0.1:{client}",
        "--listen-peer-urls", f"http://127.0.0.1:{peer}",
        "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
        "--initial-cluster", members, "--log-level", "error",
    ], f"127.0.0.1:{client}", lambda: True) for number, (client, peer) in enumerate(ports)]
    group = Group(servers, "", lambda group: all(
        answers_http(f"http://{server.address}/health")() for server in group.servers))
    group.address = next(server.address for server in servers if leads_etcd(server))
    return group


def leads_etcd(server):
    request = urllib.request.Request(f"http://{server.address}/v3/maintenance/status", b"{}")
    with urllib.request.urlopen(request) as answer:
        status = json.load(answer)
    return status["leader"] == status["header"]["member_id"]


def start_zookeeper_group(folder, size):
    """The group's address lists all members, as ZooKeeper's documentation recommends."""
    if not ZOOKEEPER_JAR.exists():
        sys.exit(f"{ZOOKEEPER_JAR} is not there: run tools/setup.sh bench")
    ports = [[free_port() for _ in range(3)] for _ in range(size)]
    members = "".join(f"server.{number}=127.0.0.1:{peer}:{vote}\n"
                        for number, (_, peer, vote) in enumerate(ports, 1))
    servers = []
    for number, (client, _, _) in enumerate(ports, 1):
        files = folder / f"zookeeper-{number}"
        files.mkdir()
        (files / "myid").write_text(f"{number}\n", encoding="utf-8")
        config = files / "zoo.cfg"
        config.write_text(f"tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir={files}\n"
                          f"clientPort={client}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n"
                          f"admin.enableServer=false\n{members}", encoding="utf-8")
        servers.append(Server("zookeeper", [
            "java", "-cp", str(ZOOKEEPER_JAR), f"-Dzookeeper.log.dir={files}",
            "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config),
        ], f"127.0.0.1:{client}", lambda: True))
    return Group(servers, ",".join(server.address for server in servers),
                 lambda group: all(has_zookeeper_mode(server) for server in group.servers))


def has_zookeeper_mode(server):
    host, port = server.address.split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1) as connection:
            connection.sendall(b"srvr")
            return b"Mode: " in connection.recv(4096, socket.MSG_WAITALL)
    except OSError:
        return False


def remove_files(folder):
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
