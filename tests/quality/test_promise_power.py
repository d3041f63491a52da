"""Power of the promises' own oracles, which share nothing with model or Spark.

A mistake in a rule that both ask for keeps them in agreement, and the oracles notice it. Operators
that balance or wait badly break their promise, and few windows say so. Spark's operators run in
process here; ``test_promises_spark.py`` plants bugs on Spark.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from math import log2
from typing import Any

import numpy as np
import pytest

from model.grouping.balance import tuples_above
from model.grouping.balance_claims import closeness
from model.vocabulary import (
    Event,
    GroupingConfig,
    JoinConfig,
    Trace,
    WindowSpec,
    Workload,
    hashing,
)
from model.vocabulary.join import ALWAYS
from properties.oracles.coverage import first_answers, list_low_coverage
from properties.oracles.join import compare_pairs_with_nested_loop
from properties.oracles.promises import unbalanced
from properties.oracles.router import Excess, Router
from properties.packs import (
    list_wrong,
    list_wrong_answers,
    list_wrong_routes,
    plain_steps,
    routes_of,
)
from sim.kernel.run import TimedRun
from spark_impl.grouping import run_in_process as run_grouping
from spark_impl.slack import SLACK, control_laws
from spark_impl.windows.system import run_in_process as run_windows
from straggler.rooms import find_room
from straggler.strategies import clusters, queries
from straggler.strategies.examples import cases_of, collect
from straggler.strategies.hot_keys import skewed
from tests.quality.planting import Planted

SEED = 3
CASES = 60
"""Drawn workloads of a room."""

# ------------------------------------------------------------------------------ rules of both sides

LISTED: Mapping[str, Callable[[Workload, Trace], list[str]]] = {
    "slack": list_wrong_answers,
    "watermark": list_wrong_answers,
    "join": lambda workload, trace: list_wrong(compare_pairs_with_nested_loop, workload, trace),
    "grouping": list_wrong_routes,
}
"""Oracle of the promise of a room."""


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
        Planted(
            JoinConfig.spans,
            lambda right, self: {
                name: (max(1, right(self).get(name, ALWAYS)[0]), None) for name, _ in self.queries
            },
        ),
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
    """Return drawn workloads of a room, which end with a flush."""
    if room == "grouping":
        return tuple(skewed("tag", seed) for seed in range(CASES // 10))
    return tuple(each.with_(flush=True) for each in collect(cases_of(room), CASES, SEED))


@pytest.mark.parametrize("name", BUGS)
def test_a_mistake_on_which_model_and_spark_agree_is_noticed(name: str) -> None:
    room, bug = BUGS[name]
    found = find_room(room)
    for workload in drawn(room):
        with bug.in_force():
            expected, trace = found.reference()(workload), found.in_process()(workload)
            compared = found.compare(workload, expected, trace, found.in_process_step_types, ())
        assert not compared.sentences, "the comparison of model and Spark notices it, too"
        if LISTED[room](workload, trace):
            assert LISTED[room](workload, found.in_process()(workload)) == []
            return
    pytest.fail("no oracle notices the mistake")


# ---------------------------------------------------------------------------------------- coverage

LAWS = (
    (0.95, "conformal"),
    *(
        pytest.param(*each, marks=pytest.mark.long)
        for each in ((0.9, "pd"), (0.9, "conformal"), (None, "conformal"))
    ),
)


@cache
def long_stream(share: float | None, control: str) -> Workload:
    """Draw a long stream of exchangeable tuples for a query."""
    (config,) = collect(queries.coverage_queries(share, control), 1, SEED)
    (case,) = collect(queries.exchangeable_cases(config), 1, SEED)
    room = find_room("slack")
    run: TimedRun = room.timed.simulate_plan(case.plan, config.to_json(), case.seed)
    return run.workload


def judged(workload: Workload) -> list[str]:
    """Judge the first answers of Spark's operators."""
    plain = workload.to_json()
    answers = first_answers(plain, plain_steps(run_windows(SLACK, workload)))
    return list_low_coverage(plain, answers)


HALF_OF_THE_SLACK = Planted(
    control_laws.slack_us,
    lambda right, *given: np.floor(right(*given) / 2).astype(np.int64),
)
NO_SLACK = Planted(
    control_laws.slack_us, lambda right, *given: np.zeros_like(np.asarray(right(*given)))
)
THREE_TIMES = Planted(
    control_laws.conformal_path,
    lambda right, config, *given: right(replace(config, delta=3 * config.delta), *given),
)
"""Half as many windows again as are allowed are short."""


@pytest.mark.parametrize(("share", "control"), LAWS)
def test_operators_that_wait_too_little_break_coverage(share: float | None, control: str) -> None:
    workload = long_stream(share, control)
    assert judged(workload) == []
    said = "too many are short" if control == "conformal" else "the mean coverage of"
    for waits_less in (HALF_OF_THE_SLACK, NO_SLACK):
        with waits_less.in_force():
            assert said in judged(workload)[0]
    if share == 0.95:
        with THREE_TIMES.in_force():
            assert judged(workload)


@pytest.mark.parametrize(("share", "control"), LAWS[:2])
def test_few_windows_leave_coverage_undetermined(share: float, control: str) -> None:
    workload = long_stream(share, control)
    short = workload.with_(arrivals=workload.arrivals[: len(workload.arrivals) // 20], cuts=())
    found = judged(short)
    assert found
    assert all("undetermined" in each for each in found)


# ----------------------------------------------------------------------------------- imbalance


@pytest.mark.parametrize("n", [2, 8, *(pytest.param(n, marks=pytest.mark.long) for n in (4, 16))])
def test_the_fluid_by_definition_is_that_of_the_model(n: int) -> None:
    (config,) = collect(queries.balanced_routers(n, [1]), 1, SEED)
    (case,) = collect(clusters.cases(queries.router_shape(config)), 1, SEED)
    run = find_room("grouping").timed.simulate_plan(case.plan, config.to_json(), case.seed)
    router = Router(run.workload.to_json())
    found, expected = router.excesses(routes_of(run.trace)), closeness(run.workload, run.trace)
    assert [each.above for each in found] == pytest.approx([each.above for each in expected])
    most = [1 if n == 2 else tuples_above(each.times_us) for each in expected]
    assert [each.allowed for each in found] == most
    assert found == router.excesses(routes_of(run_grouping(run.workload)))


def test_imbalance_that_grows_with_instances_is_noticed() -> None:
    steady = {n: [Excess(1.0, 2)] * 4 for n in (4, 8, 16)}
    assert unbalanced(steady) == []
    growing = {n: [Excess(0.6 * (log2(n) - 2) ** 2, 3)] * 4 for n in steady}
    (sentence,) = unbalanced(growing)
    assert "imbalance grows from 0.60 tuples above a fluid with 8 instances" in sentence
    (sentence,) = unbalanced({16: [Excess(2.5, 2)]})
    assert "16 instances are 2.50 tuples above a fluid" in sentence
