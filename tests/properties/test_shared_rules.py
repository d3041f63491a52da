"""Rules that model and Spark share, held by oracles that ask nothing of ours.

A comparison of model and Spark cannot see a mistake in a rule that both ask for. Each oracle here
states a rule as its page defines it: by search, by counting, or in other arithmetic.
"""

import random
from itertools import product
from math import inf, isfinite

from hypothesis import assume, given
from hypothesis import strategies as st

from model.vocabulary import (
    Event,
    Workload,
    stable_hash,
    task_of,
)
from model.vocabulary.join_load import Limits
from model.vocabulary.script.problems import constant
from model.vocabulary.script.tree import (
    Arithmetic,
    Expression,
    Number,
    Sensor,
    is_constant,
)
from properties.oracles.hashing import xxh64

# ---------------------------------------------------------------------------------------- hashing

TEXTS = st.text(max_size=20) | st.integers(0, 100).map(lambda n: "München, 日本 " * n)


@given(TEXTS, st.integers(0, 1 << 63), st.integers(1, 50))
def test_a_hash_is_xxh64_and_a_task_its_remainder(text: str, seed: int, tasks: int) -> None:
    signed = xxh64(text.encode(), seed)
    signed -= (1 << 64) * (signed >= 1 << 63)
    assert stable_hash(text, seed) == signed
    usual = xxh64(text.encode(), 42)
    usual -= (1 << 64) * (usual >= 1 << 63)
    assert task_of(text, tasks) == next(n for n in range(tasks) if (usual - n) % tasks == 0)


# ------------------------------------------------------------------------------------------- join


def test_limits_of_load_are_in_order_and_a_change_aims_between() -> None:
    allowed = 0
    for tau0, tau1, tau2 in product([n / 8 for n in range(10)], repeat=3):
        good = tau0 > 0 and 2 * tau0 < tau1 and tau1 <= tau2 and tau2 <= 1
        allowed += good
        try:
            limits = Limits(tau0=tau0, tau1=tau1, tau2=tau2)
        except ValueError:
            assert not good
        else:
            assert good
            assert limits.aim + limits.aim == tau1
    assert allowed > 20


# -------------------------------------------------------------------------------------- workloads


@given(st.integers(0, 8), st.lists(st.integers(0, 8), max_size=5))
def test_a_micro_batch_is_what_lies_between_two_cuts(n: int, cuts: list[int]) -> None:
    cuts = sorted(cut for cut in cuts if cut <= n)
    arrivals = tuple(Event(seq, seq, "a", seq, 1.0, seq) for seq in range(n))
    groups: dict[int, list[Event]] = {}
    for event in arrivals:
        groups.setdefault(sum(cut <= event.seq for cut in cuts), []).append(event)
    found = [list(batch) for batch in Workload("slack", arrivals, {}, cuts=tuple(cuts)).batches()]
    assert found == [groups[number] for number in sorted(groups)]


# ----------------------------------------------------------------------------------------- script


def drawn_constant(rng: random.Random, depth: int) -> tuple[Expression, str]:
    """Return an expression of numbers and the same in Python, whose operators are C's."""
    if depth == 0 or rng.random() < 0.2:
        value = rng.choice((0.0, 1.0, 2.0, 0.5, 3.0, 1e300, 7.25))
        return Number(value), repr(value)
    op = rng.choice("+-*/")
    (left, left_text), (right, right_text) = (drawn_constant(rng, depth - 1) for _ in range(2))
    return Arithmetic(op, left, right), f"({left_text} {op} {right_text})"


@given(st.randoms(use_true_random=False), st.integers(1, 5))
def test_numbers_are_computed_as_python_computes_them(rng: random.Random, depth: int) -> None:
    expression, text = drawn_constant(rng, depth)
    assert is_constant(expression)
    assert not is_constant(Arithmetic("+", expression, Sensor("a")))
    try:
        expected = eval(text)
    except ZeroDivisionError:
        # Infinite at that place; what is computed from it may be a number again, or none.
        assume(text.count("/") == 1 and text.startswith("("))
        expected = inf
    if isfinite(expected):
        assert constant(expression) == expected


def test_a_division_by_zero_is_not_finite() -> None:
    assert constant(Arithmetic("/", Number(1), Number(0))) == inf
