"""Spark's operator does what the model does under every rule that a query may have.

A rule is an aggregate, a way to require coverage, a sampling and a control. Here the operator runs
in process, on streams with tens of tuples in each window, because a smaller window requires all of
them. ``windows/test_packs_spark.py`` has every rule with every control in Spark.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from model.vocabulary import SlackConfig, Workload
from model.vocabulary.slack import CONTROLS
from model.vocabulary.windows import AGGREGATES
from properties import profiles, stream_packs
from properties.reached_cases import count_partial
from spark_impl.slack.query import SLACK
from spark_impl.windows.system import run_in_process
from straggler.rooms import find_room
from straggler.strategies.streams import configs, requirements

ROOM = find_room("slack")
STREAMS = profiles.choose(2, nightly=16)
"""Number of streams for each rule."""


def queries_of(aggregate: str, seed: int, controls: Sequence[str] = CONTROLS) -> list[SlackConfig]:
    """Return a query for every rule of an aggregate, with windows that overlap or not."""
    drawn = stream_packs.collect(configs([aggregate]), 12, seed)
    rules = [(way, control) for way in requirements(aggregate) for control in controls]
    return [
        replace(drawn[number % len(drawn)], control=control, eps=0.2, delta=0.2, **way._asdict())
        for number, (way, control) in enumerate(rules)
    ]


def streams_of(query: SlackConfig, seed: int) -> list[Workload]:
    """Return streams for a query, but not the first ones drawn, which are the plainest."""
    drawn = stream_packs.collect(stream_packs.dense_workloads(query), 2 * STREAMS, seed)
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
