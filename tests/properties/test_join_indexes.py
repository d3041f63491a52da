"""Indexes of room ``join``, in Spark's workers and in simulated ones, beside a nested loop."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import STREAMS, And, Predicate, R
from model.vocabulary.join_predicates import LARGEST, NUMBER, TEXT, parts_of, predicate_to_json
from properties.oracles.windows import matches
from properties.promised import Reached, promised
from sim.join.content import Index, RankArray
from spark_impl.join import index
from spark_impl.join.in_process import arrivals_of
from spark_impl.join.matching import Tuples
from spark_impl.join.side import Matcher, Side
from straggler.strategies.columns import (
    ODD,
    R_COLUMNS,
    S_COLUMNS,
    SORTS,
    USUAL,
    predicates,
)
from straggler.strategies.networks import SEEDS
from straggler.strategies.streams import UNIT_US

FAR_US = 1 << 60
TIMES_US = (*range(-4 * UNIT_US, 5 * UNIT_US, UNIT_US), -FAR_US, FAR_US, FAR_US + 3)
WINDOWS_US = st.sampled_from([0, 1, 2 * UNIT_US, 1 << 59, 1 << 61, LARGEST])
NUMBERS = (-1.9, -0.9, -0.1, -5e-324, -0.0, 0.0, 0.1, 0.9, 1.0, 1e16, 1e16 + 2, 1e308, -1e308)
"""Some lie at 1.0 from each other only because the difference is rounded."""
TEXTS = ("", "a", "a\0", "aa", "b", "é", "\uffff", "\U00010000")
MORE: Mapping[str, Sequence[Any]] = {NUMBER: NUMBERS, TEXT: TEXTS}
NAMES = tuple(sort.__name__ for sort in SORTS)


def config_of(predicate: Predicate, window_us: int) -> JoinConfig:
    """Return a configuration with one query."""
    return JoinConfig(window_us, (("q", predicate),), r_columns=R_COLUMNS, s_columns=S_COLUMNS)


PLAIN = config_of(And(), 0)


def events(draws: Random, stream: str, most: int, first: int = 0) -> list[Event]:
    """Draw tuples of a stream, numbered from ``first`` on."""

    def values() -> Iterator[Any]:
        for _, kind in PLAIN.columns(stream):
            yield draws.choice((*USUAL[kind], *ODD[kind], *MORE.get(kind, ())))

    def drawn(number: int) -> Event:
        key, at_us, value = map(draws.choice, (TEXTS, TIMES_US, NUMBERS))
        return Event(number, number, key, at_us, value, 0, stream, tuple(values()))

    return [drawn(number) for number in range(first, first + draws.randint(0, most))]


def is_pair(config: JoinConfig, one: Event, other: Event) -> bool:
    """Return whether two tuples of different streams are a pair."""
    r, s = (one, other) if one.stream == R else (other, one)
    rows = [
        {"key": each.key, "value": each.value, "event_time": each.event_time_us}
        | {
            name: None if cell != cell else cell
            for (name, _), cell in zip(config.columns(each.stream), each.more, strict=True)
        }
        for each in (r, s)
    ]
    is_near = abs(r.event_time_us - s.event_time_us) <= config.window_us
    return is_near and matches(predicate_to_json(config.queries[0][1]), *rows)


def sorts_of(predicate: Predicate) -> set[str]:
    return {type(part).__name__ for part in parts_of(predicate)}


def simulated(config: JoinConfig, stored: Sequence[Event], probing: Sequence[Event]) -> list[Any]:
    """Return the pairs of a simulated index, by the numbers of the probing and stored tuples."""
    searched = Index(config)
    for own in filter(len, (stored, probing)):
        searched.add(own[0].stream, 0, own, 0)
    ranks = [RankArray(np.arange(len(own))).as_ranks() for own in (probing, stored)]
    if probing:
        searched.join(probing[0].stream, *ranks)
    assert searched.comparisons <= len(probing) * len(stored)
    ids = [part[1:] if probing[0].stream == R else part[:0:-1] for part in searched.take()]
    return sorted(pair for part in ids for pair in zip(*(n.tolist() for n in part), strict=True))


@promised(*NAMES, "stay", "send", "keep copies", "release", "drop", examples=240)
@given(
    predicate=predicates(R_COLUMNS, S_COLUMNS),
    stream=st.sampled_from(STREAMS),
    window_us=WINDOWS_US,
    short=st.sampled_from([1, 6]),
    seed=SEEDS,
)
def test_an_index_finds_what_a_nested_loop_finds(
    reached: Reached, predicate: Predicate, stream: str, window_us: int, short: int, seed: int
) -> None:
    """The worker's store grows and shrinks meanwhile, and merges its runs early."""
    draws, config = Random(seed), config_of(predicate, window_us)
    (probing_stream,) = {*STREAMS} - {stream}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "SHORT", short)
        store = Store(Side(Matcher(config), stream), stream, draws)
        for block in range(1, 5):
            store.grow(block)
            reached.add({store.shrink(block): 1})
            probing = events(draws, probing_stream, 6)
            seen = draws.choice((None, [draws.randrange(6) for _ in probing]))
            pairs = [
                (at, number)
                for at, probe in enumerate(probing)
                for number, row in enumerate(store.rows)
                if is_pair(config, row, probe)
            ]
            assert simulated(config, store.rows, probing) == pairs
            expected = [
                (at, number)
                for at, number in pairs
                if store.is_met(number, None if seen is None else seen[at])
            ]
            (found,) = store.side.probe(
                tuples_of(probing, probing_stream),
                None if seen is None else np.array(seen, np.int64),
            )
            ids = found.pairs if stream == R else found.pairs[::-1]
            assert sorted(zip(ids[1].tolist(), ids[0].tolist(), strict=True)) == expected
            assert found.at.tolist() == ids[1].tolist()
            reached.add(dict.fromkeys(sorts_of(predicate), len(expected)))


def tuples_of(given: Sequence[Event], stream: str) -> Tuples:
    return arrivals_of(given, stream, PLAIN).tuples


class Store:
    """A store beside a list of its rows."""

    def __init__(self, side: Side, stream: str, draws: Random) -> None:
        self.side = side
        self.rows: list[Event] = []
        self._stream = stream
        self._marks: list[int] = []
        """0: stored; above: a copy of the block with this number; below: gone."""
        self._draws = draws

    def is_met(self, number: int, seen: int | None) -> bool:
        """Return whether a tuple of a block that has seen others meets a row."""
        mark = self._marks[number]
        return mark == 0 or (seen is not None and mark > seen)

    def grow(self, most: int) -> None:
        """Add some rows."""
        new = events(self._draws, self._stream, 2 * most, len(self.rows))
        self.side.append(tuples_of(new, self._stream))
        self.rows += new
        self._marks += [0] * len(new)

    def shrink(self, block: int) -> str:
        """Let some rows leave the store, and return in which of the ways that there are."""
        stored = [number for number, mark in enumerate(self._marks) if mark == 0]
        match how := self._draws.choice(("stay", "send", "keep copies", "release", "drop")):
            case "send" | "keep copies":
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
                    if self.rows[number].event_time_us < horizon_us:
                        self._marks[number] = -1
        return how
