"""What can go wrong, by name. Each mishap breaks something of a run, and afterwards mends it.

    def mishap(run): ...; yield   # broken from here
                     ...          # mended from here on

The run waits between the two for as long as its schedule says; `run.chance` is what differs from
seed to seed."""

import errno
import signal

import grpc

from daemon import TIMEOUT, eventually
from fleet import torn

ALL = {}


def mishap(function):
    ALL[function.__name__] = function
    return function


def a_follower(run):
    leader = run.fleet.wait_for_leader()
    return run.chance.choice([one for one in run.fleet.running() if one != leader])


@mishap
def kill_leader(run):
    """kill -9 of the leader."""
    leader = run.fleet.wait_for_leader()
    run.fleet.kill(leader)
    yield
    run.fleet.restart(leader)


@mishap
def kill_follower(run):
    """kill -9 of a follower."""
    follower = a_follower(run)
    run.fleet.kill(follower)
    yield
    run.fleet.restart(follower)


@mishap
def kill_all(run):
    """kill -9 of everybody, as when the power fails."""
    for member in run.fleet.nodes:
        run.fleet.kill(member)
    yield
    for member in run.fleet.nodes:
        run.fleet.restart(member)


@mishap
def lose_majority(run):
    """kill -9 of all but one; the leader may be the one."""
    members = list(run.fleet.nodes)
    run.chance.shuffle(members)
    for member in members[1:]:
        run.fleet.kill(member)
    yield
    for member in members[1:]:
        run.fleet.restart(member)


@mishap
def pause_leader(run):
    """SIGSTOP of the leader, SIGCONT later: it wakes up and thinks that it leads."""
    leader = run.fleet.wait_for_leader()
    run.fleet.pause(leader)
    yield
    run.fleet.resume(leader)


@mishap
def pause_follower(run):
    """SIGSTOP of a follower."""
    follower = a_follower(run)
    run.fleet.pause(follower)
    yield
    run.fleet.resume(follower)


@mishap
def pause_holders(run):
    """SIGSTOP of a process that holds locks, for longer than its leases live."""
    workload = run.chance.choice(run.workloads)
    workload.process.send_signal(signal.SIGSTOP)
    try:
        yield
        run.rest(run.ttl * 1.2)
    finally:
        workload.process.send_signal(signal.SIGCONT)


@mishap
def isolate_leader(run):
    """The leader hears nobody, and nobody hears it."""
    run.fleet.part([run.fleet.wait_for_leader()])
    yield
    run.fleet.mend_network()


