"""Joins by blocks and index, against a nested loop; ranks as arrays."""

import itertools

import numpy as np
import pytest

from model.join.oracle import holds
from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import END_US, And, Apart, Band, Equi, Ineq, Predicate, R, S
from sim.join.content import Index, RankArray

PREDICATES: tuple[Predicate, ...] = (
    Equi("key"),
    Equi("value"),
    Band("value", 0.3),
    Band("value", 0.0),
    Apart("value", 1.0),
    Ineq("key", "<", "key"),
    Ineq("value", "!=", "value"),
    And((Band("value", 1.0), Ineq("key", ">=", "key"))),
    And((And((Equi("key"),)), Apart("value", 0.1))),
    And(),
)
N = 60


def event(stream: str, n: int, rng: np.random.Generator) -> Event:
    key = str(rng.choice(["", "a", "ä", "b"]))
    # Thirds and tenths: differences that are not exact.
    value = float(rng.integers(-9, 9)) / float(rng.choice([3, 10]))
    return Event(n, n, key, int(rng.integers(0, 20)), value, n, stream)


def filled(config: JoinConfig, seed: int) -> tuple[Index, list[Event], list[Event]]:
    rng = np.random.default_rng(seed)
    r, s = ([event(stream, n, rng) for n in range(N)] for stream in (R, S))
    index = Index(config)
    # In turns of twenty, each an epoch.
    for n in range(0, N, 20):
        index.add(R, n, r[n : n + 20], n // 20)
        index.add(S, n, s[n : n + 20], n // 20)
    return index, r, s


def held(ranks: list[int]) -> RankArray:
    return RankArray(np.array(ranks, dtype=np.int64))


@pytest.mark.parametrize("stream", [R, S])
@pytest.mark.parametrize("predicate", PREDICATES, ids=str)
def test_a_join_finds_what_a_nested_loop_finds(predicate: Predicate, stream: str) -> None:
    config = JoinConfig(7, (("q", predicate),))
    index, r, s = filled(config, 3)
    block, store = list(range(5, 25)), list(range(0, N, 2))
    index.join(stream, held(block).as_ranks(), held(store).as_ranks())
    pairs = [(a, b) if stream == R else (b, a) for a, b in itertools.product(block, store)]
    expected = sorted(
        (a, b)
        for a, b in pairs
        if abs(r[a].event_time_us - s[b].event_time_us) <= 7 and holds(predicate, r[a], s[b])
    )
    found = [each for part in index.take() for each in zip(part.r_ids, part.s_ids, strict=True)]
    assert sorted((int(a), int(b)) for a, b in found) == expected
    assert expected
    assert len(expected) <= index.comparisons <= len(pairs)
    assert index.take() == []


def test_pairs_come_in_the_order_of_the_ranks_that_were_given() -> None:
    """Sorts may put equal values in any order, and the order may differ between processors."""
    index, _, _ = filled(JoinConfig(100, (("q", Equi("key")),)), 3)
    block, store = list(range(20, 5, -1)), list(range(N))
    index.join(R, held(block).as_ranks(), held(store).as_ranks())
    (found,) = index.take()
    places = [
        (s, block.index(r)) for r, s in zip(found.r_ids.tolist(), found.s_ids.tolist(), strict=True)
    ]
    assert places == sorted(places)
    assert len(places) > 100


def test_a_query_of_some_epochs_finds_its_epochs_alone() -> None:
    config = JoinConfig(100, (("q", And()), ("late", And())), epochs=(("late", 1, 1),))
    index, _, _ = filled(config, 3)
    everything = held(list(range(N))).as_ranks()
    index.join(R, everything, everything)
    q, late = index.take()
    assert len(q.r_ids) == N * N
    assert sorted(set(late.r_ids.tolist()) | set(late.s_ids.tolist())) == list(range(20, 40))
    assert len(late.r_ids) == 20 * 20


def test_there_is_room_for_any_number_of_tuples() -> None:
    rng = np.random.default_rng(5)
    index = Index(JoinConfig(100, (("q", And()),)))
    events = [event(R, n, rng) for n in range(5_000)]
    for n in range(0, 5_000, 1_250):
        index.add(R, n, events[n : n + 1_250], 0)
    columns = index.columns[R]
    assert columns.source_id[:5_000].tolist() == list(range(5_000))
    assert columns.value[:5_000].tolist() == [each.value for each in events]
    assert columns.key[:5_000].tolist() == [each.key for each in events]
    numbers = dict(zip(columns.key[:5_000].tolist(), columns.number[:5_000].tolist(), strict=True))
    assert sorted(numbers.values()) == [0, 1, 2, 3]


def test_ranks_are_cut_and_put_together() -> None:
    ranks = held([1, 2]) + held([5]) + (7, 9)
    assert len(ranks) == 5
    assert ranks[-1] == 9
    assert ranks[:2].ranks.tolist() == [1, 2]
    assert (ranks + RankArray()) is ranks


def test_the_least_time_and_what_lies_below_a_horizon() -> None:
    index, r, _ = filled(JoinConfig(7, (("q", And()),)), 3)
    ranks = held([3, 4, 5, 6]).as_ranks()
    times_us = [r[n].event_time_us for n in (3, 4, 5, 6)]
    assert index.least_us(R, ranks) == min(times_us)
    assert index.least_us(R, RankArray().as_ranks()) == END_US
    horizon_us = sorted(times_us)[2]
    older, rest = index.split_at(R, ranks, horizon_us)
    assert [n for n in (3, 4, 5, 6) if r[n].event_time_us < horizon_us] == list(older)
    assert [n for n in (3, 4, 5, 6) if r[n].event_time_us >= horizon_us] == list(rest)
