"""Corrections in small steps, and their repair after a crash."""

from model.slack.assumption import scored
from model.vocabulary import SlackConfig, Step
from model.vocabulary.windows import Cleared, Correction, Correlation, Final, Late, Result, Revision
from model.windows.correction import advance, due, plan
from model.windows.state import Answer, History, Pair, Pending, Plan, Store, Window
from tests.model.slack.strategies import stream_of

CONFIG = SlackConfig(10, 5, control="fixed", gamma_us=5, max_age_us=40)
EVENTS = stream_of((12, 1.0), (14, 2.0), (9, 4.0))
FIRST, SECOND = Window(0, 5, "a"), Window(0, 10, "a")


def history() -> History:
    kept = History(CONFIG)
    for event in EVENTS:
        kept.add(event)
    return kept


def values(kept: History, start_us: int, key: str) -> list[float]:
    return [event.value for event in kept.tuples(start_us, key)]


def store() -> Store:
    """Return a store with two windows answered without tuple 1, which is late for both."""
    kept = Store()
    kept.record(Result(0, 5, "a", 0, 5.0, 2, 0, 25))
    kept.record(Result(0, 10, "a", 0, 1.0, 1, 0, 25))
    kept.record(Late(0, 5, "a", 1, 14, 0))
    kept.record(Late(0, 10, "a", 1, 14, 0))
    return kept


def carry_out(kept: Store, made: Plan | None, small_steps: int | None = None) -> list[Step]:
    taken: list[Step] = []
    while made is not None and small_steps != 0:
        made, steps = advance(made, kept)
        taken += steps
        small_steps = None if small_steps is None else small_steps - 1
    return taken


def test_history_finds_the_tuples_of_a_window_and_keeps_an_identity_once() -> None:
    kept = history()
    kept.add(EVENTS[0]._replace(seq=9, value=100.0))
    assert values(kept, 5, "a") == [1.0, 2.0, 4.0]
    assert values(kept, 10, "a") == [1.0, 2.0]
    assert values(kept, 10, "b") == []


def test_history_of_an_unkeyed_query_and_of_windows_with_gaps() -> None:
    kept = History(SlackConfig(3, 7, keyed=False, control="fixed"))
    for event in stream_of((7, 1.0, "a"), (9, 2.0, "b"), (10, 4.0), (6, 8.0), (14, 16.0)):
        kept.add(event)
    assert values(kept, 7, "") == [1.0, 2.0]


def test_pending_pairs_are_a_set_that_knows_its_span() -> None:
    early, late = Pair(0, 5, "a", 1, 12), Pair(0, 10, "a", 2, 17)
    pending = Pending((late, early, late))
    assert (len(pending.pairs), pending.oldest_us, pending.newest_us) == (2, 12, 17)
    rest = pending.without((early,))
    assert (list(rest.pairs), rest.oldest_us, rest.newest_us) == ([late], 17, 17)


def test_triggers_are_strict() -> None:
    kept = store()
    assert due(CONFIG, kept, 1, 10_000, True) is None
    assert due(CONFIG, kept, 0, 25, True) == "flush"
    assert due(CONFIG, kept, 0, 54, False) is None
    assert due(CONFIG, kept, 0, 55, False) == "age"
    kept.record(Late(0, 0, "a", 7, 9, 0))
    assert due(CONFIG, kept, 0, 25, False) is None
    kept.record(Late(0, 0, "a", 8, 8, 0))
    assert due(CONFIG, kept, 0, 25, False) == "gamma"


def test_a_correction_writes_every_window_then_clears_its_pairs() -> None:
    kept = store()
    steps = carry_out(kept, plan(CONFIG, kept, history(), 0, 3, "flush", scored(CONFIG)))
    expected: list[Step] = [
        Revision(0, 5, "a", 3, 1, 7.0, 3),
        Revision(0, 10, "a", 3, 1, 3.0, 2),
        # No delay between tuples at 12 and 14: [5, 15) is left out, its index is odd.
        Correlation(0, 10, "a", 3, 1, 2, 0, 0, 2),
        Correction(0, 3, "flush", 2, 2),
        Cleared(0, 5, "a", 1, 3),
        Cleared(0, 10, "a", 1, 3),
    ]
    assert steps == expected
    assert kept.final() == [Final(0, 5, "a", 7.0, 3, 1, True), Final(0, 10, "a", 3.0, 2, 1, True)]


def test_a_pair_that_comes_while_a_correction_is_under_way_stays_pending() -> None:
    kept = store()
    made = plan(CONFIG, kept, history(), 0, 3, "flush", scored(CONFIG))
    kept.record(Late(0, 5, "a", 7, 13, 4))
    carry_out(kept, made)
    assert list(kept.all_pending()) == [Pair(0, 5, "a", 7, 13)]
    assert [final.exact for final in kept.final()] == [False, True]


def test_after_a_crash_between_any_two_steps_another_plan_repairs_everything() -> None:
    for small_steps in range(4):
        kept = store()
        carry_out(kept, plan(CONFIG, kept, history(), 0, 3, "flush", scored(CONFIG)), small_steps)
        if due(CONFIG, kept, 0, 25, True):
            carry_out(kept, plan(CONFIG, kept, history(), 0, 3, "flush", scored(CONFIG)))
        assert kept.final() == [
            Final(0, 5, "a", 7.0, 3, 1, True),
            Final(0, 10, "a", 3.0, 2, 1, True),
        ]


def test_a_later_batch_continues_the_revision_numbers() -> None:
    kept = store()
    carry_out(kept, plan(CONFIG, kept, history(), 0, 3, "flush", scored(CONFIG)))
    kept.record(Late(0, 5, "a", 2, 9, 4))
    carry_out(kept, plan(CONFIG, kept, history(), 0, 4, "flush", scored(CONFIG)))
    assert kept.answers[FIRST] == Answer(7.0, 3, 2, 4)
    assert kept.answers[SECOND] == Answer(3.0, 2, 1, 3)


def test_a_window_that_the_stream_never_answered_starts_with_revision_one() -> None:
    kept = Store((), (Pair(0, 5, "a", 1, 14),))
    assert kept.final() == []
    steps = carry_out(kept, plan(CONFIG, kept, history(), 0, 0, "flush", scored(CONFIG)))
    assert steps[0] == Revision(0, 5, "a", 0, 1, 7.0, 3)


def test_delay_and_value_are_compared_in_the_order_of_arrival() -> None:
    """The delayed tuples of the window have the larger values."""
    kept = History(CONFIG)
    for event in stream_of((14, 1.0), (12, 3.0), (13, 2.0)):
        kept.add(event)
    pending = Store((), (Pair(0, 10, "a", 1, 12),))
    steps = carry_out(pending, plan(CONFIG, pending, kept, 0, 0, "flush", scored(CONFIG)))
    assert steps[1] == Correlation(0, 10, "a", 0, 1, 3, 8, 8, 8)