@mishap
def partition(run):
    """Two sides, of which one has a majority."""
    members = list(run.fleet.nodes)
    run.fleet.part(run.chance.sample(members, run.chance.randint(1, len(members) // 2)))
    yield
    run.fleet.mend_network()


@mishap
def one_way(run):
    """What the leader says reaches nobody, but it hears the others; or the other way round."""
    leader = run.fleet.wait_for_leader()
    others = [member for member in run.fleet.nodes if member != leader]
    away = [(leader, other) for other in others]
    run.fleet.cut(away if run.chance.random() < 0.5 else [(to, one) for one, to in away])
    yield
    run.fleet.mend_network()


@mishap
def flapping(run):
    """A line that comes and goes, a few times a second."""
    for _ in range(8):
        run.fleet.part([run.chance.choice(list(run.fleet.nodes))])
        run.rest(run.chance.uniform(0.05, 0.2))
        run.fleet.mend_network()
        run.rest(run.chance.uniform(0.02, 0.15))
    yield


@mishap
def delay_and_loss(run):
    """Everything between members comes late, some of it very."""
    run.fleet.trouble(run.chance.uniform(0.002, 0.03), run.chance.uniform(0.05, 0.3))
    yield
    run.fleet.mend_network()


@mishap
def slow_disk(run):
    """Every sync of one member, or of all, takes 5 to 100 ms longer."""
    members = list(run.fleet.nodes)
    slow = members if run.chance.random() < 0.3 else [run.chance.choice(members)]
    for member in slow:
        run.fleet.nodes[member].faults.set(sync_delay_us=run.chance.randint(5_000, 100_000))
    yield
    for member in slow:
        run.fleet.nodes[member].faults.set(sync_delay_us=0)


@mishap
def sync_error(run):
    """The disk of a member answers a sync with EIO: it must stop and say why, the others go on."""
    member = run.chance.choice(run.fleet.running())
    node = run.fleet.nodes[member]
    node.faults.set(sync_errno=errno.EIO)
    run.expect_stop(member, 74, "sync")
    yield
    node.faults.set(sync_errno=0)
    run.fleet.restart(member)


@mishap
def full_disk(run):
    """The disk of a member has no space left: nobody may lose anything, and it goes on by itself
    when there is space again."""
    run.fleet.fill_disk(run.small_disk)
    yield
    run.fleet.empty_disk(run.small_disk)
    node = run.fleet.nodes[run.small_disk]
    if not node.is_running():
        run.expect_stop(run.small_disk, 74, "space")
        run.fleet.restart(run.small_disk)


@mishap
def torn_write(run):
    """A member is killed in the middle of a write, of which a piece is on the disk. Nobody was told
    of it, so any member may lose it."""
    member = run.chance.choice(run.fleet.running())
    run.fleet.kill(member)
    run.note(torn(run.fleet.nodes[member].folder, run.chance, 0))
    yield
    run.fleet.restart(member)


@mishap
def torn_log(run):
    """The disk of a stopped follower loses the end of what the member acknowledged. The member must
    refuse to start, because as a voter it could take back what is committed. The remedy in its
    message is applied: another member takes its place."""
    member = a_follower(run)
    run.fleet.kill(member)
    run.note(torn(run.fleet.nodes[member].folder, run.chance, run.chance.randint(20, 44)))
    yield
    run.fleet.restart(member)
    run.expect_stop(member, 74, "durable")
    new = max(run.fleet.nodes) + 1
    run.fleet.add(new)
    ask_again(run, lambda: run.fleet.remove(member))
    run.gone.append(run.fleet.nodes.pop(member))
    run.note(f"member {new} in the place of {member}")


@mishap
def clock_jump(run):
    """The wall clock of a member jumps by an hour, there or back. No lease may notice."""
    node = run.fleet.nodes[run.chance.choice(list(run.fleet.nodes))]
    node.faults.set(wall_ms=run.chance.choice([-1, 1]) * 3_600_000)
    yield
    node.faults.set(wall_ms=0)


@mishap
def client_clock_jump(run):
    """The same to a process that takes locks."""
    workload = run.chance.choice(run.workloads)
    workload.faults.set(wall_ms=run.chance.choice([-1, 1]) * 3_600_000)
    yield
    workload.faults.set(wall_ms=0)


@mishap
def rolling_restart(run):
    """One after the other is stopped in good order and started again."""
    for member in list(run.fleet.nodes):
        code = run.fleet.stop(member)
        assert code == 0, f"member {member} stopped with {code}"
        run.fleet.restart(member)
        run.fleet.wait_until_whole()
    yield


@mishap
def transfer(run):
    """Leadership is moved by hand. That nobody took over in time is an answer, too."""
    try:
        run.fleet.transfer(a_follower(run))
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
            raise
        run.note("a transfer was not taken up in time")
    yield


@mishap
def grow_and_shrink(run):
    """Another member comes, one of the others goes."""
    new = max(run.fleet.nodes) + 1
    run.fleet.add(new)
    run.note(f"member {new} came")
    yield
    gone = run.chance.choice([member for member in run.fleet.nodes if member != new])
    ask_again(run, lambda: run.fleet.remove(gone))
    node = run.fleet.nodes.pop(gone)
    run.gone.append(node)
    if node.is_running():
        node.kill()
    run.note(f"member {gone} went")


@mishap
def replace_dead(run):
    """A member dies for good; another takes its place."""
    dead = run.chance.choice(run.fleet.running())
    run.fleet.kill(dead)
    run.fleet.wait_for_leader(but=dead)
    new = max(run.fleet.nodes) + 1
    run.fleet.add(new)
    ask_again(run, lambda: run.fleet.remove(dead))
    run.gone.append(run.fleet.nodes.pop(dead))
    run.note(f"member {new} in the place of {dead}")
    yield


def ask_again(run, call):
    """Whoever is to be removed hands over first; nobody taking over in time is an answer, too."""
    for _ in range(5):
        try:
            return call()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
                raise
            run.note(f"asked again: {error.details()}")
    return call()


def wait_for_end(node):
    eventually(lambda: not node.is_running(), f"member {node.member} stops within {TIMEOUT} s")
