"""Bounds of docs/grouping.md on the model, and what instances keep between micro-batches.

For promises about probabilities, keys are drawn independently
(``straggler/rooms/grouping/draws.py``).
"""

from dataclasses import replace
from itertools import product
from math import log2, sqrt
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from model.checking.claims import Outcome
from model.grouping import balance, balance_claims, run
from model.grouping.evidence import evidence_of
from properties import profiles
from spark_impl.grouping.instances import finish_work
from spark_impl.grouping.reports import MicroBatch, Report
from spark_impl.grouping.store import INSTANCE as WORKED
from spark_impl.grouping.store import GroupingStore, decode_table, encode_table
from spark_impl.runtime.storage import Location, locate
from straggler.rooms.grouping.draws import Draws

FAILURE = 1e-3
"""Probability that a confidence limit of a mean is wrong."""


# ------------------------------------------------------------------------------ promise 5: growth

SIZES = (4, 8, 16, 32, 64, 128)
EACH = 100
"""Tuples of a window, for each instance."""
TOLERANCE = 0.1
"""Largest change of rho from the shortest to the longest window of a sweep."""


def drawn(n: int, policy: str = "tag", exponent: float = 1.0) -> Draws:
    """Return streams with hot keys; half of the instances are ten times slower."""
    keys = profiles.choose(1_000, nightly=5_000)
    return Draws(
        n,
        policy,
        slow=n // 2,
        exponent=exponent,
        keys=keys,
        window_tuples=profiles.choose(2, nightly=4) * EACH * n,
        windows=profiles.choose(2, nightly=3),
    )


DAILY = ((4, 1.0), (16, 0.0), (128, 1.0))
"""Sizes and exponents of every day; the others come at night."""


def nightly(*values: object) -> Any:
    """Return parameters of a night."""
    return pytest.param(*values, marks=pytest.mark.long)


@pytest.mark.parametrize(
    ("n", "exponent"),
    [*DAILY, *(nightly(*each) for each in product(SIZES, (0.0, 1.0)) if each not in DAILY)],
)
def test_the_makespan_is_that_of_a_fluid_but_for_two_tuples(
    seed: int, n: int, exponent: float
) -> None:
    draws = drawn(n, exponent=exponent)
    assert balance.tuples_above(draws.times_us) == 2
    workload = draws.workload(seed)
    trace = run(workload)
    verdict = balance_claims.check_closeness(workload, trace)
    assert verdict.outcome is Outcome.HOLDS, (verdict.sentence, verdict.witness)
    # The cost of candidates grows with n, up to 0.04: instances have fewer light keys each.
    for each in balance_claims.closeness(workload, trace):
        least_us = sum(each.counts) / balance.total_speed(each.times_us)
        assert each.fluid_us < 1.05 * least_us


def test_the_printed_tag_keeps_the_promise_on_equal_instances_alone(seed: int) -> None:
    for slow, expected in ((0, Outcome.HOLDS), (2, Outcome.BROKEN)):
        workload = replace(drawn(4, "tag-literal"), slow=slow).workload(seed)
        verdict = balance_claims.check_closeness(workload, run(workload))
        assert verdict.outcome is expected, verdict


def rho_of(draws: Draws, seed: int) -> float:
    """Return the rho of window 1."""
    workload = draws.workload(seed)
    seen = evidence_of(workload, run(workload))
    return balance.rho(seen.counts(seen.windows[1]), draws.times_us)


def test_rho_does_not_grow_with_tuples(seed: int) -> None:
    # In shorter windows a large key may be taken for a light one, and be left with two slow ones.
    sizes = [2**e for e in range(10, profiles.choose(14, nightly=17))]
    found = []
    for repetition in range(seed, seed + profiles.choose(5, nightly=10)):
        rhos = [rho_of(Draws(16, slow=8, window_tuples=m), repetition) for m in sizes]
        found.append(stats.linregress([log2(m) for m in sizes], rhos).slope)
    wide = stats.t.isf(FAILURE, len(found) - 1) * stdev(found) / sqrt(len(found))
    upper = fmean(found) + wide
    growth = upper * (len(sizes) - 1)
    assert growth < TOLERANCE, f"rho grows by up to {growth:g} (failure {FAILURE:g})"


# ------------------------------------------------------------------------- states of instances

INSTANCES = 2


@given(st.lists(st.none() | st.integers(0, 5), min_size=2, max_size=6).filter(lambda x: None in x))
def test_a_state_survives_micro_batches_without_work(
    tmp_path_factory: pytest.TempPathFactory, batches: list[int | None]
) -> None:
    """``batches`` are the tuples of each instance in a micro-batch, ``None`` without any work."""
    store = GroupingStore(locate(tmp_path_factory.mktemp("stream")))
    held, before = None, dict[int, Location]()
    for number, tuples in enumerate(batches):
        told, spent = dict[int, Report](), [(0, 0)] * INSTANCES
        if tuples is not None:
            held, spent = pa.table({"sum": [number, tuples]}), [(tuples, 7)] * INSTANCES
            for instance in range(INSTANCES):
                file = store.save(WORKED, number, instance, encode_table(held))
                told[instance] = Report(file, WORKED, instance, tuples, 7)
        reports: Any = SimpleNamespace(
            is_work_expected=tuples is not None, of=lambda _, told=told: told
        )
        batch = MicroBatch(number, 0, store, before, reports)
        found, files = finish_work(batch, INSTANCES, INSTANCES * (tuples or 0))
        assert found == spent
        before = dict(enumerate(files))
        assert [decode_table(store.load(WORKED, file)) for file in files] == [held] * len(files)
