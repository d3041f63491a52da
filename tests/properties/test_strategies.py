"""Generated workloads: what rules 1 to 4 of ``properties/strategies.py`` promise."""

from collections import Counter

import pytest

from model.vocabulary import SlackConfig, Workload
from model.vocabulary.slack import (
    ADAPTIVE_CONTROLS,
    AGGREGATES,
    CONTROLS,
    SELF_SUFFICIENT_AGGREGATES,
)
from model.windows.evidence import has_exact_sums
from properties import packs
from properties.strategies import cases, configs, reordered, requirements, timed_cases
from sim.kernel.disorder import measure

DRAWN = packs.collect(cases(), 300, seed=4)


def config_of(case: Workload) -> SlackConfig:
    return SlackConfig.from_json(case.config)


def test_queries_have_every_shape() -> None:
    drawn = [config_of(case) for case in DRAWN]
    assert {config.aggregate for config in drawn} == set(AGGREGATES)
    assert {config.control for config in drawn} == set(CONTROLS)
    assert {config.tasks for config in drawn} == {1, 2, 3}
    assert {config.keyed for config in drawn} == {True, False}
    shapes = Counter(
        "gapped"
        if config.size_us < config.slide_us
        else "tumbling"
        if config.size_us == config.slide_us
        else "panes"
        if config.size_us % config.slide_us
        else "sliding"
        for config in drawn
    )
    assert min(shapes[shape] for shape in ("gapped", "tumbling", "panes", "sliding")) > 5, shapes
    assert any(config.feedback == 0 for config in drawn)
    assert any(config.lambda_thr is None for config in drawn)
    assert all(
        config.aggregate in ("median", "avg")
        for config in packs.collect(configs(["median", "avg"], ["pd"]), 20, seed=1)
    )


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_requirements_are_found_in_every_way(aggregate: str) -> None:
    drawn = packs.collect(configs([aggregate], ADAPTIVE_CONTROLS), 150, seed=3)
    found = {(config.lambda_thr, config.method, config.sampling) for config in drawn}
    assert found == set(requirements(aggregate))
    is_free = any(config.lambda_thr is None for config in drawn)
    assert is_free == (aggregate in SELF_SUFFICIENT_AGGREGATES)
    assert any(config.needs_values for config in drawn) == (aggregate in ("sum", "avg"))


def test_arrivals_are_disordered_numbered_and_in_time() -> None:
    late = [case for case in DRAWN if measure(case.arrivals).late_share > 0]
    assert len(late) > len(DRAWN) // 2
    for case in DRAWN:
        assert [event.seq for event in case.arrivals] == list(range(len(case.arrivals)))
        times = [event.arrival_us for event in case.arrivals]
        assert times == sorted(times)
        assert all(event.event_time_us > 0 for event in case.arrivals)


def test_values_add_up_exactly_and_some_are_refused() -> None:
    assert all(has_exact_sums([event.value for event in case.arrivals]) for case in DRAWN)
    values = {event.value for case in DRAWN for event in case.arrivals}
    assert any(value != int(value) for value in values if abs(value) != float("inf"))
    assert float("inf") in values
    assert -1.0 in values


def test_redeliveries_only_where_the_query_expects_them() -> None:
    redelivered = [
        case
        for case in DRAWN
        if len({event.source_id for event in case.arrivals}) < len(case.arrivals)
    ]
    assert redelivered
    assert all(config_of(case).dedup for case in redelivered)
    for case in redelivered:
        tuples = {(e.source_id, e.key, e.event_time_us, e.value) for e in case.arrivals}
        assert len(tuples) == len({event.source_id for event in case.arrivals})


def test_two_orders_are_of_the_same_tuples() -> None:
    pairs = packs.collect(configs().flatmap(reordered), 60, seed=2)
    for pair in pairs:
        one, other = ({(e.source_id, e.event_time_us, e.value) for e in w.arrivals} for w in pair)
        assert one == other
    orders = [[[event.source_id for event in w.arrivals] for w in pair] for pair in pairs]
    assert sum(one != other for one, other in orders) > len(pairs) // 2


def test_timed_cases_differ_in_workers() -> None:
    drawn = packs.collect(timed_cases(), 40, seed=3)
    assert len({case.timing.crew for case in drawn}) > 3
    assert any(worker.speed < 1 for case in drawn for worker in case.timing.crew)
