"""Routers: each policy against a few lines that state it in another way."""

import random
from collections import Counter
from typing import Any

import pytest

from model.grouping import candidates, rules
from model.grouping.rules import RULES, Learnt, first_table, rebalance
from model.grouping.state import Count, Table
from model.vocabulary import GroupingConfig
from model.vocabulary.grouping import POLICIES


def routed(table: Table, keys: str, sender: int = 0) -> list[int]:
    """Return the instances that a sender's tuples go to, one letter a key."""
    state = rules.begin_window(table, rules.initial_state(table.config, sender))
    places = []
    for key in keys:
        instance, state = rules.route(table, state, key)
        places.append(instance)
    return places


def hot(**config: Any) -> Table:
    """Return a table in which "h" is heavy."""
    given = GroupingConfig(**{"instances": 4, **config})
    learnt = Learnt(10, [{"h": Count(6, 0)}], [[0] * 2 * given.instances])
    return rebalance(first_table(given, RULES), learnt, given.times_of(0))


def cold(**config: Any) -> Table:
    """Return the table of window 0."""
    return first_table(GroupingConfig(**{"instances": 4, **config}), RULES)


@pytest.mark.parametrize("policy", POLICIES)
def test_many_tuples_are_routed_as_one_after_the_other(policy: str) -> None:
    keys = "".join(random.Random(7).choices("hhhabcdef", k=100))
    for table in (cold(policy=policy), hot(policy=policy, times_us=((0, (1, 1, 4, 4)),))):
        state = rules.begin_window(table, rules.initial_state(table.config, 1))
        assert rules.route_all(table, state, keys)[0] == routed(table, keys, sender=1)
        one = two = state
        for key in keys:
            _, one = rules.route(table, one, key)
        for part in (keys[:30], keys[30:]):
            _, two = rules.route_all(table, two, part)
        assert one == two


def test_shuffle_takes_turns_in_the_order_of_latency() -> None:
    assert routed(cold(policy="shuffle"), "abcdef") == [0, 1, 2, 3, 0, 1]
    nearest = cold(policy="shuffle", latency_us=(9, 0, 9, 0))
    assert routed(nearest, "abcdef") == [1, 3, 0, 2, 1, 3]


def test_round_robin_starts_at_the_sender() -> None:
    assert routed(cold(policy="round-robin"), "abcdef") == [0, 1, 2, 3, 0, 1]
    assert routed(cold(policy="round-robin"), "abcdef", sender=6) == [2, 3, 0, 1, 2, 3]


def test_pkg_balances_one_key_over_two() -> None:
    counts = Counter(routed(cold(policy="pkg"), "k" * 11))
    assert sorted(counts.values()) == [5, 6]


def test_tag_balances_time() -> None:
    counts = Counter(routed(hot(times_us=((0, (1, 1, 4, 4)),), gamma=0.1), "h" * 50))
    assert [counts[i] for i in range(4)] == [20, 20, 5, 5]


def test_nag_static_favours_the_nearest_tier() -> None:
    counts = Counter(routed(cold(policy="nag-static", tiers=(0, 1, 2, 3)), "k" * 100))
    assert [counts[i] for i in range(4)] == [40, 30, 20, 10]


def test_nag_dynamic_also_favours_faster_instances() -> None:
    table = cold(policy="nag-dynamic", tiers=(0, 0, 3, 3), times_us=((0, (1, 2, 1, 2)),))
    counts = Counter(routed(table, "k" * 150))
    assert [counts[i] for i in range(4)] == [80, 40, 20, 10]


def test_dkg_learns_by_the_first_hash() -> None:
    table = cold(policy="dkg")
    state = rules.initial_state(table.config, 0)
    for key in "abcab":
        instance, state = rules.route(table, state, key)
        assert instance == candidates.first_instance(candidates.text_hash(key, 42), 4)
    assert sum(state.buckets) == 5
    _, later = rules.route(hot(policy="dkg"), state, "a")
    assert later.buckets == state.buckets


# ------------------------------------------------------------------------------------------- dag


