"""Workers of a chain: connections and task slots, without Spark."""

import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import STREAMS, And
from spark_impl.join import driving, messages, rendezvous, stage
from spark_impl.join.checkpoint import empty_state
from spark_impl.join.in_process import arrivals_of
from spark_impl.join.matching import Pairs
from spark_impl.join.rendezvous import Meeting, Place, Rendezvous, join_neighbours, meet
from spark_impl.join.side import Matcher
from spark_impl.join.stage import check_slots
from spark_impl.join.transport import Door, Links, NeighbourClosed, NeighbourLost, listen
from spark_impl.join.worker import Worker
from spark_impl.runtime.session import EnvironmentProblem

# ------------------------------------------------------------------------------------ connections


HOST = "127.0.0.1"
TOKEN = "a secret"


def test_a_missing_worker_is_an_error_of_the_others() -> None:
    with (
        Rendezvous(HOST, 2, timeout_s=0.3) as rendezvous,
        pytest.raises(TimeoutError, match=r"worker 1 did not meet the others within 0.3 s"),
    ):
        meet(rendezvous.place, 1, 5, (HOST, 1))


def pair_of_links(patience_s: float = 20.0) -> tuple[Links, Links]:
    with closing(listen(HOST)) as listener:
        one = socket.create_connection(listener.getsockname()[:2])
        other, _ = listener.accept()
    return Links(0, 0, {1: one}, patience_s), Links(1, 0, {0: other}, patience_s)


def idle(links: Links) -> None:
    for _ in range(100):
        links.exchange([], 0.1)


def test_messages_leave_at_once() -> None:
    """The operating system would collect small messages for up to 40 ms."""
    for links in pair_of_links():
        with closing(links):
            for peer in links._peers.values():
                at_once = peer.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                assert at_once != 0


def test_a_neighbour_that_never_calls_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]

    def nobody(_: Door, timeout_s: float) -> Iterator[object]:
        assert 0 < timeout_s <= 20.0 - now_s[0], "it waits for longer than the deadline"
        now_s[0] += 8.0
        yield from ()

    monkeypatch.setattr(Door, "wait", nobody)
    monkeypatch.setattr(rendezvous, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    with closing(listen(HOST)) as listener:
        meeting = Meeting("attempt", ((HOST, 1), listener.getsockname()[:2]))
        sentence = "^worker 1 is not connected with worker 0: no connection before the deadline$"
        with pytest.raises(TimeoutError, match=sentence):
            join_neighbours(Door(listener, TOKEN), 1, meeting, Place((HOST, 1), TOKEN, 20.0))
    assert now_s[0] == 24.0


def test_a_neighbour_that_dies_is_named() -> None:
    left, right = pair_of_links()
    right.close()
    with closing(left), pytest.raises(NeighbourClosed, match="worker 1 is lost, says worker 0"):
        idle(left)


def test_nobody_waits_for_a_neighbour_that_has_said_goodbye() -> None:
    left, right = pair_of_links()
    with closing(left), closing(right), ThreadPoolExecutor(1) as pool:
        parting = pool.submit(right.part)
        while not left._peers[1].gone:
            left.exchange([], 0.1)
        before_s = left.waited_s
        left.part()
        assert left.waited_s - before_s < 1.0
        parting.result()
    for peer in (*left._peers.values(), *right._peers.values()):
        assert peer.connection.fileno() >= 0, "the next epoch needs it"
        peer.connection.close()


def test_a_neighbour_that_is_silent_is_named() -> None:
    left, right = pair_of_links(patience_s=0.2)
    told = pytest.raises(NeighbourLost, match="worker 1 was silent")
    with closing(left), closing(right), told as raised:
        idle(left)
    assert raised.type is NeighbourLost  # a cause, which is told at once


def test_an_oversized_frame_of_a_neighbour_is_refused() -> None:
    left, right = pair_of_links()
    with closing(left), closing(right):
        right._peers[0].connection.send(b"\x7f\xff\xff\xff")
        with pytest.raises(messages.FrameProblem, match="2147483647 bytes came"):
            left.exchange([], 5.0)


class Alone:
    """Connections of a worker without neighbours, and a clock: a second of three is no waiting."""

    def __init__(self) -> None:
        self.now_s, self.waited_s, self.exchanges = 100.0, 0.0, 0
        self.has_parted = False

    def exchange(self, outgoing: Sequence[object], _wait_s: float) -> list[Any]:
        """Let time pass; nothing comes."""
        assert not outgoing
        self.exchanges += 1
        self.now_s, self.waited_s = self.now_s + 3, self.waited_s + 2
        return []

    def part(self) -> None:
        """Wait for nobody."""
        self.has_parted = True


@pytest.mark.parametrize("rows_max", [1, driving.ROWS_MAX])
def test_a_worker_is_busy_while_it_does_not_wait(
    monkeypatch: pytest.MonkeyPatch, rows_max: int
) -> None:
    """Let it hand on every pair, however many it may hold."""
    links, found = Alone(), list[tuple[int, int]]()
    monkeypatch.setattr(driving, "ROWS_MAX", rows_max)
    monkeypatch.setattr(driving, "time", SimpleNamespace(monotonic=lambda: links.now_s))
    config = JoinConfig(9, (("all", And()),), workers=1)
    events = [Event(n, n, "", n, 1.0, n, "RS"[n % 2]) for n in range(200)]
    arrivals = {each: arrivals_of(events, each, config) for each in STREAMS}
    worker = Worker(config, 0, Matcher(config), empty_state(), 0)

    def hand_on(pairs: Sequence[Sequence[Pairs]]) -> None:
        for each in pairs[0]:
            found.extend(zip(each.r_id.tolist(), each.s_id.tolist(), strict=True))

    given: Any = links
    assert driving.drive(worker, arrivals, given, hand_on) == 1_000_000 * links.exchanges
    pairs = product(range(0, 200, 2), range(1, 200, 2))
    assert sorted(found) == [each for each in pairs if abs(each[0] - each[1]) <= 9]
    assert links.has_parted


# ------------------------------------------------------------------------------------------ slots


MANAGER = SimpleNamespace(defaultResourceProfile=lambda: None)


class Cluster:
    """A stand-in for a session, with a clock."""

    def __init__(self, master: str, slots: Callable[[float], int]) -> None:
        self.now_s = 0.0
        java = SimpleNamespace(
            resourceProfileManager=lambda: MANAGER,
            maxNumConcurrentTasks=lambda _: slots(self.now_s),
        )
        self.sparkContext = SimpleNamespace(master=master, _jsc=SimpleNamespace(sc=lambda: java))

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds


def waited_s(cluster: Any, workers: int, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return how long it takes to find the slots."""
    clock = SimpleNamespace(monotonic=lambda: cluster.now_s, sleep=cluster.sleep)
    monkeypatch.setattr(stage, "time", clock)
    check_slots(cluster, workers)
    return float(cluster.now_s)


def test_executors_that_come_later_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster("spark://host:7077", lambda now_s: 4 if now_s >= 9 else 1)
    assert 9 <= waited_s(cluster, 4, monkeypatch) < 10


@pytest.mark.parametrize(("master", "limit_s"), [("local[2]", 1), ("spark://host:7077", 20)])
def test_too_few_slots_are_refused(
    master: str, limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(master, lambda _: 2)
    with pytest.raises(
        EnvironmentProblem, match=r"needs 3 task slots at the same time and .* has "
    ):
        waited_s(cluster, 3, monkeypatch)
    assert cluster.now_s < limit_s
