"""At night: planted bugs of Spark's operators show in simulated time, on clusters as drawn there.

Most of them need a crash, a copy of a message or a second micro-batch to show: state in memory that
outlives a crash, or state that is not restored.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from properties.operators.timed import OPERATORS
from spark_impl.grouping import router, store
from spark_impl.grouping import windows as grouping_windows
from spark_impl.grouping.keys import EMPTY
from spark_impl.join import checkpoint
from spark_impl.join.admission import Identities
from spark_impl.join.messages import Block, BlockAck
from spark_impl.join.worker import Worker
from spark_impl.script import encoding
from spark_impl.script.processor import ScriptProcessor
from spark_impl.slack.rule import SlackRule
from spark_impl.watermark.rule import WatermarkRule
from spark_impl.windows import records
from spark_impl.windows.processor import WindowProcessor
from straggler.strategies.examples import RUN, collect
from tests.quality.planting import Planted

CLUSTERS = 300
"""Largest number of clusters that are tried until one shows the bug."""


def _outlives_crashes(right: Any, self: Any, *given: Any) -> Iterator[Any]:
    """Keep state in memory, and do not read the store after a restart."""
    if hasattr(self, "in_memory"):
        self._state.update(self.in_memory)
    yield from right(self, *given)
    self.in_memory = self._state.get()


def _acknowledges_first(
    right: Any, self: Worker, sender: int, lane: Any, other: Any, blocks: list[Block]
) -> None:
    """Acknowledge as if the blocks of the other stream that come next had been sent before."""
    before = len(self.outbox)
    right(self, sender, lane, other, blocks)
    for at, (to, each) in enumerate(self.outbox[before:], before):
        if isinstance(each, BlockAck):
            self.outbox[at] = to, each._replace(sent_opposite=each.sent_opposite + 1)


def _without(**fields: Any) -> Any:
    """Return a mistake that restores some fields of a state as they are in the beginning."""
    return lambda right, *given: right(*given)._replace(**fields)


def _without_rows(name: str) -> Any:
    """Return a mistake that forgets the rows of a field of a state."""

    def instead(right: Any, *given: Any) -> Any:
        state = right(*given)
        return state._replace(**{name: getattr(state, name)[:0]})

    return instead


def _no_identities(right: Any, *given: Any) -> Any:
    state = right(*given)
    empty = Identities(np.empty(0, np.int64), np.empty(0, np.int64))
    kept = [each.intake and each.intake._replace(known=empty) for each in state]
    both = zip(state, kept, strict=True)
    return type(state)(*(each._replace(intake=intake) for each, intake in both))


def _no_heavy_key(right: Any, text: bytes) -> Any:
    standing = right(text)
    heavy = dict(list(standing.table.heavy.items())[1:])
    return standing._replace(table=standing.table._replace(heavy=heavy))


def _no_cluster(right: Any, *given: Any) -> Any:
    state = right(*given)
    none = np.empty(0, np.int64)
    clocks = {n: clock._replace(cluster=none) for n, clock in state.clocks.items()}
    return state._replace(clocks=clocks)


BUGS: Mapping[str, Mapping[str, Planted]] = {
    "slack": {
        "state in memory outlives a crash": Planted(
            WindowProcessor.handleInputRows, _outlives_crashes
        ),
        "identities are not restored": Planted(
            records.state_from_bytes, _without_rows("identities")
        ),
        "windows that were not judged are not stored": Planted(
            SlackRule.memory, _without_rows("windows")
        ),
    },
    "watermark": {
        "the cluster is not stored": Planted(WatermarkRule.memory, _without_rows("cluster")),
    },
    "join": {
        "a block is acknowledged before it is joined": Planted(
            Worker._join_in, _acknowledges_first
        ),
        "identities are not restored": Planted(checkpoint.decode_state, _no_identities),
    },
    "grouping": {
        "loads are not reset": Planted(
            router.begin_window,
            lambda right, config, state: right(config, state)._replace(
                loads=state.loads or (0,) * config.instances
            ),
        ),
        "a heavy key is not restored": Planted(store.decode_standing, _no_heavy_key),
        "summaries are not restored": Planted(store.decode_state, _without(summary=EMPTY)),
        "a window is over a tuple too late": Planted(
            grouping_windows.is_full,
            lambda right, config, tuples: right(config, tuples - 1),
        ),
    },
    "script": {
        "state in memory outlives a crash": Planted(
            ScriptProcessor.handleInputRows, _outlives_crashes
        ),
        "latest values are not restored": Planted(encoding.decode_state, _without(latest={})),
        "clusters are not restored": Planted(encoding.decode_state, _no_cluster),
    },
}
"""Planted bugs, by room and name."""


@pytest.mark.long
@pytest.mark.parametrize(("room", "bug"), [(room, bug) for room in BUGS for bug in BUGS[room]])
def test_a_planted_bug_shows_on_some_cluster(room: str, bug: str) -> None:
    operator = OPERATORS[room]
    runs = (collect(operator.drawn, RUN, seed=run) for run in range(CLUSTERS // RUN))
    with BUGS[room][bug].in_force():
        assert any(operator.broken(cluster) for clusters in runs for cluster in clusters)
