"""Parts of bench/run_cluster.py. Each part measures on its own servers."""

import contextlib
import signal
import statistics
import subprocess
import time

from cluster_servers import (is_whole, leader_of, remove_files, start_etcd_group,
                             start_tenured_group, start_zookeeper_group)
from service_parts import cycle_rounds, hand_over_rounds, one_run
from service_servers import begin, command_of, next_line, progress

SIZE = 3
CLIENTS = (1, 8, 64)
ROWS = ("library, tasks", "library, threads", "etcd", "ZooKeeper")
QUICK_TIMEOUTS = ("--raft-election-timeout", "150ms", "--raft-heartbeat", "30ms")


@contextlib.contextmanager
def all_groups(folder, options):
    """One group of servers per kind, by the name of its load generator."""
    with (start_tenured_group(folder, options, SIZE) as tenured,
          start_etcd_group(folder, SIZE) as etcd,
          start_zookeeper_group(folder, SIZE) as zookeeper):
        yield {"library": tenured, "etcd": etcd, "zookeeper": zookeeper}
    remove_files(folder)


def cycles(folder, options):
    with all_groups(folder, options) as groups:
        return cycle_rounds(options, groups, ROWS, CLIENTS)


def hand_over(folder, options):
    with all_groups(folder, options) as groups:
        return hand_over_rounds(options, groups)


def failover(folder, options):
    """{timeouts: gaps in ms}: the longest cycle of a client while the leader is killed."""
    rounds = 2 if options.quick else 10
    return {name: gaps(folder, options, rounds, kill_leader, flags)
            for name, flags in (("default", ()), ("quick", QUICK_TIMEOUTS))}


def transfer(folder, options):
    """The same while the leader transfers its leadership."""
    return gaps(folder, options, 2 if options.quick else 10, transfer_leadership, ())


def gaps(folder, options, rounds, disturb, flags):
    result = []
    with start_tenured_group(folder, options, SIZE, *flags) as group:
        for number in range(rounds):
            progress(f"{disturb.__name__} [{number + 1}/{rounds}]")
            cycling = begin(command_of(options, "library", "threads", group, 1, 60))
            time.sleep(1)  # The load counts after half a second.
            disturb(options, group)
            time.sleep(2)
            cycling.send_signal(signal.SIGINT)
            result.append(next_line(cycling)["max_us"] / 1000)
            cycling.wait()
            wait_until_whole(group)
    remove_files(folder)
    progress("")
    return result


def kill_leader(_, group):
    leader = leader_of(group)
    leader.stop(signal.SIGKILL)


def transfer_leadership(options, group):
    subprocess.run([str(options.build / "bench/service_load"), "transfer",
                    leader_of(group).address], check=True, stdout=subprocess.DEVNULL)


def wait_until_whole(group, seconds=30):
    for server in group.servers:
        if server.process.poll() is not None:
            server.restart()
    give_up = time.monotonic() + seconds
    while not is_whole(group) and time.monotonic() < give_up:
        time.sleep(0.05)


def five(folder, options):
    """{members: cycles per second at 64 clients}, taking turns."""
    row, clients = "library, tasks", 64
    samples = {3: [], 5: []}
    with (start_tenured_group(folder, options, 3) as three,
          start_tenured_group(folder, options, 5) as many):
        for number in range(options.rounds):
            progress(f"three and five members [{number + 1}/{options.rounds}]")
            for group in (three, many) if number % 2 == 0 else (many, three):
                samples[len(group.servers)].append(
                    one_run(options, row, {"library": group}, clients)["per_second"])
    remove_files(folder)
    progress("")
    return {str(size): statistics.median(taken) for size, taken in samples.items()}


PARTS = {"cycles": cycles, "hand-over": hand_over, "failover": failover, "transfer": transfer,
         "five": five}
