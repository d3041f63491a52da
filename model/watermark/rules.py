"""The decisions of the room, one function each, so that each can be replaced.

Source: docs/watermark.md, sections 2 to 4.

Rules of this file:

* A decision only reads state, except that ``entered`` moves the cluster it is given.
* A planted bug or the literal reading is this table with one entry replaced
  (``model/watermark/variants.py``).
"""

from collections.abc import Callable
from dataclasses import dataclass

from model.vocabulary import WatermarkConfig
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


@dataclass(frozen=True, slots=True)
class Rules(WindowRules[WatermarkConfig]):
    """The table of decisions."""

    entered: Callable[[Cluster, int], Cluster] = entered
    carried: Callable[[Cluster], Cluster] = carried
    wait_us: Callable[[WatermarkConfig, Cluster], int] = wait


RULES = Rules()
