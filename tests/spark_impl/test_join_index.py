"""Stores of a chain in process: what their indexes find, and how much they look at for it."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import log2, nan
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary.join import (
    STREAMS,
    And,
    Apart,
    Ineq,
    Predicate,
    R,
    S,
    Where,
)
from spark_impl.join import index
from spark_impl.join.matching import Tuples
from spark_impl.join.side import Matcher, Side
from spark_impl.runtime.arrays import Column, Ints
from tests.sim.join_conditions import (
    CONDITIONS,
    NO_INTEGER,
    TIMES_US,
    WINDOWS_US,
    Holds,
    Row,
    config_of,
    rows,
)


def tuples(rows: Sequence[Row], first: int = 0) -> Tuples:
    """Return rows with numbers from ``first`` on as identities and ranks."""
    numbers = np.arange(first, first + len(rows))
    given = {name: [getattr(row, name) for row in rows] for name in Row._fields}

    def column(name: str, kind: type, missing: object) -> Column:
        return np.array([missing if each is None else each for each in given[name]], kind)

    return Tuples(
        numbers,
        numbers,
        column("ts", np.int64, None),
        column("value", np.float64, None),
        column("key", np.object_, None),
        {
            "x": column("x", np.float64, nan),
            "n": column("n", np.int64, NO_INTEGER),
            "at": column("at", np.int64, NO_INTEGER),
            "word": column("word", np.object_, None),
            "flag": column("flag", np.int8, -1),
        },
    )


PARTS = st.lists(st.sampled_from(CONDITIONS), max_size=3)


@pytest.mark.parametrize("number", range(len(CONDITIONS)))
def test_a_condition_finds_what_a_nested_loop_finds(number: int) -> None:
    for stream in STREAMS:
        look_up(Random(number), stream, CONDITIONS[number : number + 1], probes=9)


@given(st.sampled_from(STREAMS), PARTS, st.integers(0, 1 << 32))
def test_conditions_find_what_a_nested_loop_finds(
    stream: str, parts: list[tuple[Predicate, Holds]], seed: int
) -> None:
    look_up(Random(seed), stream, parts, probes=5)


def look_up(
    draws: Random, stream: str, parts: Sequence[tuple[Predicate, Holds]], probes: int
) -> None:
    """Compare what a store finds, while it grows and shrinks, with a nested loop."""
    predicate = And(tuple(part for part, _ in parts))
    for window_us, short in product(WINDOWS_US, (1, 6)):

        def is_pair(row: Row, probe: Row, window_us: int = window_us) -> bool:
            r, s = (row, probe) if stream == R else (probe, row)
            return abs(r.ts - s.ts) <= window_us and all(means(r, s) for _, means in parts)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(index, "_SHORT", short)
            store = Store(Side(Matcher(config_of(predicate, window_us)), stream), draws)
            for block in range(1, 5):
                store.grow(block)
                store.shrink(block)
                probing = rows(draws, probes)
                seen = draws.choice((None, [draws.randrange(6) for _ in probing]))
                expected = [
                    (at, number)
                    for at, probe in enumerate(probing)
                    for number, row in enumerate(store.rows)
                    if store.is_met(number, None if seen is None else seen[at])
                    if is_pair(row, probe)
                ]
                (found,) = store.side.probe(
                    tuples(probing), None if seen is None else np.array(seen, np.int64)
                )
                ids = found.pairs if stream == R else found.pairs[::-1]
                assert sorted(zip(ids[1].tolist(), ids[0].tolist(), strict=True)) == expected
                assert found.at.tolist() == ids[1].tolist()


class Store:
    """A store beside a list of its rows."""

    def __init__(self, side: Side, draws: Random) -> None:
        self.side = side
        self.rows: list[Row] = []
        self._marks: list[int] = []
        """0: stored; above: a copy of the block with this number; below: gone."""
        self._draws = draws

    def is_met(self, number: int, seen: int | None) -> bool:
        """Return whether a tuple of a block that has seen others meets a row."""
        mark = self._marks[number]
        return mark == 0 or (seen is not None and mark > seen)

    def grow(self, most: int) -> None:
        """Add some rows."""
        new = rows(self._draws, 2 * most)
        self.side.append(tuples(new, len(self.rows)))
        self.rows += new
        self._marks += [0] * len(new)

    def shrink(self, block: int) -> None:
        """Let some rows leave the store, in one of the ways that there are."""
        stored = [number for number, mark in enumerate(self._marks) if mark == 0]
        match self._draws.choice(("stay", "send", "keep copies", "release", "drop")):
            case "send" | "keep copies" as how:
                count = self._draws.randint(0, len(stored))
                left = block if how == "keep copies" else -1
                self.side.send_oldest(count, np.full(count, block) if left > 0 else None)
                for number in stored[:count]:
                    self._marks[number] = left
            case "release":
                one = self._draws.randint(1, block)
                self.side.release(one)
                self._marks = [-1 if mark == one else mark for mark in self._marks]
            case "drop":
                horizon_us = self._draws.choice(TIMES_US)
                self.side.drop_below(horizon_us)
                for number in stored:
                    if self.rows[number].ts < horizon_us:
                        self._marks[number] = -1


# ------------------------------------------------------------------------- what is looked at


def looked_at(side: Side, probing: Sequence[Row]) -> tuple[int, int]:
    """Return how many rows an index selects, and how many of them are pairs."""
    counts = []
    select = index.Index.candidates

    def counted(*args: Any) -> Iterator[tuple[Ints, Ints]]:
        for one, here in select(*args):
            counts.append(len(here))
            yield one, here

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index.Index, "candidates", counted)
        (found,) = side.probe(tuples(probing))
    return sum(counts), len(found.at)


def side_of(predicate: Predicate, window_us: int, stored: Sequence[Row]) -> Side:
    """Return a store of S whose rows came in blocks."""
    side = Side(Matcher(config_of(predicate, window_us)), S)
    for first in range(0, len(stored), 700):
        side.append(tuples(stored[first : first + 700], first))
        side.probe(tuples([]))
    return side


FEW = 20
LOOKUPS: list[tuple[Predicate, Callable[[int], float | str]]] = [
    (Ineq("value", "<", "value"), lambda size: float(size - 1 - FEW)),
    (Ineq("value", "<=", "value"), lambda size: float(size - FEW)),
    (Ineq("value", ">", "value"), lambda _: float(FEW)),
    (Ineq("value", ">=", "value"), lambda _: float(FEW - 1)),
    (Apart("value", 50_000.5), lambda _: 50_000.0 + FEW),
    (Ineq("key", "<", "key"), lambda size: f"{size - 1 - FEW:05}"),
    (Ineq("key", ">=", "key"), lambda _: f"{FEW - 1:05}"),
]
"""Inequalities, and a value or a key of R that few of the first numbers satisfy."""


@pytest.mark.parametrize("size", [2_000, 16_000])
@pytest.mark.parametrize(("predicate", "few"), LOOKUPS, ids=[str(each) for each, _ in LOOKUPS])
def test_an_inequality_looks_at_its_results_alone(
    size: int, predicate: Predicate, few: Callable[[int], float | str]
) -> None:
    asked = few(size)
    probe = Row(0, asked, "") if isinstance(asked, float) else Row(0, 0.0, asked)
    side = side_of(predicate, size, shuffled(size))
    assert looked_at(side, [probe] * 3) == (3 * FEW, 3 * FEW)


class Counted(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __lt__(self, other: str) -> bool:
        Counted.compared += 1
        return str.__lt__(self, other)


@pytest.mark.parametrize("size", [2_000, 16_000])
def test_a_search_compares_as_often_as_a_tree_is_deep(size: int) -> None:
    stored = [row._replace(key=Counted(row.key)) for row in shuffled(size)]
    side = side_of(Ineq("key", "<", "key"), size, stored)
    Counted.compared = 0
    assert looked_at(side, [Row(0, 0.0, Counted("99999"))]) == (0, 0)
    assert 0 < Counted.compared <= 2 * log2(size)  # in each of two runs


def test_rows_outside_the_window_are_hardly_looked_at() -> None:
    """A store of 40 windows, of which one tuple reaches two."""
    size = 16_000
    stored = [row._replace(ts=n) for n, row in enumerate(shuffled(size))]
    side = side_of(Ineq("value", "<", "value"), size // 40, stored)
    looked, pairs = looked_at(side, [Row(at, 0.9 * size, "") for at in range(1_000, 15_000, 100)])
    assert pairs > 140 * 0.08 * size / 20
    assert looked < 2.5 * pairs


def test_rows_that_left_are_hardly_looked_at() -> None:
    size = 16_000
    side = side_of(Ineq("value", "<", "value"), size, shuffled(size))
    side.drop_below(size - 100)
    looked, pairs = looked_at(side, [Row(0, -1.0, "")])
    assert (looked, pairs) == (100, 100)
    side.drop_below(size - 10)
    looked, pairs = looked_at(side, [Row(0, -1.0, "")])
    assert pairs == 10
    assert looked <= 100


def test_copies_that_left_are_hardly_looked_at() -> None:
    size = 16_000
    side = side_of(Ineq("value", "<", "value"), size, shuffled(size))
    side.send_oldest(size - 100, np.ones(size, np.int64))
    side.release(1)
    assert looked_at(side, [Row(0, -1.0, "")]) == (100, 100)


def test_selections_come_before_the_search() -> None:
    where = Where(S, "value", "<", 10.0), Where(R, "key", "=", "a")
    side = side_of(And((*where, Ineq("value", "<", "value"))), 2_000, shuffled(2_000))
    assert looked_at(side, [Row(0, 0.0, "b"), Row(0, 0.0, "a")]) == (9, 9)


def test_equal_values_cost_nothing_if_the_order_is_strict() -> None:
    side = side_of(Ineq("value", ">", "value"), 2_000, [Row(n, 0.0, "") for n in range(2_000)])
    assert looked_at(side, [Row(0, -0.0, "")]) == (0, 0)


def shuffled(size: int) -> list[Row]:
    """Return rows with the numbers below ``size``, in a drawn order."""
    found = [Row(n, float(n), f"{n:05}") for n in range(size)]
    Random(1).shuffle(found)
    return found
