"""Task slots for a chain: a cluster that has just started gets some time, one machine gets none."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from spark_impl.join import stage
from spark_impl.join.stage import check_slots
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
