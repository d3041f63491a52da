"""Cuts change no answer of a window, by model or operator, and each arrival counts once.

Arrivals come from simulated networks (``straggler/strategies/streams.py``).
"""

from collections import Counter
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
from properties.promised import Reached, promised
from spark_impl.windows import kernel, processor
from spark_impl.windows.records import Output, Taken, TaskState
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


@pytest.mark.parametrize("name", ROOMS)
@promised(*Taken._fields[:3], "missed", "rejected", "each identity once", examples=50)
@given(data=st.data())
def test_an_operator_counts_each_arrival_in_one_place(
    reached: Reached, name: str, data: st.DataObject
) -> None:
    flushed = data.draw(ROOMS[name].cases).with_(flush=True)
    counted: list[Taken] = []

    def count(*given: Any, **more: Any) -> tuple[TaskState, Output]:
        state, output = kernel.process(*given, **more)
        counted.append(output.taken)
        return state, output

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processor, "process", count)
        trace = find_room(ROOMS[name].name).in_process(flushed)
    accepted, redelivered, unasked, opened, missed = map(
        sum, zip(*(counted or [Taken()]), strict=True)
    )
    size_us, slide_us = flushed.config["size_us"], flushed.config["slide_us"]
    rejected = {step.seq for step in trace.of(Rejected)}
    kept = [each for each in flushed.arrivals if each.seq not in rejected]
    windows = {
        each.seq: each.event_time_us // slide_us - (each.event_time_us - size_us) // slide_us
        for each in kept
    }
    assert accepted + redelivered + unasked == len(kept)
    assert not opened, "a flush closes all windows"
    once = {each.source_id: each.seq for each in kept}
    if len(once) == len(kept):
        late = Counter(once[step.source_id] for step in trace.of(Late))
        assert redelivered == 0
        assert unasked == sum(not each for each in windows.values())
        assert missed == sum(windows[seq] == pairs for seq, pairs in late.items())
        reached.add({"each identity once": 1, "missed": missed, "unasked": unasked})
    reached.add({"accepted": accepted, "redelivered": redelivered, "rejected": len(rejected)})
