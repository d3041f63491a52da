"""Promises of docs/grouping.md on the model.

Arrivals come from simulated networks (``straggler/strategies/grouping.py``). For promises about
probabilities, keys are drawn independently (``straggler/rooms/grouping/draws.py``).
"""

from dataclasses import replace
from itertools import product
from math import log2
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.grouping import balance, balance_claims
from model.vocabulary import GroupingConfig, System, Workload
from model.vocabulary.grouping import POLICIES, Answer, Rejected
from properties import profiles
from properties.promised import Reached, promised
from straggler.judging.judge import broken_sentences
from straggler.rooms.grouping.draws import (
    Draws,
    limits,
    slope,
    stream,
    weighted,
    with_more_rho,
)
from straggler.strategies.grouping import TIMES_US, cases
from straggler.strategies.streams import SEEDS

DELTA = 1e-9
"""Probability that the upper bound fails in any window."""
FAILURE = 1e-3
"""Probability that a confidence limit of a mean is wrong."""


def seeds(seed: int) -> range:
    """Return the seeds of repetitions."""
    return range(seed, seed + profiles.choose(5, nightly=10))


@given(case=cases(), policy=st.sampled_from(POLICIES), seed=SEEDS)
def test_answers_do_not_depend_on_routes(
    system: System, case: Workload, policy: str, seed: int
) -> None:
    other = case.with_(config={**case.config, "policy": policy, "hash_seed": seed, "senders": 4})
    one, another = system(case), system(other)
    assert one.of(Answer) == another.of(Answer)
    assert one.of(Rejected) == another.of(Rejected)


# ------------------------------------------------------------------------------ promise 5: bounds


@st.composite
def drawn_streams(draw: st.DrawFn) -> tuple[Workload, dict[str, int]]:
    """Draw keys with weights, and one router for which the bound holds."""
    n = draw(st.integers(1, 6))
    heavy = draw(st.lists(st.integers(1, 99), min_size=1, max_size=8))
    light = draw(st.integers(0, 60))
    weights = {f"k{number}": weight for number, weight in enumerate([*heavy, *[1] * light])}
    policy = draw(st.sampled_from(["tag", "tag", "tag-literal", "pkg", "shuffle"]))
    by_time = policy.startswith("tag")
    times_us = tuple(draw(st.lists(TIMES_US, min_size=n, max_size=n))) if by_time else (1,) * n
    window_tuples = draw(st.sampled_from([50, 500, 1_500]))
    config = GroupingConfig(
        n, policy, ((0, times_us),), window_tuples=window_tuples, hash_seed=draw(SEEDS)
    )
    # Other policies keep their loads; the bound holds for loads that start at 0.
    keys = weighted(weights, window_tuples * (2 if by_time else 1), draw(SEEDS))
    return stream(keys, config), weights


@promised("unequal times", "less than all at the slowest", "near to the least", examples=20)
@given(case=drawn_streams())
def test_work_is_within_the_bounds(
    system: System, reached: Reached, case: tuple[Workload, dict[str, int]]
) -> None:
    workload, weights = case
    trace = system(workload)
    broken = broken_sentences(balance_claims.check(workload, trace, weights, DELTA))
    assert not broken, "\n".join(broken)
    # The bound says something: less than all tuples at the slowest instance, even less than twice
    # what candidates allow.
    for each in balance_claims.balances(workload, trace, weights, DELTA):
        if len(set(each.times_us)) > 1:
            most = sum(each.counts) * max(each.times_us)
            reached.add({"unequal times": 1, "less than all at the slowest": each.bound < most})
            reached.add({"near to the least": each.bound < 2 * each.least_work})


# ------------------------------------------------------------------------------ promise 5: growth

SIZES = (4, 8, 16, 32, 64, 128)
EACH = 100
"""Tuples of a window, for each instance."""
TOLERANCE = 0.1
"""Largest change of rho from the shortest to the longest window of a sweep."""
GROWTH = TOLERANCE / (SIZES[-1] - SIZES[0])
"""Growth of rho per instance that the tolerance allows over all sizes."""


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
    system: System, seed: int, n: int, exponent: float
) -> None:
    draws = drawn(n, exponent=exponent)
    assert balance.tuples_above(draws.times_us) == 2
    workload = draws.workload(seed)
    trace = system(workload)
    verdict = balance_claims.check_closeness(workload, trace)
    assert verdict.outcome is Outcome.HOLDS, (verdict.sentence, verdict.witness)
    # The cost of candidates grows with n, up to 0.04: instances have fewer light keys each.
    for each in balance_claims.closeness(workload, trace):
        assert each.rho_of_candidates < 0.05


