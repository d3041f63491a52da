"""Each headline promise has an oracle of its own, which shares nothing with model or Spark.

A mistake in a rule that both ask for keeps them in agreement. The oracles of
:mod:`properties.oracles.promises` notice it: here on Spark's operators in process, and in
``properties/test_promises.py`` on Spark itself.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import pytest

from model.vocabulary import (
    Event,
    GroupingConfig,
    JoinConfig,
    Trace,
    WindowSpec,
    Workload,
    hashing,
)
from properties import profiles
from properties.oracles.promises import (
    Steps,
    wrong_joins,
    wrong_routes,
    wrong_windows,
)
from properties.oracles.router import Router
from properties.packs import plain_steps
from spark_impl.grouping.system import run_in_process as run_grouping
from spark_impl.join.in_process import run_in_process as run_join
from spark_impl.slack.query import SLACK
from spark_impl.watermark.query import WATERMARK
from spark_impl.windows.system import run_in_process as run_windows
from straggler.rooms import find_room
from straggler.strategies.examples import cases_of, collect
from tests.quality.mistakes import Mistake

SEED = 7
CASES = 60
"""Drawn workloads of a room."""


def wrong_routes_of(workload: Mapping[str, Any], steps: Steps) -> list[str]:
    """Compare with a router by definition."""
    return wrong_routes(Router(workload), steps)


class Judged(NamedTuple):
    """The Spark side of a room in process, and the oracle of its promise."""

    run: Callable[[Workload], Trace]
    wrong: Callable[[Mapping[str, Any], Steps], list[str]]
    needed: tuple[str, ...]
    """Kinds of steps without which a promise would not have been put to the test."""


JUDGED = {
    "slack": Judged(lambda each: run_windows(SLACK, each), wrong_windows, ("late", "rejected")),
    "watermark": Judged(lambda each: run_windows(WATERMARK, each), wrong_windows, ("late",)),
    "join": Judged(run_join, wrong_joins, ("match", "rejected")),
    "grouping": Judged(run_grouping, wrong_routes_of, ("heavy", "answer", "rejected")),
}
MISTAKES = (
    ("slack", hashing.task_of, "stable_hash(key)", "(stable_hash(key) + 1)"),
    ("slack", hashing.stable_hash, "unsigned & _SIGN_BIT", "False"),
    ("watermark", hashing.stable_hash, "seed=seed", "seed=0"),
    ("watermark", WindowSpec.last_end_us, "last_index", "first_index"),
    ("slack", Workload.batches, "self.arrivals[left:right]", "self.arrivals[left:right][:9]"),
    ("join", Workload.batches, "self.arrivals[left:right]", "self.arrivals[left:right][:9]"),
    ("join", JoinConfig.span, "(0, None)", "(1, None)"),
    ("grouping", GroupingConfig.theta_share, "1 / (", "2 / ("),
    ("grouping", GroupingConfig.times_of, "<=", "<"),
)
"""Room, shared rule, its right words and its wrong ones."""


@cache
def drawn(room: str) -> tuple[Workload, ...]:
    """Return drawn workloads of a room, which end with a flush, with input that matters.

    Some values of room ``slack`` are negative. The router of room ``grouping`` is ``tag``, and some
    streams have more keys than its summary has counters.
    """
    number = profiles.choose(CASES, nightly=20 * CASES)
    found = [each.with_(flush=True) for each in collect(cases_of(room), number, SEED)]
    if room == "slack":
        return tuple(each.with_(arrivals=tuple(map(negate, each.arrivals))) for each in found)
    if room == "grouping":
        found = [each.with_(config={**each.config, "policy": "tag"}) for each in found]
        found += [skewed(seed) for seed in range(number // 10)]
    return tuple(found)


def negate(event: Event) -> Event:
    """Return an arrival, every third one with its value negated."""
    return event if event.seq % 3 else event._replace(value=-event.value)


def skewed(seed: int) -> Workload:
    """Return three windows of a router whose keys are many and skewed."""
    draw = random.Random(seed)
    n = draw.choice([2, 3, 5])
    times_us = tuple((batch, tuple(draw.choices([100, 300], k=n))) for batch in (0, 4))
    config = GroupingConfig(n, times_us=times_us, senders=draw.choice([1, 2]), window_tuples=400)
    ranks = draw.choices(range(300), [1 / (rank + 1) for rank in range(300)], k=1_200)
    events = tuple(
        Event(seq, seq, f"k{(rank + seq // 200) % 300}", seq, float(seq), seq)
        for seq, rank in enumerate(ranks)
    )
    return Workload("grouping", events, config.to_json(), tuple(range(200, 1_200, 200)), seed=seed)


def wrong(room: str, workload: Workload) -> list[str]:
    """Return what the oracle finds in the trace of the Spark side."""
    judged = JUDGED[room]
    return judged.wrong(workload.to_json(), plain_steps(judged.run(workload)))


@pytest.mark.parametrize("room", JUDGED)
def test_the_spark_side_keeps_its_promise_by_the_oracle(room: str) -> None:
    reached = Counter[str]()
    for workload in drawn(room):
        steps = plain_steps(JUDGED[room].run(workload))
        assert JUDGED[room].wrong(workload.to_json(), steps) == []
        reached.update({kind: len(found) for kind, found in steps.items()})
    missing = [kind for kind in JUDGED[room].needed if not reached[kind]]
    assert not missing, "undetermined"


@pytest.mark.parametrize(
    ("room", "rule", "right", "wrong_words"),
    MISTAKES,
    ids=[f"{each[0]} {each[3]}" for each in MISTAKES],
)
def test_a_mistake_on_which_model_and_spark_agree_is_noticed(
    monkeypatch: pytest.MonkeyPatch, room: str, rule: Any, right: str, wrong_words: str
) -> None:
    function: Any = rule.fget if isinstance(rule, property) else rule
    workloads = drawn(room)
    Mistake(function, right, wrong_words).plant(monkeypatch)
    noticed = list(islice((each for each in workloads if wrong(room, each)), 3))
    assert noticed
    of_room = find_room(room)
    for workload in noticed:
        expected, found = of_room.reference()(workload), JUDGED[room].run(workload)
        compared = of_room.compare(workload, expected, found, of_room.in_process_step_types)
        assert not compared.sentences, "the comparison of model and Spark notices it, too"
