"""Groups have results of their own, results stay, and a late query reads what it needs."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, groupby
from math import sqrt
from operator import itemgetter
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.tws_tester import TwsTester

from model.script import run
from model.script.claims import lpt_bound
from model.script.graph import compile_graph
from model.script.meaning import window
from model.script.placement import (
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
from model.script.rules import RULES
from model.script.stream import Span, Stream
from model.vocabulary import Event, ScriptConfig, Trace, Workload
from model.vocabulary.script.config import Result
from properties.promised import Reached, promised
from spark_impl.runtime.systems import arrivals_table
from spark_impl.script.plan import Plan, compile_plan
from spark_impl.script.processor import FLUSH, MESSAGE, ScriptProcessor, blocks_of, result_tables
from spark_impl.script.router import Router
from spark_impl.windows.blocks import slots
from straggler.rooms.script.language import parse
from straggler.strategies.script import cases, configs
from tests.soak.oracles import SCRIPT

# --------------------------------------------------------------------------------- grouping columns


class Grouped(ScriptProcessor):
    """A processor whose keys Spark's test driver has wrapped once more."""

    def handleInputRows(  # noqa: N802 (the name is Spark's)
        self,
        key: Any,
        rows: Any,
        timerValues: Any,  # noqa: N803 (the name is Spark's)
    ) -> Any:
        """Process the rows of a group and a worker."""
        return super().handleInputRows(key[0], rows, timerValues)


def run_grouped(
    plan: Plan,
    case: Workload,
    groups: list[Any],
    again: list[Any] | None = None,
) -> list[Trace]:
    """Run a case in several groups at once, in process; return the results of each group.

    With ``again``, a list to which they are added, each message comes a second time behind the next
    one to its reader.
    """
    # Imported here as in the processor: it takes a while.
    import pandas as pd

    tester = TwsTester(Grouped(plan, ("site",)))
    numbers, router = slots(plan.workers), Router(plan)
    waiting: list[tuple[Any, int, list[tuple[int, bytes | None]]]] = []
    for events in case.batches():
        blocks = sorted(blocks_of(router, arrivals_table(events)))
        for worker, own in groupby(blocks, itemgetter(0)):
            together = [each[1:] for each in own]
            waiting += [(group, worker, [*together]) for group in groups]
    if case.flush:
        workers = range(plan.workers)
        waiting += [(group, worker, [(FLUSH, None)]) for group in groups for worker in workers]
    steps: dict[Any, list[Any]] = {group: [] for group in groups}
    for group, worker, given_blocks in waiting:  # grows
        given_rows = pd.DataFrame(given_blocks, columns=["kind", "block"], dtype=object)
        frame: Any = tester.testInPandas((group, numbers[worker]), given_rows)
        assert {*frame["site"]} == {group}
        assert {*frame["worker"]} == {worker}
        own, *messages = frame.to_dict("records")
        for row in messages:
            message = group, row["to"], [(MESSAGE, row["messages"])]
            waiting.append(message)
            if again is not None:
                waiting += [each for each in again if each[:2] == message[:2]][-1:]
                again.append(message)
        tables = result_tables(plan, own["results"], own["undefined"], own["rejected"])
        steps[group] += [Result(**row) for row in tables["result"].to_pylist()]
    return [Trace("spark", own) for own in steps.values()]


def test_messages_that_a_superseded_driver_sends_again_count_once() -> None:
    config = ScriptConfig(
        (parse(SCRIPT, "soak"),),
        (("A", 10_000), ("B", 10_000), ("C", 100)),
        workers=2,
        lateness_us=50_000,
        cap_percent=100,
    )
    draw, again = Random(1), list[Any]()
    stamps = accumulate((draw.randint(1_000, 20_000) for _ in range(400)), initial=1_000_000_000)
    events = [
        Event(seq, seq, draw.choice("AABBC"), ts_us, float(draw.randint(0, 20)), ts_us)
        for seq, ts_us in enumerate(stamps)
    ]
    case = Workload("script", tuple(events), config.to_json(), tuple(range(20, 400, 20)))
    (trace,) = run_grouped(compile_plan(config), case, ["a"], again)
    assert len(again) > 20
    assert sorted(trace.of(Result)) == sorted(run(case).of(Result))


@settings(max_examples=15)
@given(cases(), st.sampled_from([["north", "south"], [7, -1], ["7", "0"]]))
def test_every_group_has_the_results_of_its_own_stream(case: Workload, groups: list[Any]) -> None:
    plan = compile_plan(ScriptConfig.from_json(case.config))
    expected = run(case).of(Result)
    for found in run_grouped(plan, case, groups):
        assert repr(found.of(Result)) == repr(expected)


# ------------------------------------------------------------------------------ on the model


@given(case=cases())
def test_results_of_a_part_stay_when_more_arrives(case: Workload) -> None:
    whole = set(run(case.with_(flush=True)).of(Result))
    part = run(case.with_(flush=False))
    assert set(part.of(Result)) <= whole
    begun = case.with_(arrivals=case.arrivals[: len(case.arrivals) // 2], cuts=(), flush=False)
    assert set(run(begun).of(Result)) <= set(part.of(Result))


OPS = ("max", "min", "avg", "sum", "count", "stddev")
POINTS = st.lists(
    st.tuples(st.integers(0, 60_000), st.floats(-1e150, 1e150) | st.integers(-9, 9).map(float)),
    max_size=8,
).map(sorted)
"""Stamps (us) and values."""


def exact_aggregate(op: str, values: list[float]) -> float:
    """Return an aggregate of exact fractions, rounded at the end."""
    exact = [Fraction(value) for value in values]
    mean = sum(exact, Fraction()) / len(exact)
    variance = sum(((each - mean) ** 2 for each in exact), Fraction()) / len(exact)
    return {
        "max": lambda: max(values),
        "min": lambda: min(values),
        "avg": lambda: float(mean),
        "sum": lambda: float(sum(exact, Fraction())),
        "count": lambda: float(len(values)),
        "stddev": lambda: sqrt(variance),
    }[op]()


@promised("windows", "ends without a tuple", examples=60)
@given(
    points=POINTS,
    op=st.sampled_from(OPS),
    span=st.builds(Span, st.integers(1, 20), st.integers(1, 20)),
    until_us=st.integers(0, 80_000),
)
def test_a_window_has_every_tuple_between_its_start_and_its_end(
    reached: Reached, points: list[tuple[int, float]], op: str, span: Span, until_us: int
) -> None:
    known = tuple(point for point in points if point[0] < until_us)
    expected = {}
    ends_us = range(0, until_us + 1, 1_000 * span.slide_ms)
    for end_us in ends_us:
        start_us = end_us - 1_000 * span.length_ms
        inside = [value for stamp, value in known if start_us <= stamp < end_us]
        if inside:
            expected[end_us - 1_000] = exact_aggregate(op, inside)
    found = window(op, span, Stream(known, until_us), RULES)
    assert dict(found.points) == expected
    reached.add({"windows": len(expected), "ends without a tuple": len(ends_us) - len(expected)})


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


@promised(WHOLE, LARGE_SPLIT, HASHED, examples=25)
@given(config=configs())
def test_placements_keep_their_bounds(reached: Reached, config: ScriptConfig) -> None:
    graph = compile_graph(config)
    for workers in (2, 4) if graph.computed else ():
        placed = place(graph, workers, 100, RULES)
        elsewhere = replace(config, workers=workers, cap_percent=100)
        assert not list(against_placement(elsewhere, placed))
        reached.add({placed.way: 1})
