"""Fault injections by name. Each is a generator that injects a fault and later repairs it.

    @fault
    def name(run):
        ...      # inject
        yield    # the run waits here for the duration of the fault
        ...      # repair

`run.random` provides the choices that depend on the seed."""

import errno
import signal

import grpc

from daemon import TIMEOUT, eventually
from harness import torn

ALL = {}


def fault(function):
    ALL[function.__name__] = function
    return function


def random_follower(run):
    leader = run.cluster.wait_for_leader()
    return run.random.choice([one for one in run.cluster.running() if one != leader])


@fault
def kill_leader(run):
    """kill -9 of the leader."""
    leader = run.cluster.wait_for_leader()
    run.cluster.kill(leader)
    yield
    run.cluster.restart(leader)


@fault
def kill_follower(run):
    """kill -9 of a follower."""
    follower = random_follower(run)
    run.cluster.kill(follower)
    yield
    run.cluster.restart(follower)


@fault
def kill_all(run):
    """kill -9 of all members, as in a power failure."""
    for member in run.cluster.nodes:
        run.cluster.kill(member)
    yield
    for member in run.cluster.nodes:
        run.cluster.restart(member)


@fault
def lose_majority(run):
    """kill -9 of all but one; the leader may be the one."""
    members = list(run.cluster.nodes)
    run.random.shuffle(members)
    for member in members[1:]:
        run.cluster.kill(member)
    yield
    for member in members[1:]:
        run.cluster.restart(member)


@fault
def pause_leader(run):
    """SIGSTOP of the leader, SIGCONT later: it resumes with the state of a leader."""
    leader = run.cluster.wait_for_leader()
    run.cluster.pause(leader)
    yield
    run.cluster.resume(leader)


@fault
def pause_follower(run):
    """SIGSTOP of a follower."""
    follower = random_follower(run)
    run.cluster.pause(follower)
    yield
    run.cluster.resume(follower)


@fault
def pause_holders(run):
    """SIGSTOP of a process that holds locks, for longer than its leases last."""
    workload = run.random.choice(run.workloads)
    workload.process.send_signal(signal.SIGSTOP)
    try:
        yield
        run.pause(run.ttl * 1.2)
    finally:
        workload.process.send_signal(signal.SIGCONT)


@fault
def isolate_leader(run):
    """The leader is cut off from all members in both directions."""
    run.cluster.partition([run.cluster.wait_for_leader()])
    yield
    run.cluster.heal_network()


