"""Candidates of every policy, computed anew from the page with fractions and loops."""

from fractions import Fraction
from itertools import accumulate
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.grouping import candidates
from model.grouping.rules import RULES, Learnt, first_table, rebalance
from model.grouping.state import Count, Table
from model.vocabulary import GroupingConfig

KEYS = [f"key-{number}" for number in range(60)]


def table(heavy: dict[str, int], tuples: int = 100, **config: Any) -> Table:
    """Return the table of window 1 after a window in which heavy keys had these counts."""
    given = GroupingConfig(**{"instances": 5, "theta": 0.04, **config})
    keys = {key: Count(count, 0) for key, count in heavy.items()}
    buckets = [0] * (2 * given.instances)
    return rebalance(
        first_table(given, RULES), Learnt(tuples, [keys], [buckets]), given.times_of(0)
    )


def text(key: str) -> int:
    return candidates.text_hash(key, 42)


@pytest.mark.parametrize("policy", ["pkg", "d-choices", "w-choices", "tag-literal"])
def test_a_light_key_has_its_two_hashes(policy: str) -> None:
    there = table({"hot": 50}, policy=policy)
    for key in KEYS:
        assert set(there.candidates(key)) == {
            candidates.first_instance(text(key), 5),
            candidates.second_instance(text(key), 5),
        }


@pytest.mark.parametrize("policy", ["key", "dag"])
def test_a_light_key_has_its_first_hash(policy: str) -> None:
    there = table({"hot": 50}, policy=policy)
    assert all(there.candidates(key) == (candidates.first_instance(text(key), 5),) for key in KEYS)


@pytest.mark.parametrize(
    "policy", ["round-robin", "shuffle", "w-choices", "nag-static", "nag-dynamic", "dag", "cg"]
)
def test_a_heavy_key_may_go_anywhere(policy: str) -> None:
    assert table({"hot": 50}, policy=policy).candidates("hot") == (0, 1, 2, 3, 4)


def test_candidates_come_nearest_first() -> None:
    there = table({"hot": 50}, policy="shuffle", latency_us=(3, 0, 5, 0, 3))
    assert there.candidates("hot") == (1, 3, 0, 4, 2)


# ------------------------------------------------------------------------------------- d-choices


def enough_choices(shares: list[Fraction], n: int, d: int) -> bool:
    """Evaluate the inequality of the page, term by term, for all l."""
    for length in range(1, len(shares) + 1):
        b = n - n * Fraction(n - 1, n) ** (length * d)
        left = sum(shares[:length]) + (b / n) ** d * sum(shares[length:])
        if left + (b / n) ** 2 * (1 - sum(shares)) > b / n + Fraction(1, 10_000):
            return False
    return True


@given(
    n=st.integers(1, 12), counts=st.lists(st.integers(1, 40), max_size=6), light=st.integers(0, 60)
)
def test_d_is_the_smallest_that_is_enough(n: int, counts: list[int], light: int) -> None:
    total = sum(counts) + light or 1
    shares = sorted((Fraction(count, total) for count in counts), reverse=True)
    good = [d for d in range(2, n + 1) if enough_choices(shares, n, d)]
    assert candidates.choices([float(share) for share in shares], n) == (good[0] if good else n)


def test_heavy_keys_have_d_hashes() -> None:
    there = table({"hot": 30, "warm": 10}, policy="d-choices", instances=20, theta=0.05)
    d = candidates.choices([0.3, 0.1], 20)
    assert 3 <= d < 20
    for key in ("hot", "warm"):
        others = {candidates.numbered_hash(text(key), j) % 20 for j in range(3, d + 1)}
        pair = {candidates.first_instance(text(key), 20), candidates.second_instance(text(key), 20)}
        assert set(there.candidates(key)) == pair | others


# ------------------------------------------------------------------------------------------- dkg


def test_the_heaviest_goes_first_and_ties_to_the_lowest_index() -> None:
    config = GroupingConfig(2, "dkg")
    bucket = candidates.bucket_of(config, "a")
    tuples = [10 if number == bucket else 1 for number in range(4)]
    placed = candidates.place(config, {"a": 7, "b": 2}, tuples)
    # a: 7 on 0; bucket of a: 10 - 7 = 3 (less b, if b is in it too) on 1; then b, then the others.
    assert placed.keys["a"] == 0
    assert placed.buckets[bucket] == placed.keys["b"] == 1