@pytest.mark.parametrize("n", [16, *map(nightly, (32, 64, 128))])
def test_a_planted_growth_and_other_policies_are_further_from_a_fluid(
    system: System, seed: int, n: int
) -> None:
    workload = drawn(n).workload(seed)
    planted = with_more_rho(workload, system(workload), 0.02 * log2(n))
    assert balance_claims.check_closeness(workload, planted).outcome is Outcome.BROKEN
    for policy in ("key", "pkg", "tag-literal"):
        workload = drawn(n, policy).workload(seed)
        verdict = balance_claims.check_closeness(workload, system(workload))
        assert verdict.outcome is Outcome.BROKEN, (policy, verdict.sentence)


def test_two_choices_do_grow_with_instances(system: System, seed: int) -> None:
    # Half of the tuples of Zipf's first key go to the same instance.
    rhos = {
        n: Draws(n, "pkg", slow=n // 2, window_tuples=EACH * n).rho(system, seed) for n in SIZES
    }
    assert slope(list(rhos), list(rhos.values())) > 100 * GROWTH


def test_rho_does_not_grow_with_tuples(system: System, seed: int) -> None:
    # In shorter windows a large key may be taken for a light one, and be left with two slow ones.
    sizes = [2**e for e in range(10, profiles.choose(14, nightly=17))]
    found = []
    for repetition in seeds(seed):
        rhos = [Draws(16, slow=8, window_tuples=m).rho(system, repetition) for m in sizes]
        found.append(slope([log2(m) for m in sizes], rhos))
    _, upper = limits(found, FAILURE)
    growth = upper * (len(sizes) - 1)
    assert growth < TOLERANCE, f"rho grows by up to {growth:g} (failure {FAILURE:g})"


def test_before_anything_is_known_to_be_heavy_rho_is_large(system: System, seed: int) -> None:
    # This is why the promise begins with window 1.
    case = Draws(64, slow=32, exponent=1.5, window_tuples=EACH * 64)
    assert case.rho(system, seed, window=0) > 2
    assert case.rho(system, seed) < 2.5 * case.tuple_more


# ----------------------------------------------------------------------- read literally, refuted


@pytest.mark.parametrize("n", [16, *map(nightly, (4, 64))])
def test_uniform_candidates_cannot_balance_unequal_workers(
    system: System, seed: int, n: int
) -> None:
    window_tuples = profiles.choose(2_000, nightly=4_000)
    case = Draws(n, slow=n // 2, exponent=0.0, keys=5_000, window_tuples=window_tuples)
    theory = balance.rho_of_uniform_pairs(n, n // 2, case.times_slower, light_share=1.0)
    literal = [replace(case, policy="tag-literal").rho(system, s) for s in seeds(seed)]
    corrected = [case.rho(system, s) for s in seeds(seed)]
    lower, _ = limits(literal, FAILURE)
    # The formula is for many keys; at most one for each tuple of a window occurs here.
    assert lower + 1 > 0.8 * (theory + 1), (n, theory, literal)
    assert max(corrected) < 2.5 * case.tuple_more, corrected


@pytest.mark.parametrize(
    ("exponent", "slow"),
    [(0.5, 4), (1.5, 8), *(nightly(*each) for each in product((1.0, 2.0), (4, 8)))],
)
def test_the_corrected_reading_is_nowhere_worse(
    system: System, seed: int, exponent: float, slow: int
) -> None:
    each = profiles.choose(1, nightly=4) * EACH
    case = Draws(16, slow=slow, exponent=exponent, window_tuples=each * 16)
    more = [
        case.rho(system, s) - replace(case, policy="tag-literal").rho(system, s)
        for s in seeds(seed)
    ]
    # One or two tuples more at the slowest instance do not count as a difference.
    assert max(more) < 2.5 * case.tuple_more, more
