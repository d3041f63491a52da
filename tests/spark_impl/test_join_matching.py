"""Stores and the matches that they find, against a comparison of all pairs."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from model.vocabulary import JoinConfig
from model.vocabulary.join import And, Band, Equi, Ineq, Predicate, R, S
from spark_impl.join.matching import (
    FreePredicate,
    Pairs,
    Tuples,
    holds,
    to_arrow,
    tuples_from_arrow,
)
from spark_impl.join.side import Matcher, Side
from spark_impl.runtime.storage import InputProblem
from tests.spark_impl.join_cases import PREDICATES

PARTS: tuple[Predicate, ...] = (
    *PREDICATES,
    Band("value", 0.1),
    And((Ineq("value", "<=", "value"), And((Band("value", 2.0),)))),
)


def some(draw: np.random.Generator, count: int, first: int = 0) -> Tuples:
    rank = np.arange(first, first + count)
    return Tuples(
        rank,
        rank * 10,
        rank // 3 + draw.integers(0, 20, count),
        draw.integers(-20, 20, count) / 10,
        np.array([f"k{n}" for n in draw.integers(0, 12, count)], dtype=object),
    )


def expected(config: JoinConfig, r: Tuples, s: Tuples) -> list[Counter[tuple[int, int]]]:
    one, other = np.repeat(np.arange(len(r)), len(s)), np.tile(np.arange(len(s)), len(r))
    rs, ss = r.take(one), s.take(other)
    near = np.abs(rs.ts - ss.ts) <= config.window_us
    return [
        Counter(zip(rs.source_id[good].tolist(), ss.source_id[good].tolist(), strict=True))
        for _, predicate in config.queries
        for good in [near & holds(predicate, rs, ss)]
    ]


def counted(found: list[Pairs]) -> list[Counter[tuple[int, int]]]:
    return [Counter(zip(p.r_id.tolist(), p.s_id.tolist(), strict=True)) for p in found]


@pytest.mark.parametrize("window_us", [0, 7, 10**18, (1 << 63) - 1])
@pytest.mark.parametrize("stream", [R, S])
def test_a_store_finds_every_match(window_us: int, stream: str) -> None:
    draw = np.random.default_rng(window_us % 97)
    queries = tuple((f"q{n}", predicate) for n, predicate in enumerate(PARTS))
    config = JoinConfig(window_us=window_us, queries=queries)
    matcher = Matcher(config)
    side = Side(matcher, stream)
    held = some(draw, 0)
    for step in range(30):
        new = some(draw, int(draw.integers(0, 120)), first=step * 1000)
        side.append(new)
        held = Tuples.concat([held, new])
        if step % 3 == 2:
            count = int(draw.integers(0, 60))
            assert side.send_oldest(count).rank.tolist() == held.rank[:count].tolist()
            held = held.take(slice(count, None))
        if step % 4 == 3:
            horizon = int(np.quantile(held.ts, 0.05))
            assert side.drop_below(horizon) == int((held.ts < horizon).sum())
            held = held.take(held.ts >= horizon)
        assert len(side) == len(held)
        assert side.snapshot().rank.tolist() == held.rank.tolist()
        if len(held):
            assert side.least_ts() == held.ts.min()
        if step % 10 == 9:
            block = some(draw, 10, first=step * 1000)
            r, s = (held, block) if stream == R else (block, held)
            assert counted([each.pairs for each in side.probe(block)]) == expected(config, r, s)
            assert counted(matcher.match(r, s)) == expected(config, r, s)


def test_the_difference_decides_as_it_is_rounded() -> None:
    """Values around the border of the band, where sum and difference round apart."""
    draw = np.random.default_rng(1)
    eps = 0.1
    r_values = np.concatenate([draw.random(200), draw.random(200) * 1e-3, draw.random(200) * 1e6])
    s_values = np.concatenate([r_values + eps, r_values - eps])
    s_values = np.concatenate([s_values, np.nextafter(s_values, 0), np.nextafter(s_values, 9e9)])

    def tuples(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Tuples:
        n = np.arange(len(values))
        return Tuples(n, n, np.zeros(len(n), np.int64), values, np.full(len(n), "a", object))

    config = JoinConfig(window_us=0, queries=(("band", Band("value", eps)),))
    r, s = tuples(r_values), tuples(s_values)
    side = Side(Matcher(config), S)
    side.append(s)
    wanted = Counter(
        (i, j)
        for i, left in enumerate(r_values.tolist())
        for j, right in enumerate(s_values.tolist())
        if abs(left - right) <= eps
    )
    assert counted([each.pairs for each in side.probe(r)]) == [wanted]


def test_a_function_decides_on_columns() -> None:
    config = JoinConfig(window_us=100, queries=(("odd", And()), ("same", Equi("key"))))
    matcher = Matcher(config, {"odd": lambda r, s: (r.rank + s.rank) % 2 == 1})
    draw = np.random.default_rng(3)
    r, s = some(draw, 30), some(draw, 40)
    odd, same = counted(matcher.match(r, s))
    everything, also_same = expected(config, r, s)
    assert odd == Counter({pair: 1 for pair in everything if sum(pair) // 10 % 2 == 1})
    assert same == also_same


RETURNED: dict[str, tuple[Callable[[Tuples, Tuples], object], str]] = {
    "one": (lambda r, s: (r.value > s.value).any(), r"returned bool\w* np\.\w+"),
    "none": (lambda r, s: None, "returned NoneType None"),
    "numbers": (lambda r, s: r.value - s.value, r"an array of float64 of the shape \(9,\)"),
    "positions": (
        lambda r, s: np.flatnonzero(r.value >= s.value),
        r"an array of int64 of the shape \(\d,\)",
    ),
    "a column": (lambda r, s: (r.value > s.value)[:, None], r"of bool of the shape \(9, 1\)"),
    "too few": (lambda r, s: [True], r"returned list \[True\]"),
    "ragged": (lambda r, s: [[True], []], r"returned list \["),
}


@pytest.mark.parametrize(("free", "said"), RETURNED.values(), ids=list(RETURNED))
def test_a_function_that_does_not_decide_is_refused(
    free: Callable[[Tuples, Tuples], object], said: str
) -> None:
    matcher = Matcher(JoinConfig(10, (("mine", And()),)), {"mine": cast("FreePredicate", free)})
    r = replace(some(np.random.default_rng(3), 3), ts=np.zeros(3, np.int64))
    start = "^the function of the query 'mine' has to return 9 truth values, one for each pair; it"
    with pytest.raises(InputProblem, match=f"{start}.* {said}"):
        matcher.match(r, r)


def test_tuples_survive_arrow() -> None:
    tuples = some(np.random.default_rng(4), 25)
    again = tuples_from_arrow(to_arrow(tuples))
    for before, after in zip(tuples.columns(), again.columns(), strict=True):
        assert before.tolist() == after.tolist()


@pytest.mark.parametrize("predicate", [Ineq("key", op, "key") for op in ("<", "<=", ">", ">=")])
def test_keys_compare_by_code_point(predicate: Ineq) -> None:
    keys = np.array(["", "A", "a", "ab", "ä", "\uffff", "\U0001f600"], dtype=object)
    n = np.arange(len(keys))
    tuples = Tuples(n, n, n, n.astype(np.float64), keys)
    r, s = tuples.take(np.repeat(n, len(n))), tuples.take(np.tile(n, len(n)))
    outcome = {"<": r.rank < s.rank, "<=": r.rank <= s.rank, ">": r.rank > s.rank}
    wanted = outcome.get(predicate.op, r.rank >= s.rank)
    assert holds(predicate, r, s).tolist() == wanted.tolist()


def test_a_copy_is_found_by_tuples_that_may_not_have_met_it() -> None:
    draw = np.random.default_rng(5)
    config = JoinConfig(window_us=10**6, queries=(("all", And()),))
    side = Side(Matcher(config), S)
    side.append(some(draw, 9))
    for number in (1, 2):
        side.send_oldest(3, np.repeat(number, 3))
    probing = some(draw, 3)
    seen = np.array([0, 1, 2])

    def met() -> list[set[int]]:
        (found,) = side.probe(probing, seen)
        return [set((found.pairs.s_id[found.at == at] // 10).tolist()) for at in range(3)]

    assert met() == [{*range(9)}, {*range(3, 9)}, {*range(6, 9)}]
    side.release(2)
    assert met() == [{0, 1, 2, 6, 7, 8}, {6, 7, 8}, {6, 7, 8}]
    side.append(some(draw, 2000, first=9))  # moves everything
    assert [len(each) for each in met()] == [2006, 2003, 2003]
    side.release(1)
    assert [len(each) for each in met()] == [2003, 2003, 2003]
    (found,) = side.probe(probing)
    assert set((found.pairs.s_id // 10).tolist()) == {*range(6, 2009)}


def test_keys_are_found_however_far_apart_times_lie() -> None:
    config = JoinConfig(window_us=50, queries=(("same", Equi("key")),))
    side = Side(Matcher(config), S)
    draw = np.random.default_rng(6)
    held = some(draw, 0)
    for step, start_us in enumerate((0, 10**3, 10**9, 5, 10**17, -(10**17))):
        new = some(draw, 300, first=step * 300)
        new = replace(new, ts=new.ts % 100 + start_us)
        side.append(new)
        held = Tuples.concat([held, new])
        assert counted([each.pairs for each in side.probe(new)]) == expected(config, new, held)