@given(
    counts=st.lists(st.integers(1, 9), max_size=4), light=st.lists(st.integers(0, 5), min_size=4)
)
def test_no_instance_gets_more_than_the_mean_and_one(counts: list[int], light: list[int]) -> None:
    config = GroupingConfig(2, "dkg")
    heavy = {KEYS[number]: count for number, count in enumerate(counts)}
    tuples = light[:4]
    for key, count in heavy.items():
        tuples[candidates.bucket_of(config, key)] += count
    placed = candidates.place(config, heavy, tuples)
    loads = [0, 0]
    for key, count in heavy.items():
        loads[placed.keys[key]] += count
    for number, count in enumerate(light[:4]):
        loads[placed.buckets[number]] += count
    assert abs(loads[0] - loads[1]) <= max([*counts, *light[:4]])


def test_a_bucket_that_has_less_than_its_heavy_keys_weighs_nothing() -> None:
    config = GroupingConfig(2, "dkg")
    assert candidates.place(config, {"a": 7}, [0, 0, 0, 0]).buckets == (1, 1, 1, 1)


def test_the_map_stays_when_keys_become_light() -> None:
    config = GroupingConfig(3, "dkg", theta=0.3)
    learnt = Learnt(9, [{"a": Count(6, 0)}], [[0, 6, 0, 3, 0, 0]])
    one = rebalance(first_table(config, RULES), learnt, config.times_of(1))
    two = rebalance(one, Learnt(9, [{"b": Count(6, 0)}], [[9, 9, 9, 9, 9, 9]]), config.times_of(2))
    assert one.placement == two.placement
    assert set(two.heavy) == {"b"}
    assert [one.candidates(key) for key in KEYS] == [two.candidates(key) for key in KEYS]


# ------------------------------------------------------------------------------------------- tag


@given(
    times=st.lists(st.sampled_from((1, 2, 3, 10)), min_size=1, max_size=6),
    count=st.integers(5, 100),
    gamma=st.sampled_from((0.21, 0.37, 1.01)),
)
def test_tag_takes_as_few_as_the_share_needs(times: list[int], count: int, gamma: float) -> None:
    n = len(times)
    times_us = ((0, tuple(times)),)
    there = table({"hot": count}, instances=n, times_us=times_us, gamma=gamma, theta=0.04)
    order = candidates.rendezvous(text("hot"), times)
    speeds = [Fraction(1, time_us) for time_us in times]
    needed = sum(speeds) * Fraction(count, 100) / Fraction(gamma)
    sums = list(accumulate(speeds[i] for i in order))
    lengths = [size for size in range(2, n + 1) if sums[size - 1] >= needed]
    assert set(there.candidates("hot")) == set(order[: lengths[0] if lengths else n])
    assert set(there.candidates("cold")) == set(candidates.rendezvous(text("cold"), times)[:2])


@given(
    times=st.lists(st.sampled_from((1, 2, 10)), min_size=2, max_size=5),
    count=st.integers(5, 100),
    q=st.sampled_from((None, 1, 7)),
)
def test_tag_literal_draws_by_speed(times: list[int], count: int, q: int | None) -> None:
    there = table(
        {"hot": count},
        policy="tag-literal",
        instances=len(times),
        times_us=((0, tuple(times)),),
        draw_tuples=q,
        window_tuples=100,
    )
    speeds = [1 / time_us for time_us in times]
    drawn = set()
    for j in range(1, ceil(count / (q or 4)) + 1):
        mark = candidates.unit_hash(text("hot"), j) * sum(speeds)
        drawn.add(min(i for i in range(len(times)) if sum(speeds[: i + 1]) > mark))
    assert set(there.candidates("hot")) == drawn


def test_a_draw_beyond_the_last_sum_is_the_last_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "unit_hash", lambda _text, _j: 1.0)
    assert table({"hot": 50}, policy="tag-literal").candidates("hot") == (4,)
