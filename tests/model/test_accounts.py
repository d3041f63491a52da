"""Accounts of rows: what is said about rows in no place, in several, and in answers that count."""

from collections.abc import Callable

import pytest

from model.checking.accounts import EVERY_ROW, CountedAnswer, Place, settle
from model.checking.claims import Outcome, Verdict
from model.slack import run
from model.slack.claims import check
from model.vocabulary import Step, Trace
from model.vocabulary.windows import Late, Rejected, Result
from tests.model.arrivals import stream_of
from tests.model.test_checking import STREAM

ROWS = stream_of((20, 1.0), (25, 2.0), (12, 4.0))
BAD = STREAM.with_(
    arrivals=stream_of((20, 1.0), (25, 2.0), (12, 4.0), (60, 8.0), (61, float("nan")))
)


def test_rows_in_no_place_and_in_several_are_named() -> None:
    found = settle(ROWS, [(0, Place.LATE), (0, Place.REFUSED), (2, Place.SHED), (7, Place.LATE)])
    assert found.against == [
        "Row 7 is late, but was not handed in.",
        "Row 0 (#0, key 'a') is late and refused.",
        "Row 1 (#1, key 'a') is in no place.",
    ]
    assert found.verdict().sentence.startswith("Accounted for: 1 of 3. Row 7 is late")


def test_a_row_that_several_answers_lack_is_lost_once() -> None:
    answers = [CountedAnswer("a", (0, 1), 1), CountedAnswer("b", (1, 2), 1)]
    found = settle(ROWS, [(seq, Place.ANSWERED) for seq in range(3)], answers)
    assert found.counts == {Place.ANSWERED: 2}
    assert found.against[0] == "The answer of a counts 1 rows, and should count 2: 0, 1."


def judged(change: Callable[[Step], list[Step]]) -> Verdict:
    steps = [each for step in run(BAD).steps() for each in change(step)]
    return next(each for each in check(BAD, Trace("foreign", steps)) if each.claim == EVERY_ROW)


def test_all_rows_of_a_right_trace_are_accounted_for() -> None:
    assert judged(lambda step: [step]).sentence == "Accounted for: 5 of 5."


def shorter(step: Step) -> list[Step]:
    return [step._replace(n_rcv=step.n_rcv - 1)] if isinstance(step, Result) else [step]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda step: [] if isinstance(step, Rejected) else [step], "Accounted for: 4 of 5. "),
        (lambda step: [step] * (1 + isinstance(step, Rejected)), "is refused and refused."),
        (
            lambda step: [] if isinstance(step, Late) else [step],
            "[5, 15) of task 0, key 'a' is missing, and should count 1: 2.",
        ),
        (shorter, "Accounted for: 2 of 5. "),
        (
            lambda step: [step] * (not isinstance(step, Result) or step.start_us != 60),
            "Accounted for: 4 of 5. The answer of window [60, 70) of task 0, key 'a' is missing, ",
        ),
        (
            lambda step: [step._replace(batch=1)] if isinstance(step, Late) else [step],
            "Accounted for: 4 of 5. The answer of window [5, 15) of task 0, key 'a' is missing",
        ),
        (
            lambda step: [step._replace(batch=0)] if isinstance(step, Rejected) else [step],
            "Accounted for: 4 of 5. Row 4 (#4, key 'a') is in no place.",
        ),
    ],
)
def test_a_row_that_is_not_in_its_place_after_its_batch_is_missed(
    change: Callable[[Step], list[Step]], sentence: str
) -> None:
    verdict = judged(change)
    assert verdict.outcome is Outcome.BROKEN
    assert sentence in verdict.sentence, verdict
