"""Scopes that are too large for every day, and paths as sentences."""

import pytest

from model.checking.claims import Outcome, combine
from model.checking.explorer import render
from model.watermark.scopes import SCOPES, explore, machine_of


def test_the_large_scope_can_be_cut_short() -> None:
    found = explore("large", max_states=2_000)
    assert found.cut
    assert combine(found.verdicts) is Outcome.UNDETERMINED


def test_a_path_is_sentences() -> None:
    found = explore("small")
    path = found.paths["the watermark is held where it was"]
    assert render(path, machine_of(SCOPES["small"])) == (
        "0. Initially nothing has arrived.",
        "1. tuple #0 (event time 1) arrives: "
        "0 of 0 pairs are out of order, the wait is 6, the watermark -5.",
        "2. tuple #2 (event time 4) arrives: "
        "0 of 1 pairs are out of order, the wait is 0, the watermark 4, "
        "[-2, 2) = 1, [0, 4) = 1.",
        "3. tuple #1 (event time 3) arrives: "
        "1 of 3 pairs are out of order, the wait is 2, the watermark 4, "
        "[-2, 2) = 1, [0, 4) = 1, #1 late for [0, 4).",
    )


def test_a_name_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(KeyError):
        explore("huge")
