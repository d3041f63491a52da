"""The decisions of the room, one function each, so that one of them can be exchanged.

Source: docs/watermark.md, sections 2 to 4.

Rules of this file:

* A decision looks, it changes nothing. ``model/watermark/machine.py`` and ``model/windows`` do
  what was decided.
* A planted bug or the literal reading is this table with an entry replaced
  (``model/watermark/variants.py``).
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from model.vocabulary import Event, WatermarkConfig, WindowSpec
from model.vocabulary.answers import REASON_FUTURE, REASON_NOT_FINITE
from model.windows import rules
from model.windows.cluster import Cluster, wait_us
from model.windows.query import Query
from model.windows.rules import Place

if TYPE_CHECKING:
    from model.watermark.machine import Task
    from model.windows.correction import Pair, Pending


def reject(config: WatermarkConfig, event: Event) -> str | None:
    """Why an arrival takes part in nothing, if it does not."""
    if not isfinite(event.value):
        return REASON_NOT_FINITE
    return REASON_FUTURE if rules.is_too_far_ahead(config, event) else None


def entered(cluster: Cluster, event_time_us: int) -> Cluster:
    """The cluster with one more arrival."""
    cluster.enter(event_time_us)
    return cluster


def wait(config: WatermarkConfig, cluster: Cluster) -> int:
    """The wait by the reading of the query."""
    return wait_us(config.reading, config.max_wait_us, cluster)


def carried(cluster: Cluster) -> Cluster:
    """What goes on into the next micro-batch: all of it."""
    return cluster


@dataclass(frozen=True, slots=True)
class Rules:
    """The table of decisions."""

    reject: Callable[[WatermarkConfig, Event], str | None] = reject
    is_redelivery: Callable[["Task", Event], bool] = rules.is_redelivery
    entered: Callable[[Cluster, int], Cluster] = entered
    carried: Callable[[Cluster], Cluster] = carried
    wait_us: Callable[[WatermarkConfig, Cluster], int] = wait
    wm_us: Callable[[int, int], int] = max
    """The watermark from the one before and N - wait."""
    first_open: Callable[[WindowSpec, int], int] = rules.first_open
    route: Callable[["Task", int, Event], Place] = rules.route
    flush_wm_us: Callable[["Task"], int] = rules.flush_wm_us
    trigger: Callable[[Query, "Pending", int, bool], str | None] = rules.trigger
    covered: Callable[[Collection["Pair"], Collection["Pair"]], Collection["Pair"]] = rules.covered
    clears_first: bool = False


RULES = Rules()
