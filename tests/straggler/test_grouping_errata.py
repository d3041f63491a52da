"""Errata of room ``grouping``: their counterexamples by hand, and rules that are not corrected."""

from collections import Counter
from itertools import product

import pytest

from model.checking.claims import Outcome
from model.grouping import balance
from model.grouping.variants import VARIANTS
from straggler.rooms.grouping import balance_errata, errata
from straggler.rooms.grouping.balance_errata import CREWS, PAIRS, Pair, Spread
from straggler.rooms.grouping.errata import ERRATA

NAMES = (
    "uniform-candidates",
    "hidden-makespan",
    "way-as-work",
    "one-candidate",
    "memory",
    "counters-rounded-down",
)


def test_the_errata_are_complete() -> None:
    assert tuple(each.name for each in ERRATA) == NAMES


def test_candidates_are_tried_from_small_to_large() -> None:
    assert [crew.n for crew in CREWS] == sorted(crew.n for crew in CREWS)
    assert [pair.m for pair in PAIRS] == sorted(pair.m for pair in PAIRS)
    lengths = [len(keys) for keys, _ in errata._streams()]
    assert lengths == sorted(lengths)


# -------------------------------------------------------------------------------------- balance


@pytest.mark.parametrize("crew", [each for each in CREWS if each.n in (3, 8)])
def test_uniform_candidates_are_as_bad_as_theory_says(crew: balance_errata.Crew) -> None:
    slow = crew.n - crew.n // 2
    theory = balance.rho_of_uniform_pairs(crew.n, slow, crew.times_slower, light_share=1.0)
    # A thousand keys: some standard deviations of how many have slow candidates alone.
    assert crew.rho("tag-literal") + 1 > 0.85 * (theory + 1)


def test_the_hidden_makespan_by_hand() -> None:
    found = Spread((0, 1, 1, 1, 1), (1, 10, 10, 10, 10))
    lines = balance_errata.hidden().counterexample
    assert lines[0] == (
        "Instances that need 1, 10, 10, 10 and 10 us a tuple get 0, 1, 1, 1 and 1 tuples."
    )
    assert balance.imbalance(*found) == 10 / 8 - 1
    # All four to the fast one.
    assert (found.makespan_us, Spread((4, 0, 0, 0, 0), found.times_us).makespan_us) == (10, 4)


def greedy(m: int, cost: tuple[int, int], latency_us: tuple[int, ...]) -> list[int]:
    """Route by least load; among equals by the shorter distance, then the lower index."""
    loads, counts = [0, 0], [0, 0]
    for _ in range(m):
        at = min((0, 1), key=lambda i: (loads[i], latency_us[i], i))
        loads[at] += cost[at]
        counts[at] += 1
    return counts


@pytest.mark.parametrize("m", [1, 4, 12])
def test_ways_as_work_by_hand(m: int) -> None:
    literal = VARIANTS["with_propagation"].make_system()
    for pair in (each for each in PAIRS if each.m == m):
        (a, b), (one, other) = pair.times_us, pair.latency_us
        assert pair.counts(literal) == greedy(m, (a + one, b + other), pair.latency_us)


def test_a_tuple_more_than_a_fluid_is_the_limit() -> None:
    pair = Pair(4, (0, 0), (1, 1))
    assert pair.is_within([3, 1])
    assert not pair.is_within([4, 0])


# ----------------------------------------------------------------------------------------- keys


def test_rounding_down_is_right_where_nothing_is_rounded() -> None:
    for keys in product("abc", repeat=6):
        for eps in (0.25, 0.5):
            assert not errata._forgotten("".join(keys), eps, int)


def test_the_forgotten_key_by_hand() -> None:
    lines = errata.counters().counterexample
    assert lines[0].startswith("Tuples of the keys a a b, one per micro-batch; eps = 0.6")
    # One counter: a 1, a 2, then b takes it over and counts 3.
    assert "the summary has b: 3; a has 2 of 3 tuples" in lines[1]


def test_places_of_keys_one_by_one_are_counted_from_routes() -> None:
    case = errata._one_by_one(4, 2)
    assert Counter(event.key for event in case.arrivals) == {"k0": 64, "k1": 64}
    assert len(case.cuts) == 3


def test_a_rule_that_is_not_corrected_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    for verdict in (
        balance_errata._bounded(CREWS[:14], "pkg"),
        errata._several(errata.HOT, "tag-literal"),
    ):
        assert verdict.outcome is Outcome.BROKEN
    monkeypatch.setattr(errata, "ceil", int)
    findings = errata.counters()
    assert findings.same.outcome is findings.scope.outcome is Outcome.BROKEN
    wrong = VARIANTS["with_propagation"].make_system()
    monkeypatch.setattr(balance_errata, "make_system", lambda: wrong)
    findings = balance_errata.propagation()
    assert findings.same.outcome is findings.scope.outcome is Outcome.BROKEN
