"""Workers that take input by input compute the meaning of all tuples together."""

from collections.abc import Sequence
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.script.graph import compile_graph
from model.script.machine import Effect, Notice, Rise, Worker
from model.script.placement import Placement
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import END_US, REASON_LATE, Rejected
from model.vocabulary.script.tree import (
    Arithmetic,
    Expression,
    Name,
    Sensor,
    Statement,
    Union,
    Window,
    Workflow,
)
from properties.stream_packs import collect
from straggler.strategies.script import cases
from tests.model.script.interleaving import Interleaving, anywhere

RANDOMS = st.randoms(use_true_random=False)
RUNS_FOR_GUARDS = 300
MS = 1_000


@given(workload=cases(), random=RANDOMS)
def test_any_order_any_placement_and_any_failure_give_what_all_tuples_mean(
    workload: Workload, random: Random
) -> None:
    seen = Interleaving(workload, anywhere(random), random)
    seen.run()
    assert not seen.differences()


def test_interleavings_include_every_interesting_case(seed: int) -> None:
    random, back, sent, rejected, undefined, idle = Random(seed), 0, 0, 0, 0, 0
    for workload in collect(cases(), RUNS_FOR_GUARDS, seed):
        seen = Interleaving(workload, anywhere(random), random)
        seen.run()
        back, sent = back + seen.went_back, sent + seen.sent
        rejected += len(seen.rejected())
        idle += seen.idle
        undefined += sum(len(stream.undefined) for stream in seen.streams().values())
    assert min(back, sent, rejected, idle) > 200, (back, sent, rejected, idle)
    assert undefined > 10, undefined


# -------------------------------------------------------------------------------------- by hand

A, B = Sensor("a"), Sensor("b")


def workers(
    *statements: Expression, at: tuple[int, ...] = (0, 1, 0), **settings: object
) -> list[Worker]:
    """Return workers for statements x, y, z; ``at`` says which worker computes each."""
    flow = Workflow("w", tuple(map(Statement, "xyz", statements)))
    config = ScriptConfig(
        (flow,),
        (("a", 3_600), ("b", 3_600)),
        workers=2,
        **{"lateness_us": 0, **settings},  # type: ignore[arg-type]  # the fields are given by name
    )
    graph = compile_graph(config)
    worker = dict(zip(graph.computed, at, strict=False))
    hosts = [
        frozenset(
            each
            for number in graph.computed
            for each in graph.streams(number)
            if worker[number] == own and graph.nodes[each].sensor
        )
        for own in range(2)
    ]
    placement = Placement("by hand", graph, worker, tuple(hosts))
    return [Worker(config, placement, own) for own in range(2)]


def event(seq: int, sensor: str, at_ms: float, value: float = 1.0) -> Event:
    return Event(seq, seq, sensor, round(at_ms * MS), value, round(at_ms * MS))


def rise_of(found: Sequence[Effect]) -> Rise:
    """Return the only effect, which is a rise."""
    (rise,) = found
    assert isinstance(rise, Rise)
    return rise


def rises(found: Sequence[Effect]) -> list[tuple[int, tuple[tuple[int, float], ...], int]]:
    """Return node, new points and the stamp until which it is known, for each rise."""
    made = [each for each in found if isinstance(each, Rise)]
    return [(each.node, each.stream.points, each.stream.until_us) for each in made]


def window(op: str, source: Expression, length_ms: int, slide_ms: int) -> Window:
    return Window(op, source, length_ms, slide_ms)


def test_a_window_is_known_when_its_end_has_been_passed() -> None:
    worker, _ = workers(window("sum", A, 10, 10))
    assert not worker.take(event(0, "a", 3, 2.0))
    assert not worker.take(event(1, "a", 9.999, 3.0))
    # Two windows have ended behind it without a tuple.
    assert rises(worker.take(event(2, "a", 31, 4.0))) == [(1, ((9 * MS, 5.0),), 39 * MS)]
    assert rises(worker.flush()) == [(1, ((39 * MS, 4.0),), END_US)]
    assert worker.known_us == END_US


