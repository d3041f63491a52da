"""Room ``join`` by hand: admission, predicates, and decisions."""

import pytest

from model.join import run
from model.join.control import (
    decision_at,
)
from model.join.oracle import admission, matches
from model.join.predicates import holds
from model.join.state import Block, Copy, Lane, unacknowledged
from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import (
    NO_WATERMARK_US,
    REASON_LATE,
    REASON_NOT_FINITE,
    And,
    Apart,
    Band,
    Decision,
    Equi,
    Ineq,
    Predicate,
    R,
    Rejected,
)

# ------------------------------------------------------------------------------ admission and pairs


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


def test_an_unknown_stream_is_refused() -> None:
    config = JoinConfig(2, (("all", And()),))
    with pytest.raises(ValueError, match="stream is 'T'"):
        admission(Workload("join", (event(0, 0, "T"),), config.to_json()))


def case(*epochs: str, idle_after_us: int | None = 20, workers: int = 2) -> Workload:
    """Return epochs such as ``R10 S12``: a stream and an event time for each arrival."""
    config = JoinConfig(3, (("all", And()),), workers, lateness_us=5, idle_after_us=idle_after_us)
    arrivals: list[Event] = []
    cuts: list[int] = []
    for epoch in epochs:
        for each in epoch.split():
            seq = len(arrivals)
            arrivals.append(Event(seq, seq, "a", int(each[1:]), 1.0, seq, each[0]))
        cuts.append(len(arrivals))
    return Workload("join", tuple(arrivals), config.to_json(), tuple(cuts), flush=False)


def floors(workload: Workload) -> list[tuple[int | None, int | None]]:
    """Return the floors of R and of S at the beginning of each epoch; ``None``: none yet."""
    return [
        tuple(None if each[s] == NO_WATERMARK_US else each[s] for s in "RS")  # type: ignore[misc]  # two streams
        for each in admission(workload).floors_us
    ]


def late(workload: Workload) -> list[int]:
    return [each.seq for each in run(workload).of(Rejected) if each.reason == REASON_LATE]


def test_a_silent_stream_follows_at_the_beginning_of_an_epoch() -> None:
    # S last showed life when R was at 10: it is idle when R is beyond 30, and then 25 behind R.
    followed = case("R10 S10", "R30", "R31", "R50", "R51")
    assert floors(followed) == [(None, None), (None, None), (None, None), (None, 6), (None, 25)]


def test_a_stream_that_never_sent_follows_from_the_first_tuple_of_the_other_on() -> None:
    assert floors(case("R10", "R30", "R31", "R32")) == [
        *((None, None),) * 3,
        (None, 31 - 25),
    ]


def test_a_stream_that_returns_is_late_below_its_floor_and_lets_it_stay() -> None:
    returned = case("R10 S10", "R60", "R61 S34", "R62 S35 S34", "R63 S34")
    # The floor of the third epoch is 60 - 25 = 35, and S shows life there.
    assert floors(returned) == [(None, None), (None, None), (None, 35), (None, 35), (None, 35)]
    assert late(returned) == [4, 7, 9]


def test_late_arrivals_are_a_sign_of_life() -> None:
    # S is always 50 behind R: without a sign of life its floor would keep its distance to R.
    behind = case("R0 S0", "R60", "R70 S20", "R80 S30", "R90 S40")
    assert floors(behind)[-3:] == [(None, 35)] * 3
    assert late(behind) == [4, 6]


def test_a_block_counts_against_the_credit_until_its_acknowledgement() -> None:
    """An acknowledgement may say that nothing was sent before it."""
    copies = tuple(Copy(Block(R, n, 0, (n,), 0), sent) for n, sent in enumerate((-1, 0, 5, -1)))
    assert unacknowledged(Lane(copies=copies)) == 2


# ------------------------------------------------------------------------- workers that come and go


CONFIG = JoinConfig(
    5, (("all", And()),), 3, 7, decisions=(Decision(2, 4, 5, 0.5), Decision(3, 1, 9, 0.0))
)


def test_a_decision_holds_until_the_next_one() -> None:
    found = [decision_at(CONFIG, epoch)[1:] for epoch in range(5)]
    assert found == [(3, 7, 0.0), (3, 7, 0.0), (4, 5, 0.5), (1, 9, 0.0), (1, 9, 0.0)]
