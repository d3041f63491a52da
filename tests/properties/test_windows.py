"""Cuts change no answer of a window, by model or operator.

Arrivals come from simulated networks (``straggler/strategies/streams.py``).
"""

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.slack.machine import MODEL as SLACK
from model.vocabulary import System, Trace, Workload
from model.vocabulary.slack import Judged
from model.vocabulary.watermark import Clock, Inserted
from model.vocabulary.windows import Final, Late, Rejected, Result
from model.watermark.machine import MODEL as WATERMARK
from model.windows.pipeline import WindowModel
from straggler.rooms import find_room
from straggler.strategies import streams, watermark

Answer = tuple[int, int, str, float, int, bool]


class Room(NamedTuple):
    """A model, and streams for it."""

    name: str
    model: WindowModel[Any, Any, Any]
    cases: st.SearchStrategy[Workload]
    has_operator: bool = True
    """Whether the operator in process is cut as well; corrections of queries are Spark's."""


ROOMS = {
    "slack": Room("slack", SLACK, streams.cases()),
    "watermark": Room("watermark", WATERMARK, watermark.cases(corrections=(True,))),
    "upstream": Room("watermark", WATERMARK, watermark.cases(upstreams=(1, 2, 3)), False),
}


def unbatched(trace: Trace) -> list[object]:
    """Return the steps that may not depend on the cut into micro-batches."""
    # A pair that a forgotten redelivery finds late again is one step in one batch, two in two.
    late = {step._replace(batch=0) for step in trace.of(Late)}
    kinds: tuple[Any, ...] = (Result, Judged, Clock, Inserted, Rejected)  # all are named tuples
    steps = [repr(step._replace(batch=0)) for kind in kinds for step in trace.of(kind)]
    return [*sorted(steps), *sorted(late), *answers(trace)]


def answers(trace: Trace) -> list[Answer]:
    """Return the final answers without the numbers of their revisions."""
    return [(*final[:5], final.exact) for final in trace.of(Final)]


@pytest.mark.parametrize("name", ROOMS)
@given(data=st.data())
def test_cuts_change_no_answer(name: str, data: st.DataObject) -> None:
    room = ROOMS[name]
    # With a flush, because the cuts decide which corrections are made before the end.
    flushed = data.draw(room.cases).with_(flush=True)
    if room.name == "watermark":
        flushed = flushed.with_(config={**flushed.config, "clocks": "arrivals"})
    recut = flushed.with_(cuts=data.draw(streams.cuts(len(flushed.arrivals))))
    runs: list[System] = [room.model.run]
    runs += [find_room(room.name).in_process] * room.has_operator
    for run in runs:
        assert unbatched(run(recut)) == unbatched(run(flushed))