def test_values_of_later_tuples_may_need_smaller_units() -> None:
    worker, _ = workers(window("sum", A, 20, 10))
    values = [3.0, 0.1, 5e-324, 1e16, -1e16, 0.2]
    found = [worker.take(event(n, "a", 6 * n, value)) for n, value in enumerate(values)]
    # Ends are passed at 12, 24 and 30 ms; each window has two slices.
    exact = [sum(map(Fraction, values[slice(*ends)])) for ends in ((0, 2), (0, 4), (2, 5))]
    results = [point for each in found for _, points, _ in rises(each) for point in points]
    assert results == list(zip([9 * MS, 19 * MS, 29 * MS], map(float, exact), strict=True))


def test_a_repeated_notice_changes_nothing() -> None:
    worker, other = workers(
        window("sum", A, 10, 10), window("sum", B, 10, 10), Arithmetic("-", Name("x"), Name("y"))
    )
    x, y, z = 1, 3, 4
    assert not worker.take(event(0, "a", 5))
    assert rises(worker.take(event(1, "a", 35))) == [(x, ((9 * MS, 1.0),), 39 * MS)]
    assert not other.take(event(2, "b", 5, 7.0))
    (first,) = rise_of(other.take(event(3, "b", 15))).notices()
    assert first == Notice(y, (9 * MS, 7.0), 19 * MS)
    assert rises(worker.hear(first)) == [(z, ((9 * MS, -6.0),), 19 * MS)]
    assert not worker.hear(first)
    (second,) = rise_of(other.take(event(4, "b", 25))).notices()
    assert rises(worker.hear(second)) == [(z, ((19 * MS, 0.0),), 29 * MS)]
    assert not worker.hear(first)
    assert not worker.hear(first._replace(until_us=None))


def test_results_of_one_rise_are_reported_one_by_one() -> None:
    worker, _ = workers(window("sum", Union((A, B)), 10, 10), at=(0,))
    for n in range(3):
        assert not worker.take(event(n, "a", 10 * n))
    rise = rise_of(worker.take(event(3, "b", 21)))
    node = rise.node
    assert rise.notices() == [
        Notice(node, (9 * MS, 1.0), None),
        Notice(node, (19 * MS, 1.0), 29 * MS),
    ]


def test_an_empty_window_is_a_notice() -> None:
    worker, _ = workers(window("sum", A, 10, 10))
    assert rise_of(worker.take(event(0, "a", 30))).notices() == [Notice(1, None, 39 * MS)]


def test_one_worker_reports_a_rejected_arrival() -> None:
    first, second = workers(window("sum", A, 10, 10), window("max", A, 10, 10))
    for worker in (first, second):
        worker.take(event(0, "a", 30))
    assert first.take(event(1, "a", 29)) == (Rejected(1, REASON_LATE),)
    assert not second.take(event(1, "a", 29))


def test_nothing_is_kept_that_nobody_will_look_at_again() -> None:
    (worker, _) = workers(
        window("sum", A, 20, 10),
        window("avg", Union((A, B)), 30, 10),
        Arithmetic("+", A, B),
        at=(0, 0, 0),
    )
    for n in range(2_000):
        worker.take(event(n, "ab"[n % 2], 5 * n))
        if n % 100 == 99:
            worker.end_batch()
    state = worker.saved()
    assert max(len(log.points) for log in state.logs.values()) <= 3
    assert max(len(slices.starts_us) for slices in state.slices.values()) <= 4
    assert max(len(clock.ids) for clock in state.clocks.values()) <= 1


def test_a_redelivery_is_recognised_before_and_after_identities_are_forgotten() -> None:
    worker, _ = workers(window("count", A, 10, 10), lateness_us=5 * MS)
    delivered = [event(0, "a", 1), event(1, "a", 7), event(2, "a", 8)]
    for each in delivered:
        worker.take(each)
    worker.end_batch()
    for seq, each in enumerate(delivered, 3):
        again = worker.take(each._replace(seq=seq))
        # The watermark is at 3 ms: the first one is late, redelivered or not.
        assert list(again) == ([Rejected(seq, REASON_LATE)] if each is delivered[0] else [])
    assert rises(worker.take(event(6, "a", 15)))[0][1] == ((9 * MS, 3.0),)


@pytest.mark.parametrize("bad", [-1, 1 << 61])
def test_an_impossible_event_time_is_an_error(bad: int) -> None:
    worker, _ = workers(window("count", A, 10, 10))
    with pytest.raises(ValueError, match="must be at least 0 and below 2"):
        worker.take(event(0, "a", 1)._replace(event_time_us=bad))
