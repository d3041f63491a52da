"""The decision of the room: how long to wait. A planted bug replaces it, or one about windows.

Source: docs/watermark.md, section 2.
"""

from collections.abc import Callable
from dataclasses import dataclass

from model.vocabulary import WatermarkConfig
from model.windows.cluster import Cluster, wait_us
from model.windows.rules import WindowRules


def wait(config: WatermarkConfig, cluster: Cluster) -> int:
    """Return the wait by the reading of the query."""
    return wait_us(config.reading, config.max_wait_us, cluster)


@dataclass(frozen=True, slots=True)
class Rules(WindowRules):
    """The table of decisions."""

    wait_us: Callable[[WatermarkConfig, Cluster], int] = wait


RULES = Rules()
