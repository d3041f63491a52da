"""Generated workloads: what rules 1 to 4 of ``straggler/strategies/streams.py`` promise."""

from collections import Counter

import pytest

from model.vocabulary import SlackConfig, Workload
from model.vocabulary.slack import ADAPTIVE_CONTROLS, CONTROLS, SELF_SUFFICIENT_AGGREGATES
from model.vocabulary.windows import AGGREGATES
from model.windows.evidence import has_exact_sums
from properties.stream_packs import collect
from sim.kernel.disorder import measure
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.faults import Congest, Duplicate, Fail, Lose, Pause, Replay, Slow
from sim.kernel.log import simulate_arrivals
from sim.kernel.source import IDS_PER_SOURCE, Source
from straggler.strategies.networks import plans
from straggler.strategies.streams import cases, configs, reordered, requirements, timed_cases


@pytest.fixture(scope="module")
def drawn_cases() -> list[Workload]:
    return collect(cases(), 300, seed=4)


def config_of(case: Workload) -> SlackConfig:
    return SlackConfig.from_json(case.config)


def test_queries_have_every_shape(drawn_cases: list[Workload]) -> None:
    drawn = [config_of(case) for case in drawn_cases]
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
        for config in collect(configs(["median", "avg"], ["pd"]), 20, seed=1)
    )


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_requirements_are_found_in_every_way(aggregate: str) -> None:
    drawn = collect(configs([aggregate], ADAPTIVE_CONTROLS), 150, seed=3)
    found = {(config.lambda_thr, config.method, config.sampling) for config in drawn}
    assert found == set(requirements(aggregate))
    is_free = any(config.lambda_thr is None for config in drawn)
    assert is_free == (aggregate in SELF_SUFFICIENT_AGGREGATES)
    assert any(config.needs_values for config in drawn) == (aggregate in ("sum", "avg"))


def test_arrivals_are_disordered_numbered_and_in_time(drawn_cases: list[Workload]) -> None:
    late = [case for case in drawn_cases if measure(case.arrivals).late_share > 0]
    assert len(late) > len(drawn_cases) // 2
    for case in drawn_cases:
        assert [event.seq for event in case.arrivals] == list(range(len(case.arrivals)))
        times = [event.arrival_us for event in case.arrivals]
        assert times == sorted(times)
        assert all(event.event_time_us > 0 for event in case.arrivals)


def test_values_add_up_exactly_and_some_are_refused(drawn_cases: list[Workload]) -> None:
    assert all(has_exact_sums([event.value for event in case.arrivals]) for case in drawn_cases)
    values = {event.value for case in drawn_cases for event in case.arrivals}
    assert any(value != int(value) for value in values if abs(value) != float("inf"))
    assert float("inf") in values
    assert -1.0 in values


def test_redeliveries_only_where_the_query_expects_them(drawn_cases: list[Workload]) -> None:
    redelivered = [
        case
        for case in drawn_cases
        if len({event.source_id for event in case.arrivals}) < len(case.arrivals)
    ]
    assert redelivered
    assert all(config_of(case).dedup for case in redelivered)
    for case in redelivered:
        tuples = {(e.source_id, e.key, e.event_time_us, e.value) for e in case.arrivals}
        assert len(tuples) == len({event.source_id for event in case.arrivals})


def test_two_orders_are_of_the_same_tuples() -> None:
    pairs = collect(configs().flatmap(reordered), 60, seed=2)
    for pair in pairs:
        one, other = ({(e.source_id, e.event_time_us, e.value) for e in w.arrivals} for w in pair)
        assert one == other
    orders = [[[event.source_id for event in w.arrivals] for w in pair] for pair in pairs]
    assert sum(one != other for one, other in orders) > len(pairs) // 2


def test_timed_cases_differ_in_workers_and_in_what_goes_wrong() -> None:
    plans = [case.timing.plan for case in collect(timed_cases(), 120, seed=3)]
    workers = [worker for plan in plans for worker in plan.cluster.workers]
    assert len({plan.cluster.workers for plan in plans}) > 10
    assert {worker.when_full for worker in workers if worker.queue_limit} == {"block", "drop"}
    assert any(worker.speed < 1 for worker in workers)
    assert len({plan.way(plan.log_place, worker.place) for plan in plans for worker in workers}) > 3
    kinds = Counter(type(fault) for plan in plans for fault in plan.faults)
    assert set(kinds) == {Congest, Duplicate, Fail, Lose, Pause, Replay, Slow}, kinds
    targets = {fault[0] for plan in plans for fault in plan.faults}
    assert {"worker-0", "corrector", "log>worker-0", "source-0", "source-0>log"} <= targets
    assert any(plan.disturbances for plan in plans)


def test_ways_to_the_log_meet_every_fault_and_lose_nothing() -> None:
    sent = (Source(20, Constant(3_000)), Source(20, Constant(3_000), start_us=5_000))
    drawn = collect(plans(20_000, sent, 7), 200, seed=5)
    kinds = Counter(type(fault) for plan in drawn for fault in plan.faults)
    assert set(kinds) == {Congest, Duplicate, Lose, Pause, Replay, Slow}, kinds
    met: Counter[str] = Counter()
    for plan in drawn:
        found = simulate_arrivals(plan, 7)
        met.update({name: bool(count) for name, count in found.counts.items()})
        assert {event.source_id for event in found.events} == {
            *range(20),
            *range(IDS_PER_SOURCE, IDS_PER_SOURCE + 20),
        }
    assert not any(met[name] for name in ("lost", "dropped", "failed", "shed"))
    assert min(met[name] for name in ("duplicated", "replayed", "retried", "blocked")) > 3, met


def test_bursts_begin_while_something_is_sent_whatever_the_seed() -> None:
    sent = (Source(6, Exponential(1_000)), Source(6, Exponential(9_000), start_us=5_000))
    for plan in collect(plans(20_000, sent), 100, seed=5):
        for seed in range(3):
            assert simulate_arrivals(plan, seed).events
