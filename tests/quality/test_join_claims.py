"""Claims on traces of room ``join`` catch planted mistakes and report them in sentences."""

from collections.abc import Callable, Mapping

import pytest

from model.checking.claims import Outcome
from model.join.claims import IN_TIME, LIMITED, REJECTIONS, WRONG, judge
from model.join.run import run
from model.join.state_claims import LOST, TWICE
from model.vocabulary import Event, JoinConfig, Step, Trace, Workload
from model.vocabulary.join import And, Match, Rejected

OF_EPOCHS = (
    "results of limited queries",
    "pairs for another query alone",
    "pairs across the first epoch of a query",
    "pairs across the last epoch of a query",
)
CONFIG = JoinConfig(2, (("all", And()),), lateness_us=1)
ARRIVALS = (
    Event(0, 0, "a", 10, 1.0, 0, "R"),
    Event(1, 0, "a", 12, 2.0, 1, "S"),
    Event(2, 1, "a", 20, 1.0, 2, "R"),
    Event(3, 1, "a", 20, 1.0, 3, "S"),
    Event(4, 2, "a", 12, 1.0, 4, "R"),
)
CASE = Workload("join", ARRIVALS, CONFIG.to_json(), (2,))
FOUND: list[Step] = [step for word in (Match, Rejected) for step in run(CASE).of(word)]


def without(word: type) -> list[Step]:
    return [step for step in FOUND if not isinstance(step, word)]


Mistake = Callable[[], list[Step]]


@pytest.mark.parametrize(
    ("mistake", "claim", "sentence"),
    [
        (
            lambda: [*FOUND, Match("all", 1, 1, 2)],
            TWICE,
            "r #1 (at 20, key 'a', value 1) with s #1 (at 20, key 'a', value 1) "
            "is a result of 'all', and was found 2 times.",
        ),
        (
            lambda: without(Match),
            LOST,
            "r #0 (at 10, key 'a', value 1) with s #0 (at 12, key 'a', value 2) "
            "is a result of 'all'. (2 counterexamples in all.)",
        ),
        (
            lambda: [*FOUND, Match("all", 2, 0, 2)],
            WRONG,
            "r #2 (not admitted) with s #0 (at 12, key 'a', value 2) is no result of 'all'.",
        ),
        (
            lambda: [*without(Match), Match("all", 0, 0, 0), Match("all", 1, 1, 0)],
            IN_TIME,
            "r #1 with s #1 was found in epoch 0; epochs 1 to 2 are possible.",
        ),
        (
            lambda: without(Rejected),
            REJECTIONS,
            "R #2 (arrival 4) is not rejected: event time lies below the watermark of the stream.",
        ),
        (
            lambda: [*FOUND, Rejected("S", 1, 0, "x")],
            REJECTIONS,
            "S #0 (arrival 1) is rejected: x.",
        ),
    ],
)
def test_a_mistake_is_found(mistake: Mistake, claim: str, sentence: str) -> None:
    verdicts = {verdict.claim: verdict for verdict in judge(CASE, Trace("x", mistake())).verdicts}
    assert verdicts[claim].outcome is Outcome.BROKEN
    assert verdicts[claim].sentence == sentence


# --------------------------------------------------------------------------- queries and epochs

EPOCHS: Mapping[str, tuple[int, int | None]] = {"added": (1, None), "once": (0, 0)}
QUERIES = tuple((name, And()) for name in ("all", *EPOCHS))
LIMITS = tuple((name, *span) for name, span in EPOCHS.items())
LIMITED_CASE = CASE.with_(
    arrivals=tuple(event._replace(event_time_us=10) for event in ARRIVALS[:4]),
    config=JoinConfig(2, QUERIES, epochs=LIMITS).to_json(),
)
"""A case with two pairs inside an epoch each, and two pairs across epochs."""


def that_ask(asks: Callable[[int, int | None, int, int], bool]) -> Trace:
    """Return the trace of a chain that pairs the tuples of two epochs if ``asks`` allows it."""
    free = LIMITED_CASE.with_(config={**LIMITED_CASE.config, "epochs": []})
    return Trace(
        "x",
        [
            match
            for match in run(free).of(Match)
            # Tuple 0 of either stream is admitted in epoch 0, tuple 1 in epoch 1.
            if asks(*EPOCHS.get(match.query, (0, None)), *sorted((match.r_id, match.s_id)))
        ],
    )


def within(first: int, last: int | None, *epochs: int) -> bool:
    return all(first <= epoch and (last is None or epoch <= last) for epoch in epochs)


@pytest.mark.parametrize(
    ("asks", "number"),
    [
        # An added query also pairs older tuples.
        (lambda first, last, one, other: within(0, last, one, other), 3),
        # Only the epoch of the later tuple is checked.
        (lambda first, last, _one, other: within(first, last, other), 2),
        # Only the epoch of the earlier tuple is checked.
        (lambda first, last, one, _other: within(first, last, one), 2),
        # One tuple in a right epoch is enough.
        (lambda first, last, one, other: within(first, last, one) or within(first, last, other), 4),
    ],
)
def test_a_query_that_pairs_tuples_of_other_epochs_is_found(
    asks: Callable[[int, int | None, int, int], bool], number: int
) -> None:
    judgement = judge(LIMITED_CASE, that_ask(asks))
    broken = {v.claim: v.sentence for v in judgement.verdicts if v.outcome is Outcome.BROKEN}
    assert list(broken) == [LIMITED]
    assert broken[LIMITED].endswith(f"({number} counterexamples in all.)")
    assert all(judgement.guards[name] for name in OF_EPOCHS)


def test_a_query_that_leaves_out_its_first_epoch_loses_pairs() -> None:
    judgement = judge(
        LIMITED_CASE, that_ask(lambda first, last, *epochs: within(first + 1, last, *epochs))
    )
    assert [v.claim for v in judgement.verdicts if v.outcome is Outcome.BROKEN] == [LOST]


def test_correct_traces_with_limited_queries_break_no_claim() -> None:
    for trace in (that_ask(within), run(LIMITED_CASE)):
        verdicts = judge(LIMITED_CASE, trace).verdicts
        assert all(verdict.outcome is Outcome.HOLDS for verdict in verdicts)


def test_a_correct_trace_breaks_no_claim() -> None:
    assert all(v.outcome is Outcome.HOLDS for v in judge(CASE, Trace("x", FOUND)).verdicts)
