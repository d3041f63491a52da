"""Power of two promises: operators that balance or wait badly break them, and few windows say so.

``test_promises_spark.py`` plants the same bugs on Spark; here Spark's operators run in process.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import log2
from typing import Any

import numpy as np
import pytest

from model.grouping.balance import tuples_above
from model.grouping.balance_claims import closeness
from model.vocabulary import Trace, Workload
from model.vocabulary.grouping import Route
from properties.oracles.coverage import CONFIDENCE, interval
from properties.oracles.promises import unbalanced
from properties.oracles.router import Excess, Router
from properties.packs import list_low_coverage
from sim.sweep.statistics import clopper_pearson
from spark_impl.grouping import run_in_process as run_grouping
from spark_impl.slack import control_laws
from spark_impl.slack.query import SLACK
from spark_impl.windows.system import run_in_process as run_windows
from straggler.rooms import find_room
from straggler.strategies import clusters, queries
from straggler.strategies.examples import collect

SEED = 3
LAWS = ((0.9, "conformal"), (0.95, "conformal"), (None, "conformal"), (0.9, "pd"))


@cache
def long_stream(share: float | None, control: str) -> Workload:
    """Draw a long stream of exchangeable tuples for a query."""
    (config,) = collect(queries.coverage_queries(share, control), 1, SEED)
    (case,) = collect(queries.exchangeable_cases(config), 1, SEED)
    return find_room("slack").simulate_plan(case.plan, config.to_json(), case.seed).workload


def judged(workload: Workload) -> list[str]:
    """Judge the first answers of Spark's operators."""
    return list_low_coverage(workload, run_windows(SLACK, workload))


def waits_for(part: float) -> Callable[..., Any]:
    """Return a law that waits for a part of what the right one waits for."""
    right = control_laws.slack_us
    return lambda config, alpha, longest_us: (right(config, alpha, longest_us) * part).astype(
        np.int64
    )


@pytest.mark.parametrize(("share", "control"), LAWS)
def test_operators_that_wait_too_little_break_coverage(
    monkeypatch: pytest.MonkeyPatch, share: float | None, control: str
) -> None:
    workload = long_stream(share, control)
    assert judged(workload) == []
    said = "too many are short" if control == "conformal" else "the mean coverage of"
    for part in (0.0, 0.5):
        with monkeypatch.context() as planted:
            planted.setattr(control_laws, "slack_us", waits_for(part))
            (first, *_) = judged(workload)
            assert said in first


def test_fifteen_percent_short_do_not_pass_for_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = long_stream(0.95, "conformal")
    right = control_laws.conformal_path
    monkeypatch.setattr(
        control_laws,
        "conformal_path",
        lambda config, alpha, miss: right(replace(config, delta=3 * config.delta), alpha, miss),
    )
    assert judged(workload)


@pytest.mark.parametrize("control", ["conformal", "pd"])
def test_few_windows_leave_coverage_undetermined(control: str) -> None:
    workload = long_stream(0.9, control)
    short = workload.with_(arrivals=workload.arrivals[: len(workload.arrivals) // 20], cuts=())
    found = judged(short)
    assert found
    assert all("undetermined" in each for each in found)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (10, 10), (3, 40), (38, 400)])
def test_the_interval_is_that_of_scipy(successes: int, trials: int) -> None:
    expected = clopper_pearson(successes, trials, CONFIDENCE)
    assert interval(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-9)


# ----------------------------------------------------------------------------------- imbalance


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_the_fluid_by_definition_is_that_of_the_model(n: int) -> None:
    (config,) = collect(queries.balanced_routers(n, [1]), 1, SEED)
    (case,) = collect(clusters.cases(queries.router_shape(config)), 1, SEED)
    run = find_room("grouping").simulate_plan(case.plan, config.to_json(), case.seed)
    router = Router(run.workload.to_json())
    found, expected = router.excesses(routes_of(run.trace)), closeness(run.workload, run.trace)
    assert [each.above for each in found] == pytest.approx([each.above for each in expected])
    most = [1 if n == 2 else tuples_above(each.times_us) for each in expected]
    assert [each.allowed for each in found] == most
    assert found == router.excesses(routes_of(run_grouping(run.workload)))


def routes_of(trace: Trace) -> dict[int, int]:
    return {step.seq: step.instance for step in trace.of(Route)}


def test_imbalance_that_grows_with_instances_is_noticed() -> None:
    steady = {n: [Excess(1.0, 2)] * 4 for n in (4, 8, 16)}
    assert unbalanced(steady) == []
    growing = {n: [Excess(0.6 * (log2(n) - 2) ** 2, 3)] * 4 for n in steady}
    (sentence,) = unbalanced(growing)
    assert "imbalance grows from 0.60 tuples above a fluid with 8 instances" in sentence
    (sentence,) = unbalanced({16: [Excess(2.5, 2)]})
    assert "16 instances are 2.50 tuples above a fluid" in sentence
