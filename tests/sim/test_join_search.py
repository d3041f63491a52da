"""Candidates of a simulated chain: what they lead to, and how many there are."""

from random import Random

import numpy as np
import pytest

from model.vocabulary import Event
from model.vocabulary.join import STREAMS, R, S
from sim.join.content import Index, RankArray
from tests.sim.join_conditions import CONDITIONS, WINDOWS_US, Row, config_of, rows


@pytest.mark.parametrize("number", range(len(CONDITIONS)))
def test_a_search_finds_what_a_nested_loop_finds(number: int) -> None:
    predicate, holds = CONDITIONS[number]
    draws = Random(number)
    for stream in STREAMS:
        for window_us in WINDOWS_US:
            tuples = {each: rows(draws, 14) for each in STREAMS}
            index = Index(config_of(predicate, window_us))
            for each, own in tuples.items():
                if own:
                    index.add(each, 0, [event(at, each, row) for at, row in enumerate(own)], 0)
            both = [RankArray(np.arange(len(own))).as_ranks() for own in tuples.values()]
            index.join(stream, *(both if stream == R else both[::-1]))
            found = [
                pair
                for part in index.take()
                for pair in zip(part.r_ids.tolist(), part.s_ids.tolist(), strict=True)
            ]
            assert sorted(found) == [
                (at, other)
                for at, r in enumerate(tuples[R])
                for other, s in enumerate(tuples[S])
                if abs(r.ts - s.ts) <= window_us and holds(r, s)
            ]
            assert index.comparisons <= len(tuples[R]) * len(tuples[S])


def event(number: int, stream: str, row: Row) -> Event:
    """Return an arrival of a tuple."""
    more = row.x, row.n, row.at, row.word, row.flag
    return Event(number, number, row.key, row.ts, row.value, 0, stream, more)
