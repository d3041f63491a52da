"""The decisions of the room, one function each, so that each can be replaced.

Source: docs/watermark.md, sections 2 to 4.

Rules of this file:

* A decision only reads state, except that ``entered`` moves the cluster it is given.
* A planted bug or the literal reading is this table with one entry replaced
  (``model/watermark/variants.py``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from model.vocabulary import WatermarkConfig, task_of
from model.windows.cluster import Cluster, wait_us
from model.windows.rules import WindowRules


def entered(cluster: Cluster, event_time_us: int) -> Cluster:
    """Return the cluster with one more arrival."""
    cluster.enter(event_time_us)
    return cluster


def carried(cluster: Cluster) -> Cluster:
    """Return the cluster with which the next micro-batch starts: the same one."""
    return cluster


def wait(config: WatermarkConfig, cluster: Cluster) -> int:
    """Return the wait by the reading of the query."""
    return wait_us(config.reading, config.max_wait_us, cluster)


def is_due(period_us: int, before_us: int | None, now_us: int) -> bool:
    """Return whether a multiple of the period lies between two arrival times, the later included.

    ``before_us`` is the latest arrival time so far; nothing is due before the first arrival.
    """
    return before_us is not None and now_us // period_us > before_us // period_us


def is_idle(
    idle_after_us: int | None, passed_us: int | None, began_us: int, arrived_us: int
) -> bool:
    """Return whether an operator has been silent for too long to hold a watermark back.

    ``passed_us`` is the arrival clock at its last passing, None if there was none; ``began_us`` the
    clock at the first passing of any operator.
    """
    last_us = began_us if passed_us is None else passed_us
    return idle_after_us is not None and arrived_us - last_us > idle_after_us


def least(watermarks_us: Sequence[int]) -> int:
    """Return the watermark that the tasks may rely on."""
    return min(watermarks_us)


@dataclass(frozen=True, slots=True)
class Rules(WindowRules[WatermarkConfig]):
    """The table of decisions."""

    entered: Callable[[Cluster, int], Cluster] = entered
    carried: Callable[[Cluster], Cluster] = carried
    wait_us: Callable[[WatermarkConfig, Cluster], int] = wait
    upstream_of: Callable[[str, int], int] = task_of
    """Number of the upstream operator that a key passes."""
    is_due: Callable[[int, int | None, int], bool] = is_due
    is_idle: Callable[[int | None, int | None, int, int], bool] = is_idle
    least: Callable[[Sequence[int]], int] = least


RULES = Rules()
