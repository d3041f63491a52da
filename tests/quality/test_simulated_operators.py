"""At night: state that Spark's operators do not restore shows in simulated time.

Each of the bugs needs a second micro-batch to show, and most a crash or a copy of a message.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from spark_impl.grouping.windows import Standing
from spark_impl.join import checkpoint
from spark_impl.join.admission import Identities
from spark_impl.runtime import states
from spark_impl.watermark.rule import WatermarkRule
from straggler.strategies.examples import RUN, collect
from straggler.strategies.timed_operators import OPERATORS
from tests.quality.planting import Planted

CLUSTERS = 300
"""Largest number of clusters that are tried until one shows the bug."""


def _no_identities_of_windows(right: Any, data: bytes) -> Any:
    state = right(data)
    return state._replace(identities=state.identities[:0])


def _no_identities(right: Any, *given: Any) -> Any:
    state = right(*given)
    empty = Identities(np.empty(0, np.int64), np.empty(0, np.int64))
    kept = [each.intake and each.intake._replace(known=empty) for each in state]
    both = zip(state, kept, strict=True)
    return type(state)(*(each._replace(intake=intake) for each, intake in both))


def _no_heavy_key(right: Any, data: bytes) -> Any:
    standing, *senders = right(data)
    assert isinstance(standing, Standing)
    heavy = dict(list(standing.table.heavy.items())[1:])
    return standing._replace(table=standing.table._replace(heavy=heavy)), *senders


BUGS: Mapping[str, Planted] = {
    "slack": Planted(states.from_bytes, _no_identities_of_windows),
    "watermark": Planted(
        WatermarkRule.memory,
        lambda right, self: (memory := right(self))._replace(cluster=memory.cluster[:0]),
    ),
    "join": Planted(checkpoint.decode_state, _no_identities),
    "grouping": Planted(states.from_bytes, _no_heavy_key),
    "script": Planted(states.from_bytes, lambda right, data: right(data)._replace(latest={})),
}
"""Planted bug by room."""


@pytest.mark.long
@pytest.mark.parametrize("room", BUGS)
def test_state_that_is_not_restored_shows_on_some_cluster(room: str) -> None:
    operator = OPERATORS[room]
    runs = (collect(operator.drawn_in(None), RUN, seed=run) for run in range(CLUSTERS // RUN))
    with BUGS[room].in_force():
        assert any(operator.broken(cluster) for clusters in runs for cluster in clusters)
