"""Pairs out of order, against a count pair by pair, and the waits that follow from them."""

from fractions import Fraction
from itertools import combinations
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.watermark.evidence import inversions
from model.windows.cluster import READINGS, Cluster, wait_us

TIMES = st.lists(st.integers(-5, 5), max_size=20)


def pair_by_pair(times_us: list[int]) -> int:
    return sum(earlier > later for earlier, later in combinations(times_us, 2))


@given(times_us=TIMES, k=st.integers(1, 7))
def test_pairs_out_of_order_are_those_of_the_last_k(times_us: list[int], k: int) -> None:
    cluster = Cluster(k)
    counted = []
    for time_us in times_us:
        cluster.enter(time_us)
        counted.append(cluster.inv)
    expected = [pair_by_pair(times_us[max(0, n - k) : n]) for n in range(1, len(times_us) + 1)]
    assert counted == expected
    assert inversions(times_us, k) == expected
    assert list(cluster.times_us) == times_us[-k:]


@given(times_us=TIMES, k=st.integers(1, 7))
def test_a_cluster_goes_on_from_its_event_times(times_us: list[int], k: int) -> None:
    cluster = Cluster(k, times_us)
    assert cluster.inv == pair_by_pair(times_us[-k:])
    assert len(cluster) == min(k, len(times_us))


@given(max_wait_us=st.integers(0, 1000), k=st.integers(1, 60), data=st.data())
def test_waits_are_the_shares_of_the_page(max_wait_us: int, k: int, data: st.DataObject) -> None:
    pairs = k * (k - 1) // 2
    inv = data.draw(st.integers(0, pairs))
    order = 1 - Fraction(inv, pairs) if pairs else Fraction(0)
    shares = {
        "disorder": 1 - order,
        "literal": order,
        "scaled": min(Fraction(1), 2 * (1 - order)),
        "fixed": Fraction(1),
    }
    for name, share in shares.items():
        assert READINGS[name](max_wait_us, inv, pairs) == floor(max_wait_us * share)


@pytest.mark.parametrize(
    ("times_us", "waits"),
    [
        ((7,), {"disorder": 100, "literal": 0, "scaled": 100, "fixed": 100}),
        ((7, 7), {"disorder": 0, "literal": 100, "scaled": 0, "fixed": 100}),
        ((1, 2, 3), {"disorder": 0, "literal": 100, "scaled": 0, "fixed": 100}),
        ((1, 3, 2), {"disorder": 33, "literal": 66, "scaled": 66, "fixed": 100}),
        ((3, 1, 2), {"disorder": 66, "literal": 33, "scaled": 100, "fixed": 100}),
        ((3, 2, 1), {"disorder": 100, "literal": 0, "scaled": 100, "fixed": 100}),
    ],
)
def test_waits_of_small_clusters(times_us: tuple[int, ...], waits: dict[str, int]) -> None:
    assert {name: wait_us(name, 100, Cluster(9, times_us)) for name in READINGS} == waits
