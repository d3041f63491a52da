"""Parts of the router, each against a plain version of docs/grouping.md."""

from collections import Counter
from collections.abc import Sequence
from math import log
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from model.vocabulary import GroupingConfig
from model.vocabulary.grouping import POLICIES
from spark_impl.grouping import keys
from spark_impl.grouping.candidates import choices
from spark_impl.grouping.keys import HeavyKey, Table
from spark_impl.grouping.router import SenderState, begin_window, route

KEYS = ["", "a", "ä", "😀", *(f"key-{number}" for number in range(200))]
MASK = (1 << 64) - 1


def plain_hash(base: int, number: int) -> int:
    bits = (base + number * 0x9E3779B97F4A7C15) & MASK
    bits = ((bits ^ bits >> 30) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ bits >> 27) * 0x94D049BB133111EB) & MASK
    return bits ^ bits >> 31


@pytest.mark.parametrize("seed", [0, 42, MASK])
def test_hashes_are_those_of_splitmix64(seed: int) -> None:
    base = keys.base_hashes(KEYS, seed)
    for number in (1, 2, 3, 64, 1000):
        expected = [plain_hash(int(each), number) for each in base]
        assert keys.hash_numbered(base, number).tolist() == expected
        unit = keys.hash_unit(base, number)
        assert unit.tolist() == [((each >> 11) + 0.5) / 2**53 for each in expected]
        assert (unit > 0).all()
        assert (unit <= 1).all()


def test_a_pair_has_two_instances_unless_there_is_one() -> None:
    base = keys.base_hashes(KEYS, 42)
    for instances in (2, 3, 17):
        first, second = keys.candidate_pairs(base, instances).T
        assert (first != second).all()
        assert set(first.tolist()) == set(range(instances))
    assert keys.candidate_pairs(base, 1).tolist() == [[0]] * len(KEYS)


@pytest.mark.parametrize("length", [1, 2, 5, 9])
def test_the_rendezvous_order_is_sorted_by_weighted_scores(length: int) -> None:
    times = (3, 1, 7, 1, 1, 20, 2, 2, 5)
    base = keys.base_hashes(KEYS, 42)
    found = keys.rendezvous_order(base, times, length).tolist()
    for own, each in zip(found, base, strict=True):
        scores = [
            -log(((plain_hash(int(each), place + 1) >> 11) + 0.5) / 2**53) * time
            for place, time in enumerate(times)
        ]
        assert own == sorted(range(len(times)), key=scores.__getitem__)[:length]


def test_instances_come_first_in_proportion_to_their_speed() -> None:
    base = keys.base_hashes([str(number) for number in range(20_000)], 42)
    first = keys.rendezvous_order(base, (1, 4), 1)[:, 0]
    assert abs((first == 0).mean() - 0.8) < 5 * (0.8 * 0.2 / 20_000) ** 0.5


def drawn(random: Random, size: int, kinds: int) -> list[str]:
    return [str(int(kinds * random.random() ** 3)) for _ in range(size)]


@pytest.mark.parametrize("size", [1, 2, 7, 50])
def test_summaries_keep_their_bounds_in_batches_and_merged(size: int) -> None:
    random = Random(size)
    streams = [[drawn(random, random.randint(0, 80), 60) for _ in range(6)] for _ in range(3)]
    own = []
    for batches in streams:
        summary = keys.EMPTY
        true = Counter[str]()
        for batch in batches:
            true.update(batch)
            exact = keys.count_exactly(pa.array(batch, pa.string()).dictionary_encode())
            summary = keys.merge(summary, exact, size)
            assert_bounds(summary, true, size)
        own.append(summary)
    both = keys.merge_all(own, size)
    assert_bounds(both, Counter(key for one in streams for each in one for key in each), size)


def assert_bounds(summary: keys.Summary, true: Counter[str], size: int) -> None:
    keys = summary.keys.to_pylist()
    assert summary.tuples == true.total()
    assert len(keys) <= size
    assert list(zip(-summary.counts, keys, strict=True)) == sorted(
        zip(-summary.counts, keys, strict=True)
    )
    for key, counted, error in zip(keys, summary.counts, summary.errors, strict=True):
        assert counted - error <= true[key] <= counted
        assert error <= summary.tuples / size
    for key, times in true.items():
        assert key in keys or times <= summary.tuples / size


def test_the_capacity_for_a_share_is_rounded_up() -> None:
    assert [keys.summary_capacity(eps) for eps in (0.5, 0.3, 0.026)] == [2, 4, 39]


def test_choices_grow_with_the_share_of_heavy_keys() -> None:
    found = [choices(20, shares) for shares in ([], [0.05], [0.2], [0.4, 0.2], [0.9])]
    assert found == sorted(found)
    assert found[0] == 2
    assert found[-1] == 20
    assert choices(1, [1.0]) == 1


def sent(config: GroupingConfig, keys: Sequence[str], table: Table | None = None) -> list[int]:
    table = table or Table(0, config.times_of(0), {}, 0)
    state = begin_window(config, SenderState())
    places: list[int] = route(config, table, 0, state, pa.array(keys, pa.string()))[0].tolist()
    return places


def test_ties_go_to_the_nearer_instance_then_to_the_lower_index() -> None:
    assert sent(GroupingConfig(3, "shuffle"), "abcabc") == [0, 1, 2, 0, 1, 2]
    far = GroupingConfig(3, "shuffle", latency_us=(9, 5, 5))
    assert sent(far, "abcabc") == [1, 2, 0, 1, 2, 0]


def test_slow_instances_get_less() -> None:
    config = GroupingConfig(2, "tag", ((0, (1, 9)),))
    counted = np.bincount(sent(config, [str(number) for number in range(1000)]))
    assert counted.tolist() == [900, 100]


def test_a_heavy_key_is_spread_and_a_light_one_is_not() -> None:
    config = GroupingConfig(10, "tag", ((0, (1,) * 10),))
    table = Table(1, (1,) * 10, {"hot": HeavyKey(90, 0)}, 100)
    assert len(set(sent(config, ["hot"] * 100, table))) == 10
    assert len(set(sent(config, ["cold"] * 100, table))) == 2


@pytest.mark.parametrize("policy", POLICIES)
def test_an_empty_batch_routes_nothing(policy: str) -> None:
    assert sent(GroupingConfig(3, policy), []) == []


@pytest.mark.parametrize("policy", POLICIES)
def test_a_cut_between_micro_batches_changes_no_route(policy: str) -> None:
    config = GroupingConfig(4, policy, ((0, (1, 2, 3, 9)),))
    table = Table(1, (1, 2, 3, 9), {"0": HeavyKey(50, 0)}, 100, choices=3)
    if policy == "dkg":
        table = table._replace(placed={"0": 2}, buckets=(0, 1, 2, 3, 3, 2, 1, 0))
    keys = drawn(Random(7), 300, 40)
    state, parts = begin_window(config, SenderState()), []
    for start in (0, 1, 100):
        end = {0: 1, 1: 100, 100: 300}[start]
        found, state = route(config, table, 0, state, pa.array(keys[start:end], pa.string()))
        parts += found.tolist()
    assert parts == sent(config, keys, table)