@pytest.mark.parametrize(("alpha", "places"), [(0.0, [0, 1, 2, 3, 0]), (1.0, [0, 0, 0, 0, 0])])
def test_dag_weighs_instances_of_the_key_against_idle_instances(
    alpha: float, places: list[int]
) -> None:
    assert routed(hot(policy="dag", alpha=alpha), "hhhhh") == places


def test_dag_moves_a_key_on_while_other_instances_are_idle() -> None:
    # T = 1: staying scores .5 - .5 * 3, going on + .5; T = 2: staying .5 - .5, going on + .5; ...
    assert routed(hot(policy="dag"), "hhhhhhhh") == [0, 1, 2, 3, 0, 1, 2, 3]


def test_dag_forgets_the_instances_of_a_key_when_a_window_ends() -> None:
    table = hot(policy="dag")
    state = rules.initial_state(table.config, 0)
    for _ in range(3):
        _, state = rules.route(table, state, "h")
    assert state.sent == {("h", 0), ("h", 1), ("h", 2)}
    again = rules.begin_window(table, state)
    assert (again.sent, again.loads) == (frozenset(), (0, 0, 0, 0))


def test_dag_moves_a_heavy_key_on_as_soon_in_a_late_window_as_in_the_first() -> None:
    table = hot(policy="dag")
    state = rules.begin_window(table, rules.initial_state(table.config, 0))
    first, state = rules.route_all(table, state, "h" * 40)
    for _ in range(5):
        later, state = rules.route_all(table, rules.begin_window(table, state), "h" * 40)
        assert later == first


# -------------------------------------------------------------------------------------------- cg


def bounded(config: GroupingConfig, keys: list[str]) -> list[int]:
    """Return the virtual workers of tuples, with no state but the list of those before."""
    virtual: list[int] = []
    size = 10 * config.instances
    for key in keys:
        text = candidates.text_hash(key, config.hash_seed)
        tried = [candidates.numbered_hash(text, j) % size for j in range(1, 65)]
        room = [v for v in tried if 4 * virtual.count(v) * size < 5 * (len(virtual) + 1)]
        loads = [virtual.count(v) for v in range(size)]
        virtual.append(room[0] if room else loads.index(min(loads)))
    return virtual


@pytest.mark.parametrize("skew", [0.0, 1.0, 3.0])
def test_cg_bounds_the_load_of_virtual_workers(skew: float) -> None:
    table = cold(policy="cg", instances=2, times_us=((0, (1, 3)),))
    weights = [1 / (rank + 1) ** skew for rank in range(26)]
    keys = random.Random(7).choices("abcdefghijklmnopqrstuvwxyz", weights, k=400)
    virtual = bounded(table.config, keys)
    assert routed(table, "".join(keys)) == [table.owners[v] for v in virtual]
    assert max(Counter(virtual).values()) <= 1.25 * 401 / 20 + 1


def test_without_room_the_least_virtual_worker_takes_the_tuple(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "numbered_hash", lambda _text, _j: 3)
    table = cold(policy="cg", instances=1)
    state = rules.initial_state(table.config, 0)
    virtual = []
    for _ in range(4):
        before = state.virtual
        _, state = rules.route(table, state, "k")
        virtual.append(next(v for v in range(10) if state.virtual[v] > before[v]))
    assert virtual == [3, 0, 1, 2]


@pytest.mark.parametrize(
    ("times_us", "blocks"),
    [((1,), [10]), ((3, 3, 3), [10, 10, 10]), ((1, 9), [18, 2]), ((1, 1, 2), [12, 12, 6])],
)
def test_faster_instances_own_more_virtual_workers(
    times_us: tuple[int, ...], blocks: list[int]
) -> None:
    owners = rules.owners(times_us)
    assert list(owners) == sorted(owners)
    assert [owners.count(i) for i in range(len(times_us))] == blocks


# ------------------------------------------------------------------------------------ all policies


@pytest.mark.parametrize(
    ("policy", "kept"), [("tag", False), ("tag-literal", False), ("pkg", True), ("dag", False)]
)
def test_a_window_keeps_or_resets_the_loads(policy: str, kept: bool) -> None:
    table = cold(policy=policy)
    _, state = rules.route(table, rules.initial_state(table.config, 0), "k")
    assert any(rules.begin_window(hot(policy=policy), state).loads) == kept