@fault
def partition(run):
    """A partition into two sides, one of which has a majority."""
    members = list(run.cluster.nodes)
    run.cluster.partition(run.random.sample(members, run.random.randint(1, len(members) // 2)))
    yield
    run.cluster.heal_network()


@fault
def one_way(run):
    """A one-way partition of the leader: it cannot send, or it cannot receive."""
    leader = run.cluster.wait_for_leader()
    others = [member for member in run.cluster.nodes if member != leader]
    outgoing = [(leader, other) for other in others]
    run.cluster.cut(outgoing if run.random.random() < 0.5
                    else [(receiver, sender) for sender, receiver in outgoing])
    yield
    run.cluster.heal_network()


@fault
def flapping(run):
    """A network that is partitioned and repaired several times per second."""
    for _ in range(8):
        run.cluster.partition([run.random.choice(list(run.cluster.nodes))])
        run.pause(run.random.uniform(0.05, 0.2))
        run.cluster.heal_network()
        run.pause(run.random.uniform(0.02, 0.15))
    yield


@fault
def delay_and_loss(run):
    """All messages between members are delayed; some are lost and sent again by TCP."""
    run.cluster.degrade_network(run.random.uniform(0.002, 0.03), run.random.uniform(0.05, 0.3))
    yield
    run.cluster.heal_network()


@fault
def slow_disk(run):
    """Each fsync of one member, or of all, takes 5 to 100 ms longer."""
    members = list(run.cluster.nodes)
    slow = members if run.random.random() < 0.3 else [run.random.choice(members)]
    for member in slow:
        run.cluster.nodes[member].faults.set(sync_delay_us=run.random.randint(5_000, 100_000))
    yield
    for member in slow:
        run.cluster.nodes[member].faults.set(sync_delay_us=0)


@fault
def sync_error(run):
    """fsync of one member fails with EIO: the member must log the error and stop; the others
    continue."""
    member = run.random.choice(run.cluster.running())
    node = run.cluster.nodes[member]
    node.faults.set(sync_errno=errno.EIO)
    run.expect_stop(member, 74, "sync")
    yield
    node.faults.set(sync_errno=0)
    run.cluster.restart(member)


@fault
def full_disk(run):
    """The disk of a member is full: no data may be lost, and the member continues without a restart
    when space is free again."""
    run.cluster.fill_disk(run.small_disk)
    yield
    run.cluster.empty_disk(run.small_disk)
    node = run.cluster.nodes[run.small_disk]
    if not node.is_running():
        run.expect_stop(run.small_disk, 74, "space")
        run.cluster.restart(run.small_disk)


@fault
def torn_write(run):
    """A member is killed in the middle of a write, part of which is on the disk. The write was not
    acknowledged, so the member may drop it."""
    member = run.random.choice(run.cluster.running())
    run.cluster.kill(member)
    run.note(torn(run.cluster.nodes[member].folder, run.random, 0))
    yield
    run.cluster.restart(member)


@fault
def torn_log(run):
    """The disk of a stopped follower loses acknowledged entries at the end of the log. The member
    must refuse to start, because its vote could revert committed entries. The test applies the
    remedy of the error message: another member replaces it."""
    member = random_follower(run)
    run.cluster.kill(member)
    run.note(torn(run.cluster.nodes[member].folder, run.random, run.random.randint(20, 44)))
    yield
    run.cluster.restart(member)
    run.expect_stop(member, 74, "durable")
    new = max(run.cluster.nodes) + 1
    run.cluster.add(new)
    retry_after_timeout(run, lambda: run.cluster.remove(member))
    run.gone.append(run.cluster.nodes.pop(member))
    run.note(f"member {new} replaced {member}")


@fault
def clock_jump(run):
    """The wall clock of a member jumps by an hour, forwards or backwards. Leases must not depend on
    it."""
    node = run.cluster.nodes[run.random.choice(list(run.cluster.nodes))]
    node.faults.set(wall_ms=run.random.choice([-1, 1]) * 3_600_000)
    yield
    node.faults.set(wall_ms=0)


@fault
def client_clock_jump(run):
    """The wall clock of a client process jumps by an hour."""
    workload = run.random.choice(run.workloads)
    workload.faults.set(wall_ms=run.random.choice([-1, 1]) * 3_600_000)
    yield
    workload.faults.set(wall_ms=0)


@fault
def rolling_restart(run):
    """Each member in turn is stopped gracefully and restarted."""
    for member in list(run.cluster.nodes):
        code = run.cluster.stop(member)
        assert code == 0, f"member {member} stopped with {code}"
        run.cluster.restart(member)
        run.cluster.wait_until_healthy()
    yield


@fault
def transfer(run):
    """An operator transfers the leadership. A timeout of the transfer is a valid result."""
    try:
        run.cluster.transfer(random_follower(run))
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
            raise
        run.note("a leadership transfer timed out")
    yield


@fault
def grow_and_shrink(run):
    """A member is added, and one of the others is removed."""
    new = max(run.cluster.nodes) + 1
    run.cluster.add(new)
    run.note(f"member {new} added")
    yield
    gone = run.random.choice([member for member in run.cluster.nodes if member != new])
    retry_after_timeout(run, lambda: run.cluster.remove(gone))
    node = run.cluster.nodes.pop(gone)
    run.gone.append(node)
    if node.is_running():
        node.kill()
    run.note(f"member {gone} removed")


@fault
def replace_dead(run):
    """A member fails permanently; another replaces it."""
    dead = run.random.choice(run.cluster.running())
    run.cluster.kill(dead)
    run.cluster.wait_for_leader(but=dead)
    new = max(run.cluster.nodes) + 1
    run.cluster.add(new)
    retry_after_timeout(run, lambda: run.cluster.remove(dead))
    run.gone.append(run.cluster.nodes.pop(dead))
    run.note(f"member {new} replaced {dead}")
    yield


def retry_after_timeout(run, call):
    """Retries a removal: a leader transfers its leadership first, and that may time out."""
    for _ in range(5):
        try:
            return call()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
                raise
            run.note(f"retried: {error.details()}")
    return call()


def wait_for_end(node):
    eventually(lambda: not node.is_running(), f"member {node.member} stops within {TIMEOUT} s")
