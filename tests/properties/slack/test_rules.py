"""Spark's operator does what the model does under every rule that a query may have.

A rule is an aggregate, a way to require coverage, a sampling and a control. Here the operator runs
in process, on streams with tens of tuples in each window, because a smaller window requires all of
them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import strategies as st

from model.vocabulary import SlackConfig, Workload
from model.vocabulary.slack import CONTROLS
from model.vocabulary.windows import AGGREGATES
from properties import profiles
from properties.reached_cases import count_partial
from sim.kernel.distributions import Exponential
from sim.kernel.log import simulate_arrivals
from sim.kernel.source import Source
from spark_impl.slack.query import SLACK
from spark_impl.windows.system import run_in_process
from straggler.rooms import find_room
from straggler.strategies import collect
from straggler.strategies import streams as strategies
from straggler.strategies.streams import configs, requirements

ROOM = find_room("slack")
STREAMS = profiles.choose(2, nightly=16)
"""Number of streams for each rule."""


def queries_of(aggregate: str, seed: int, controls: Sequence[str] = CONTROLS) -> list[SlackConfig]:
    """Return a query for every rule of an aggregate, with windows that overlap or not."""
    drawn = collect(configs([aggregate]), 12, seed)
    rules = [(way, control) for way in requirements(aggregate) for control in controls]
    return [
        replace(drawn[number % len(drawn)], control=control, eps=0.2, delta=0.2, **way._asdict())
        for number, (way, control) in enumerate(rules)
    ]


@st.composite
def dense_workloads(draw: st.DrawFn, config: strategies.Query) -> Workload:
    """Draw a stream with tens to hundreds of tuples in each window, on any route to the log."""
    density = draw(st.sampled_from([40, 80, 160, 320]))
    source = Source(
        events=draw(st.sampled_from([160, 320, 640])),
        interval=Exponential(config.size_us / density),
        low=draw(st.sampled_from([0, 50])),
    )
    seed = draw(strategies.SEEDS)
    scale_us = max(config.size_us, config.slide_us)
    events = simulate_arrivals(draw(strategies.plans(scale_us, (source,), seed)), seed).events
    kept = events if config.dedup else strategies.without_redeliveries(events)
    cuts = tuple(cut * len(kept) // 99 for cut in draw(strategies.cuts(99)))
    room = strategies.ROOMS[type(config)]
    return Workload(room, tuple(kept), config.to_json(), cuts, flush=True, name="dense")


def streams_of(query: SlackConfig, seed: int) -> list[Workload]:
    """Return streams for a query, but not the first ones drawn, which are the plainest."""
    drawn = collect(dense_workloads(query), 2 * STREAMS, seed)
    return drawn[-STREAMS:]


def assert_parts(queries: list[SlackConfig], partial: Counter[SlackConfig]) -> None:
    """Assert that some window of each query, as counted, required only a part of its tuples."""
    whole = [each for each in queries if not partial[each] and each.lambda_thr != 1.0]
    assert not whole, f"undetermined: no window required only a part for {whole}"


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_every_rule_of_a_query_holds_in_process(aggregate: str, seed: int) -> None:
    reference, partial = ROOM.reference(), Counter[SlackConfig]()
    control = CONTROLS[AGGREGATES.index(aggregate) % len(CONTROLS)]
    queries = queries_of(aggregate, seed, [control])
    for number, query in enumerate(queries):
        for case in streams_of(query, seed + number):
            observed = run_in_process(SLACK, case)
            found = ROOM.compare(case, reference(case), observed, ROOM.in_process_step_types)
            assert not found.sentences, (query, *found.sentences)
            partial[query] += count_partial(observed)
    assert_parts(queries, partial)
