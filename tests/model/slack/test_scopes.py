"""Scopes that are too large for every day, and paths as sentences."""

import pytest

from model.checking.claims import Outcome, combine
from model.checking.explorer import render
from model.slack.scopes import SCOPES, explore, machine_of


def test_redeliveries_are_explored_as_well() -> None:
    found = explore("redelivery")
    assert combine(found.verdicts) is Outcome.HOLDS
    assert found.unique_states == 39_973


def test_the_large_scope_can_be_cut_short() -> None:
    found = explore("large", max_states=2_000)
    assert found.cut
    assert combine(found.verdicts) is Outcome.UNDETERMINED


def test_a_path_is_sentences() -> None:
    found = explore("small")
    path = found.paths["a correction crashes half way"]
    assert render(path, machine_of(SCOPES["small"])) == (
        "0. Initially nothing has arrived.",
        "1. tuple #2 (event time 6) arrives, the slack is then 0: the watermark is 6.",
        "2. tuple #0 (event time 1) arrives, the slack is then 0: the watermark is 6, "
        "pending #0 to [-2, 2) and #0 to [0, 4).",
        "3. a batch ends and a correction is due: the watermark is 6, "
        "pending #0 to [-2, 2) and #0 to [0, 4), a correction has written 0 of 2.",
        "4. the correction goes one small step further: the watermark is 6, "
        "[-2, 2) = 1 (revision 1), pending #0 to [-2, 2) and #0 to [0, 4), "
        "a correction has written 1 of 2.",
        "5. the correction crashes: the watermark is 6, [-2, 2) = 1 (revision 1), "
        "pending #0 to [-2, 2) and #0 to [0, 4).",
    )


def test_a_name_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(KeyError):
        explore("huge")
