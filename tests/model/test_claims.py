import pytest

from model.checking.claims import Outcome, Verdict, combine

HOLDS = Verdict("a", Outcome.HOLDS, "a holds")
BROKEN = Verdict("b", Outcome.BROKEN, "b is broken", ("1. it breaks",))
UNDETERMINED = Verdict("c", Outcome.UNDETERMINED, "c was never seen")


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], Outcome.UNDETERMINED),
        ([HOLDS], Outcome.HOLDS),
        ([HOLDS, HOLDS], Outcome.HOLDS),
        ([HOLDS, UNDETERMINED], Outcome.UNDETERMINED),
        ([UNDETERMINED, BROKEN, HOLDS], Outcome.BROKEN),
    ],
)
def test_the_worst_outcome_wins(verdicts: list[Verdict], expected: Outcome) -> None:
    assert combine(verdicts) is expected
    assert combine(reversed(verdicts)) is expected


def test_combine_reads_its_input_once() -> None:
    assert combine(iter([HOLDS, BROKEN])) is Outcome.BROKEN


def test_outcomes_print_as_plain_words() -> None:
    assert [f"{outcome}" for outcome in Outcome] == ["holds", "broken", "undetermined"]
