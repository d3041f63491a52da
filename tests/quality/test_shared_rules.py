"""Each headline promise has an oracle of its own, which shares nothing with model or Spark.

A mistake in a rule that both ask for keeps them in agreement. The oracles of
:mod:`properties.oracles.promises` notice it: here on Spark's operators in process, and in
``properties/test_promises.py`` on Spark itself.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
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
from tests.quality.planting import Planted

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


def _nine(right: Any, self: Workload) -> Iterator[tuple[Event, ...]]:
    return (events[:9] for events in right(self))


BUGS: Mapping[str, tuple[str, Planted]] = {
    "a key goes to the next task": (
        "slack",
        Planted(hashing.task_of, lambda right, key, n: (right(key, n) + 1) % n),
    ),
    "hashes differ in the last bit": (
        "watermark",
        Planted(hashing.stable_hash, lambda right, *given, **named: right(*given, **named) ^ 1),
    ),
    "an identity is forgotten with the first of its windows": (
        "watermark",
        Planted(
            WindowSpec.last_end_us,
            lambda _right, self, time_us: self.end_us(self.first_index(time_us)),
        ),
    ),
    "a micro-batch has nine arrivals at most": ("slack", Planted(Workload.batches, _nine)),
    "an epoch has nine arrivals at most": ("join", Planted(Workload.batches, _nine)),
    "queries begin with epoch 1": (
        "join",
        Planted(JoinConfig.span, lambda right, *given: (max(1, right(*given)[0]), None)),
    ),
    "a key is heavy above twice the share": (
        "grouping",
        Planted(GroupingConfig.theta_share, lambda right, self: 2 * right(self)),
    ),
    "times hold a micro-batch later": (
        "grouping",
        Planted(GroupingConfig.times_of, lambda right, self, batch: right(self, batch - 1)),
    ),
}
"""Room and bug of a rule that model and Spark share."""


@cache
def drawn(room: str) -> tuple[Workload, ...]:
    """Return drawn workloads of a room, which end with a flush, with input that matters.

    Some values of room ``slack`` are negative. The router of room ``grouping`` is ``tag``, and some
    streams have more keys than its summary has counters.
    """
    found = [each.with_(flush=True) for each in collect(cases_of(room), CASES, SEED)]
    if room == "slack":
        return tuple(each.with_(arrivals=tuple(map(negate, each.arrivals))) for each in found)
    if room == "grouping":
        found = [each.with_(config={**each.config, "policy": "tag"}) for each in found]
        found += [skewed(seed) for seed in range(CASES // 10)]
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


@pytest.mark.parametrize("room", JUDGED)
def test_the_spark_side_keeps_its_promise_by_the_oracle(room: str) -> None:
    reached = Counter[str]()
    for workload in drawn(room):
        steps = plain_steps(JUDGED[room].run(workload))
        assert JUDGED[room].wrong(workload.to_json(), steps) == []
        reached.update({kind: len(found) for kind, found in steps.items()})
    missing = [kind for kind in JUDGED[room].needed if not reached[kind]]
    assert not missing, "undetermined"


@pytest.mark.parametrize("name", BUGS)
def test_a_mistake_on_which_model_and_spark_agree_is_noticed(name: str) -> None:
    room, bug = BUGS[name]
    found, judged = find_room(room), JUDGED[room]
    for workload in drawn(room):
        with bug.in_force():
            expected, trace = found.reference()(workload), judged.run(workload)
            compared = found.compare(workload, expected, trace, found.in_process_step_types)
        assert not compared.sentences, "the comparison of model and Spark notices it, too"
        if judged.wrong(workload.to_json(), plain_steps(trace)):
            return
    pytest.fail("no oracle notices the mistake")
