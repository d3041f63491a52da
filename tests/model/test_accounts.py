"""Accounts of rows: what is said about rows in no place, in several, and in answers that count."""

from model.checking.accounts import EVERY_ROW, CountedAnswer, Place, settle
from model.slack import run
from model.slack.claims import judge
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


def test_all_rows_of_a_right_trace_are_accounted_for() -> None:
    (verdict,) = [each for each in judge(BAD, run(BAD)).verdicts if each.claim == EVERY_ROW]
    assert verdict.sentence == "Accounted for: 5 of 5."
