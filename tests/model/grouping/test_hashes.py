"""Hashes: known values, and the chances that the page promises."""

from collections import Counter

import pytest

from model.grouping import candidates
from model.grouping.candidates import (
    first_instance,
    numbered_hash,
    rendezvous,
    second_instance,
    text_hash,
    unit_hash,
)
from model.vocabulary import stable_hash

TEXTS = [text_hash(f"key-{number}", 42) for number in range(20_000)]


def test_splitmix64_gives_its_published_numbers() -> None:
    # The first outputs of SplitMix64 with seed 0 are its finalizer at multiples of the increment.
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [numbered_hash(0, j) for j in (1, 2, 3)] == expected


def test_text_is_hashed_like_everywhere_but_unsigned() -> None:
    assert text_hash("", 0) == 0xEF46DB3751D8E999
    for key in ("", "a", "ä", "key-7"):
        assert text_hash(key, 42) == stable_hash(key) % (1 << 64)


def test_the_largest_hash_is_one_as_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "numbered_hash", lambda _text, _j: (1 << 64) - 1)
    assert unit_hash(0, 1) == 1.0
    assert rendezvous(0, (3, 1)) == [0, 1]
    monkeypatch.setattr(candidates, "numbered_hash", lambda _text, _j: 0)
    assert unit_hash(0, 1) == 2**-54


@pytest.mark.parametrize("n", [2, 3, 8])
def test_pairs_are_different_and_uniform(n: int) -> None:
    pairs = Counter((first_instance(text, n), second_instance(text, n)) for text in TEXTS)
    assert set(pairs) == {(i, j) for i in range(n) for j in range(n) if i != j}
    expected = len(TEXTS) / (n * (n - 1))
    chi_squared = sum((count - expected) ** 2 / expected for count in pairs.values())
    assert chi_squared < 110  # 55 degrees of freedom at most: one table in 65,000 is above


def test_a_single_instance_is_first_and_second_choice() -> None:
    assert (first_instance(TEXTS[0], 1), second_instance(TEXTS[0], 1)) == (
        0,
        0,
    )


def test_the_first_of_an_order_is_drawn_by_speed() -> None:
    times_us = (1, 2, 5, 10)
    total = sum(1 / time_us for time_us in times_us)
    firsts = Counter(rendezvous(text, times_us)[0] for text in TEXTS)
    for i, time_us in enumerate(times_us):
        share = 1 / time_us / total
        deviation = (share * (1 - share) / len(TEXTS)) ** 0.5
        assert abs(firsts[i] / len(TEXTS) - share) < 5 * deviation


def test_an_instance_that_gets_slower_only_falls_back() -> None:
    for text in TEXTS[:200]:
        before, after = (
            rendezvous(text, (1, 1, 1, 1)),
            rendezvous(text, (1, 1, 9, 1)),
        )
        assert [i for i in before if i != 2] == [i for i in after if i != 2]
        assert before.index(2) <= after.index(2)
