"""The nested loop, admission, and predicates."""

from dataclasses import replace

import pytest

from model.join import run
from model.join.oracle import Gate, admission, holds, matches, nested_loop_join, quick_matches
from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import (
    REASON_LATE,
    REASON_NOT_FINITE,
    And,
    Apart,
    Band,
    Equi,
    Ineq,
    Match,
    Predicate,
    Rejected,
)
from tests.model.join.strategies import workload


def event(seq: int, ts_us: int, stream: str = "R", key: str = "a", value: float = 0.0) -> Event:
    return Event(seq, seq, key, ts_us, value, seq, stream)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (And(), True),
        (Equi("key"), False),
        (Equi("value"), False),
        (Band("value", 1.0), True),
        (Band("value", 0.5), False),
        (Apart("value", 0.5), True),
        (Apart("value", 1.0), False),
        (Ineq("value", "<", "value"), True),
        (Ineq("value", ">=", "value"), False),
        (Ineq("key", "<", "key"), True),
        (Ineq("key", "!=", "key"), True),
        (And((Band("value", 1.0), Equi("key"))), False),
        (And((Band("value", 1.0), Ineq("key", "<=", "key"))), True),
    ],
)
def test_predicates_mean_what_they_say(predicate: Predicate, expected: bool) -> None:
    r, s = event(0, 0, key="a", value=1.0), event(1, 0, "S", key="b", value=2.0)
    assert holds(predicate, r, s) is expected


def test_the_window_includes_both_ends() -> None:
    config = JoinConfig(2, (("all", And()),))
    s_tuples = [event(seq, ts_us, "S") for seq, ts_us in enumerate((7, 8, 12, 13))]
    admitted = admission(Workload("join", (event(9, 10), *s_tuples), config.to_json()))
    assert matches(config, admitted) == {("all", 9, 1), ("all", 9, 2)}


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [
        ((), {(0, 1), (0, 3), (2, 1), (2, 3), (4, 1), (4, 3)}),
        ((("all", 0, None),), {(0, 1), (0, 3), (2, 1), (2, 3), (4, 1), (4, 3)}),
        ((("all", 1, None),), {(2, 3), (4, 3)}),
        ((("all", 0, 1),), {(0, 1), (0, 3), (2, 1), (2, 3)}),
        ((("all", 1, 1),), {(2, 3)}),
        ((("all", 2, 5),), set()),
    ],
)
def test_a_query_pairs_what_was_admitted_in_its_epochs(
    epochs: tuple[tuple[str, int, int | None], ...], expected: set[tuple[int, int]]
) -> None:
    config = JoinConfig(9, (("all", And()),), epochs=epochs)
    arrivals = tuple(event(seq, 10, "RS"[seq % 2]) for seq in range(5))
    admitted = admission(Workload("join", arrivals, config.to_json(), (2, 4)))
    assert matches(config, admitted) == {("all", r, s) for r, s in expected}


@pytest.mark.parametrize("seed", range(40))
def test_the_quick_way_finds_what_the_nested_loop_finds(seed: int) -> None:
    drawn = workload(seed, limited=seed % 2 == 0)
    config, admitted = JoinConfig.from_json(drawn.config), admission(drawn)
    assert quick_matches(config, admitted) == matches(config, admitted)


@pytest.mark.parametrize(
    "queries",
    [
        (Band("value", 1.0),),
        (Band("value", 0.0), Band("value", 2.0)),
        (And((Band("value", 1.0), Band("value", 3.0))),),
        (And((Equi("key"), Band("value", 1.0))), And((Band("value", 0.5), Equi("key")))),
        (Band("value", 1.0), Apart("value", 1.0)),
        (Band("value", 1.0), Equi("key")),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_the_quick_way_looks_far_enough(queries: tuple[Predicate, ...], seed: int) -> None:
    drawn = workload(seed)
    named = tuple((f"q{number}", predicate) for number, predicate in enumerate(queries))
    config = replace(JoinConfig.from_json(drawn.config), queries=named, window_us=5)
    admitted = admission(drawn)
    found = matches(config, admitted)
    assert found or not seed, "seed 0 draws no tuple of S"
    assert quick_matches(config, admitted) == found


def test_admission_in_the_order_of_its_rules() -> None:
    config = JoinConfig(2, (("all", And()),), lateness_us=3)
    nan = float("nan")
    arrivals = (
        event(0, 10),
        event(1, 7),  # the watermark itself: admitted
        event(2, 6),  # below
        event(3, 100, value=nan),  # rejected, moves no watermark
        event(4, 0, "S"),  # the other stream has its own watermark
        event(1, 7)._replace(seq=5),  # redelivered
        event(6, 20),
        event(0, 10)._replace(seq=7),  # redelivered, but late by now
        event(2, 6)._replace(seq=8),
    )
    admitted = admission(Workload("join", arrivals, config.to_json(), (2,)))
    assert [each.source_id for each in admitted.r.tuples] == [0, 1, 6]
    assert admitted.r.wm_us == [7, 7, 17]
    assert admitted.r.epochs == [0, 0, 1]
    assert [each.source_id for each in admitted.s.tuples] == [4]
    assert admitted.redelivered == 1
    assert admitted.rejected == [
        Rejected("R", 2, 2, REASON_LATE),
        Rejected("R", 3, 3, REASON_NOT_FINITE),
        Rejected("R", 7, 0, REASON_LATE),
        Rejected("R", 8, 2, REASON_LATE),
    ]


def test_a_gate_that_goes_back_decides_again_what_it_decided() -> None:
    case = workload(11)
    config = JoinConfig.from_json(case.config)
    once, again = Gate(replace(config, lateness_us=1)), Gate(replace(config, lateness_us=1))
    half = len(case.arrivals) // 2
    for event in case.arrivals[:half]:
        once.offer(event.stream, 0, [event])
        again.offer(event.stream, 0, [event])
    mark = again.mark()
    for event in (*reversed(case.arrivals), *case.arrivals):
        again.offer(event.stream, 1, [event._replace(value=float("nan"))])
        again.offer(event.stream, 1, [event])
    again.go_back(mark)
    for event in case.arrivals[half:]:
        once.offer(event.stream, 1, [event])
        again.offer(event.stream, 1, [event])
    assert once.admitted == again.admitted
    assert once.rejected == again.rejected
    assert once.redelivered == again.redelivered
    assert once.rejected
    assert half


def test_an_unknown_stream_is_refused() -> None:
    config = JoinConfig(2, (("all", And()),))
    with pytest.raises(ValueError, match="stream is 'T'"):
        admission(Workload("join", (event(0, 0, "T"),), config.to_json()))


@pytest.mark.parametrize("seed", range(20))
def test_the_oracle_finds_the_pairs_of_the_chain_in_the_first_possible_epoch(seed: int) -> None:
    drawn = workload(seed)
    expected, found = nested_loop_join(drawn), run(drawn)
    assert expected.of(Rejected) == found.of(Rejected)
    later = {match[:3]: match.batch for match in found.of(Match)}
    assert later.keys() == {match[:3] for match in expected.of(Match)}
    assert all(match.batch <= later[match[:3]] for match in expected.of(Match))
