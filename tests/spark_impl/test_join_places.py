"""Task slots for a chain, and measurements of a worker and of links, without Spark."""

import socket
from collections.abc import Callable
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from spark_impl.join import slot_probe, stage
from spark_impl.join.slot_probe import Slot, bandwidths_mbps, speeds_of
from spark_impl.join.stage import check_slots
from spark_impl.join.work_probe import (
    ARRIVALS,
    MIXES,
    REPETITIONS,
    RUN,
    Work,
    fit_costs,
    measure_work,
)
from spark_impl.runtime.session import EnvironmentProblem

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


@pytest.mark.parametrize("master", ["local[3]", "spark://host:7077", "local-cluster[3,1,1024]"])
def test_slots_that_are_there_need_no_wait(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert waited_s(Cluster(master, lambda _: 3), 3, monkeypatch) == 0


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


COUNTS = ((2_500, 20_000, 2_000, 0), (200, 20_000, 2_000, 0), (200, 20_000, 1_000_000, 0))
ALL = (200, 20_000, 1_000_000, 600_000)


def _work(counts: tuple[int, int, int, int], factor: float = 1.0) -> Work:
    """Return work whose costs are 20, 3, 0.05 and 0.1 us."""
    costs = (20.0, 3.0, 0.05, 0.1)
    spent = sum(n * cost for n, cost in zip(counts, costs, strict=True))
    return Work(*counts, elapsed_us=factor * spent)


def test_costs_are_found_in_the_times_of_runs() -> None:
    found = fit_costs([_work(counts) for counts in (*COUNTS, ALL)])
    expected = {"message_us": 20, "tuple_us": 3, "comparison_us": 0.05, "result_us": 0.1}
    assert found == pytest.approx(expected, rel=1e-6)


def test_no_cost_is_below_0() -> None:
    """The run with results was quicker by chance."""
    found = fit_costs([*(_work(counts) for counts in COUNTS), _work(ALL, 0.3)])
    assert min(found.values()) >= 0


def test_mixes_tell_the_costs_apart() -> None:
    runs = measure_work(0)
    assert len(runs) == REPETITIONS
    small, usual, comparing, finding = runs[0]
    assert len(runs[0]) == len(MIXES)
    assert small.messages > 5 * usual.messages
    assert comparing.comparisons > 100 * usual.comparisons
    assert (comparing.results, finding.comparisons) == (0, comparing.comparisons)
    assert finding.results > 100_000
    # Admitted, and then sent, taken and dropped, each at most once.
    assert all(ARRIVALS <= each.tuples <= 4 * ARRIVALS for each in runs[0])
    assert all(each.messages >= ARRIVALS // RUN for each in runs[0])
    assert [each[:4] for each in runs[-1]] == [each[:4] for each in runs[0]]


def test_bandwidth_is_that_after_the_burst() -> None:
    """A megabit comes at once, then 1 Mb/s."""
    pieces = 200
    sizes = [12_500 if number < 10 else 1_250 for number in range(pieces)]
    times_s = [max(0, number - 10) * 0.01 for number in range(pieces)]
    found = bandwidths_mbps(times_s, sizes)
    assert found == pytest.approx([1.0] * 3, rel=0.05)


def test_a_connection_is_measured_from_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_probe, "SENDING_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as server:
        left = socket.create_connection(server.getsockname())
        right, _ = server.accept()
    found: list[float] = []
    other = Thread(target=lambda: found.extend(slot_probe._answer(right)))
    with left, right:
        other.start()
        latencies_us = slot_probe._send(left)
        other.join()
    assert len(latencies_us) == slot_probe.ROUND_TRIPS
    assert min(latencies_us) > 0
    assert len(found) == slot_probe.PARTS


def test_the_fastest_slot_has_speed_1() -> None:
    slots = [Slot(n, "host", [us, us, 9 * us], [], [], []) for n, us in enumerate((20.0, 10.0))]
    assert speeds_of(slots) == (0.5, 1.0)
