"""Results stay, windows share the cheaper slices, and placements keep their bounds."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, chain
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model.script import run
from model.script.claims import lpt_bound
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import Result
from model.vocabulary.script.graph import compile_graph
from model.vocabulary.script.placement import (
    HASHED,
    LARGE_SPLIT,
    WHOLE,
    Placement,
    components,
    hash_baseline,
    load_cap,
    place,
    sensors_of,
)
from model.vocabulary.script.slices import (
    HOUR_MS,
    Comb,
    Span,
    choose,
    cost,
    edges,
    panes,
    slice_of,
)
from model.vocabulary.script.tree import DAY_MS
from properties.promised import Reached, promised
from spark_impl.script.arithmetic import Tuples
from spark_impl.script.kernel import Log
from spark_impl.script.processor import MESSAGE
from spark_impl.script.system import WorkerInProcess, WorkerOutput, run_in_process
from straggler.rooms.script.language import parse
from straggler.strategies.script import cases, configs
from tests.soak.oracles import SCRIPT

# ----------------------------------------------------------------------- what comes again, or more


def test_messages_that_a_superseded_driver_sends_again_count_once(seed: int) -> None:
    draw = Random(seed)
    stamps = accumulate((draw.randint(1_000, 20_000) for _ in range(400)), initial=1_000_000_000)
    events = [
        Event(seq, seq, draw.choice("AABBC"), ts_us, float(draw.randint(0, 20)), ts_us)
        for seq, ts_us in enumerate(stamps)
    ]
    rates = (("A", 10_000), ("B", 10_000), ("C", 100))
    config = ScriptConfig((parse(SCRIPT, "soak"),), rates, 2, 50_000, cap_percent=100)
    case = Workload("script", tuple(events), config.to_json(), tuple(range(20, 400, 20)))
    process, last = WorkerInProcess.process, dict[WorkerInProcess, tuple[Any, ...]]()
    again = []

    def process_again(self: WorkerInProcess, *blocks: tuple[int, bytes | None]) -> WorkerOutput:
        """Let the message before come once more, behind this one."""
        steps, messages, known_us = process(self, *blocks)
        if blocks[0][0] == MESSAGE:
            if before := last.get(self):
                again.append(process(self, *before))
                steps, messages = steps + again[-1].steps, messages + again[-1].messages
            last[self] = blocks
        return WorkerOutput(steps, messages, known_us)

    with patch.object(WorkerInProcess, "process", process_again):
        trace = run_in_process(case)
    assert len(again) > 20
    assert sorted(trace.of(Result)) == sorted(run(case).of(Result))


@given(case=cases())
def test_results_of_a_part_stay_when_more_arrives(case: Workload) -> None:
    whole = set(run(case.with_(flush=True)).of(Result))
    part = run(case.with_(flush=False))
    assert set(part.of(Result)) <= whole
    begun = case.with_(arrivals=case.arrivals[: len(case.arrivals) // 2], cuts=(), flush=False)
    assert set(run(begun).of(Result)) <= set(part.of(Result))


COMPONENTS_MAX = 6
"""Largest number of components whose assignments are all tried."""


def against_placement(config: ScriptConfig, placed: Placement) -> Iterator[str]:
    """Yield the errors of a placement with at least one computation (docs/script.md, section 8)."""
    graph, n = placed.graph, config.workers
    for number in graph.computed:
        worker = placed.worker.get(number, -1)
        if not 0 <= worker < n:
            yield f"Computation {number} has no worker."
        elif not sensors_of(graph, number) <= placed.hosts[worker]:
            yield f"Worker {worker} is not sent all that computation {number} reads."
    cap = load_cap(graph, n, config.cap_percent)
    most, sent = hash_baseline(graph, n)
    if placed.communication > sent and most <= cap:
        yield f"{float(placed.communication):,g} is sent; by hash it would be {float(sent):,g}."
    if most <= cap < max(placed.loads):
        yield f"The cap of {float(cap):,g} is not kept, which hashing keeps."
    pieces = components(graph)
    if len(pieces) <= COMPONENTS_MAX:
        rates = graph.per_hour
        loads = [sum((rates[each] for each in piece.sensors), Fraction()) for piece in pieces]
        bound = lpt_bound(loads, n)
        if max(placed.loads) > bound:
            yield f"A worker has {float(max(placed.loads)):,g}, more than {float(bound):,g}."
        if bound <= cap and placed.way != WHOLE:
            yield "Components are split, although LPT keeps the cap."


@promised(WHOLE, LARGE_SPLIT, HASHED, examples=50)
@given(config=configs())
def test_placements_keep_their_bounds(reached: Reached, config: ScriptConfig) -> None:
    graph = compile_graph(config)
    for workers in (2, 4) if graph.computed else ():
        placed = place(graph, workers, 100)
        elsewhere = replace(config, workers=workers, cap_percent=100)
        assert not list(against_placement(elsewhere, placed))
        reached.add({placed.way: 1})


STAMPS = st.lists(st.integers(0, 20), max_size=4)


@example(parts=[[5, 10], [7]])
@given(parts=st.lists(STAMPS, max_size=4))
def test_a_log_keeps_the_order_of_stamps(parts: list[list[int]]) -> None:
    log = Log()
    for part in parts:
        ts = np.array(part, np.int64)
        log = log.with_(Tuples(ts, ts.astype(np.float64)), 0, ts)
    kept = log.tuples.ts.tolist()
    assert kept == sorted(chain.from_iterable(parts))
    assert kept == log.tuples.values.tolist() == log.source_id.tolist()


# ------------------------------------------------------------------------------------------ slices

SPANS = st.sets(st.tuples(st.integers(1, 200), st.integers(1, 100)), min_size=1, max_size=4)


@promised("cut at edges", "cut into panes", "edges that add no cut", examples=80)
@example(spans={(24, 10)}, per_hour=Fraction(1_493_073))
@example(spans={(20, 10), (24, 10)}, per_hour=Fraction(2 * 10**6))
@given(spans=SPANS, per_hour=st.builds(Fraction, st.integers(0, 10**7), st.sampled_from((1, 7))))
def test_windows_share_the_cheaper_slices(
    reached: Reached, spans: set[tuple[int, int]], per_hour: Fraction
) -> None:
    kept = tuple(sorted(Span(*each) for each in spans))
    way, ways = choose(kept, per_hour), (panes(kept), edges(kept))
    assert way.cutting == min(ways, key=lambda each: cost(each, kept, per_hour))
    for length, slide in spans:
        for edge_us in ((at * slide + end) * 1_000 for at in range(12) for end in (0, -length)):
            assert slice_of(way.cutting, edge_us) == edge_us > slice_of(way.cutting, edge_us - 1)
    assert way.is_panes == (way.cutting == ways[0])
    reached.add({"cut into panes" if way.is_panes else "cut at edges": 1})
    reached.add({"edges that add no cut": not way.is_panes and len(way.cutting) < 2 * len(spans)})


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_hours_do_not_stand_for_the_days_of_a_clock(zone: str) -> None:
    day, hour = Span(DAY_MS, DAY_MS, zone), Span(2 * HOUR_MS, HOUR_MS)
    assert {(comb.every_ms, comb.zone) for comb in edges((day, hour))} == {
        (DAY_MS, zone),
        (HOUR_MS, ""),
    }


def test_an_edge_of_two_windows_is_cut_once() -> None:
    # They end at multiples of 10 or 20, and begin 6 before: at 4, 14, ... or at 14, 34, ...
    assert edges((Span(6, 10), Span(6, 20))) == (Comb(10, 0), Comb(10, 4))


@pytest.mark.parametrize(
    ("per_hour", "of_panes", "of_edges"),
    [
        # 8,640,000 ms of windows end in an hour: 360,000 windows of 24 ms. With a tuple every
        # 500 ms they fold at most 17,280 slices, however the stream is cut. Each tuple is looked
        # up once in panes, and twice at edges.
        (7_200, 7_200 + 17_280, 2 * 7_200 + 17_280),
        # With a tuple each ms, a pane of 2 ms or a slice of 5 ms on average bounds their number.
        (3_600_000, 3_600_000 + 4_320_000, 2 * 3_600_000 + 1_728_000),
    ],
)
def test_a_cutting_costs_what_is_looked_up_and_folded(
    per_hour: int, of_panes: int, of_edges: int
) -> None:
    way = choose([Span(24, 10)], Fraction(per_hour))
    assert way[1:] == (Fraction(of_panes), Fraction(of_edges))
